// Filters that can be set without pointing at a frame: by process, thread, language and state. The first menu chooses
// the field, the second the value.
import { Catalogue } from "../model/catalogue";
import { Filter, Mode } from "../model/filters";
import { languages } from "../model/languages";
import { stateWords } from "../model/states";
import { MenuItem } from "../views/view";
import { filterWords } from "./filter_words";

type Field = "endpoint" | "process" | "thread" | "recording" | "language" | "state";

const questions: Record<Field, [string, string]> = {
  endpoint: ["Only one endpoint…", "Without an endpoint…"],
  thread: ["Only one thread…", "Without a thread…"],
  process: ["Only one process…", "Without a process…"],
  recording: ["Only one recording…", "Without one recording…"],
  language: ["Only time spent in a language…", "Without time spent in a language…"],
  state: ["Only while in a state…", "Not while in a state…"],
};

// "(no endpoint)" and "(stack not read)" are last.
const byName = (a: string, b: string) => Number(a.startsWith("(")) - Number(b.startsWith("(")) || (a < b ? -1 : 1);

function choices(catalogue: Catalogue, field: Field, mode: Mode): Filter[] {
  if (field === "language")
    return languages.filter((one) => catalogue.functions.language.includes(one)).map((one) => ({ field, mode,
      values: [one] })
    );
  if (field === "endpoint")
    return catalogue.endpoints.slice().sort(byName).map((one) => ({ field, mode, values: [one] }));
  if (field === "state") return stateWords.map((one) => ({ field, mode, values: [one] }));
  const rows = field === "process"
    ? catalogue.processes
    : field === "thread"
    ? catalogue.threads
    : catalogue.recordings;
  return rows.map((_, id) => ({ field, mode, values: [id] }));
}

export function filterMenu(catalogue: Catalogue, set: (filter: Filter) => void,
  open: (items: MenuItem[]) => void): MenuItem[]
{
  const fields = Object.keys(questions) as Field[];
  return (["in", "out"] as Mode[]).flatMap((mode) =>
    fields.flatMap((field) => {
      const all = choices(catalogue, field, mode);
      // A single value leaves no choice.
      if (all.length < 2) return [];
      const text = questions[field][mode === "in" ? 0 : 1];
      return [{ text,
        run: () => open(all.map((filter) => ({ text: filterWords(catalogue, filter), run: () => set(filter) }))) }];
    })
  );
}
