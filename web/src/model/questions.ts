// Everything that a view can ask the model. A new question is one file in questions/ and one line here. A question is a
// function of the model, the query (the selection) and its own arguments. It returns numbers in typed arrays, but never
// an array that the model keeps unless listed in `kept` below: buffers are transferred, so the model would lose it. No
// DOM.
import { beneath } from "./questions/beneath";
import { bottomUp } from "./questions/bottom_up";
import { cpus, densities } from "./questions/densities";
import { changedTree, difference } from "./questions/difference";
import { intervals } from "./questions/intervals";
import { matches } from "./questions/matches";
import { moment } from "./questions/moments";
import { sandwich } from "./questions/sandwich";
import { collapsed, speedscope } from "./questions/saved";
import { segments } from "./questions/segments";
import { source } from "./questions/source";
import { table } from "./questions/table";
import { threads } from "./questions/threads";
import { totals } from "./questions/totals";
import { column, shape } from "./questions/tree";
import { waitRows } from "./questions/wait_rows";
import { waits } from "./questions/waits";
import { Query } from "./filters";
import { Model } from "./selection";

export const questions = {
  totals,
  shape,
  column,
  table,
  intervals,
  beneath,
  difference,
  changedTree,
  matches,
  sandwich,
  source,
  bottomUp,
  threads,
  densities,
  cpus,
  moment,
  waits,
  waitRows,
  segments,
  collapsed,
  speedscope,
};

export type Questions = typeof questions;
export type QuestionName = keyof Questions;
export type ArgumentsOf<N extends QuestionName> = Questions[N] extends
  (model: Model, query: Query, args: infer A) => unknown ? (unknown extends A ? Record<string, never> : A)
  : never;
export type AnswerOf<N extends QuestionName> = ReturnType<Questions[N]>;

// Answers made of arrays that the model keeps: these are copied on their way to the page.
export const kept: ReadonlySet<QuestionName> = new Set<QuestionName>(["shape", "column"]);

export function answer<N extends QuestionName>(model: Model, name: N, query: Query, args: ArgumentsOf<N>): AnswerOf<N> {
  const question = questions[name] as unknown as (model: Model, query: Query, args: ArgumentsOf<N>) => AnswerOf<N>;
  return question(model, query, args);
}
