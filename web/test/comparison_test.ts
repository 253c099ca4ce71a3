// What differs between two recordings, against the cases that tests/report/comparison_test.cpp holds phlox diff to.
import cases from "../../tests/cases/comparison.json";
import { itemsOf } from "../src/model/analysis";
import { Amount, judgeRecordings } from "../src/model/comparison";
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { samplingError } from "../src/model/sampling_error";
import { Model } from "../src/model/selection";
import { ensure, equal, test } from "./harness";
import { byName, recordingOf, Stretch } from "./recordings";

const near = (actual: number, expected: number, words: string, error = 1) =>
  ensure(Math.abs(actual - expected) <= error, `${words}: ${actual}, expected ${expected}`);

test("two recordings are judged as in the common cases", () => {
  const amount = ([value, variance, step, unseen]: number[]): Amount => ({ value, variance, step, unseen });
  for (const row of cases.judged) {
    const found = judgeRecordings(amount(row.before), amount(row.after), { own: row.own, least: row.least },
      row.compared);
    const error = 1e-5 * (Math.abs(row.low) + Math.abs(row.high) + 1e-9);
    near(found.difference, row.difference, row.name, error);
    near(found.low, row.low, row.name, error);
    near(found.high, row.high, row.name, error);
    equal([row.name, found.outcome], [row.name, row.outcome]);
  }
});

const modelOf = (rows: (typeof cases.sampling)[0]["stretches"]): Model =>
  new Model(recordingOf(rows.map(({ thread, start, wall, samples, stack, state }): Stretch => ({
    thread,
    start,
    wall,
    cpu: state === 0 ? wall : 0,
    samples,
    stack: stack.map((name): [string, number] => [name, 1]),
    state,
    doing: state === 0 ? 0 : 1,
  }))));

test("the error of sampling is that of the common cases", () => {
  for (const row of cases.sampling) {
    const model = modelOf(row.stretches);
    const { functions, catalogue } = model.recording;
    const found = samplingError(model.select(everything), "function", "wall",
      itemsOf(functions, catalogue.functions.name.length));
    near(found.step, row.step, row.name);
    near(found.whole, row.whole, row.name);
    for (const [side, expected] of [[found.self, row.self], [found.sum, row.total]] as const) {
      for (const [name, variance] of Object.entries(expected))
        near(side[byName(model.recording, name)], variance as number, `${row.name}: ${name}`);
    }
  }
});

test("a phase that is gone differs, and a larger share of a smaller whole does not", () => {
  const ms = 1e6;
  const phase = (start: number, samples: number, name: string): Stretch => ({ thread: 0, start: start * ms,
    wall: samples * 5 * ms, cpu: 0, samples, stack: [["main", 1], [name, 1]], state: 0, doing: 0 });
  // 2 s of load and 2 s of fit, then fit alone: of times it is the time in each second.
  const model = new Model(
    recordingOf([phase(0, 400, "load"), phase(2000, 400, "fit"), phase(4000, 400, "fit"), phase(6000, 400, "fit")]),
  );
  const time = (from: number,
    to: number) => [{ field: "time" as const, mode: "in" as const, from: from * ms, to: to * ms }];
  const found = answer(model, "difference", everything, { sides: { before: time(0, 4000), after: time(4000, 8000) },
    by: "function", weight: "wall" });
  equal(found.per, "second");
  const [load, main, fit] = ["load", "main", "fit"].map((name) => byName(model.recording, name));
  equal([found.self.certain[load], found.total.certain[main], found.total.same[main], found.self.certain[fit]], [1, 0,
    1, 1]);
  near(found.self.difference[load], -0.5, "half of each second", 0.01);
  equal([found.before.elapsed, found.after.elapsed], [4000 * ms, 4000 * ms]);
});
