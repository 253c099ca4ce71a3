// Filters that can be set without pointing at a frame: by process, thread, language and state. The first menu chooses
// the field, the second the value.
import { Catalogue } from "../model/catalogue";
import { Filter, Mode } from "../model/filters";
import { languages } from "../model/languages";
import { stateWords } from "../model/states";
import { MenuItem } from "../views/view";
import { filterWords } from "./filter_words";

type Field = "process" | "thread" | "recording" | "language" | "state";

const questions: Record<Field, [string, string]> = {
  thread: ["Only one thread…", "Without a thread…"],
  process: ["Only one process…", "Without a process…"],
  recording: ["Only one recording…", "Without one recording…"],
  language: ["Only time spent in a language…", "Without time spent in a language…"],
  state: ["Only while in a state…", "Not while in a state…"],
};

function choices(catalogue: Catalogue, field: Field, mode: Mode): Filter[] {
  if (field === "language") return languages.filter((one) => catalogue.functions.language.includes(one)).map((one) => ({ field, mode, values: [one] }));
  if (field === "state") return stateWords.map((one) => ({ field, mode, values: [one] }));
  const rows = field === "process" ? catalogue.processes : field === "thread" ? catalogue.threads : catalogue.recordings;
  return rows.map((_, id) => ({ field, mode, values: [id] }));
}

export function filterMenu(catalogue: Catalogue, set: (filter: Filter) => void, open: (items: MenuItem[]) => void): MenuItem[] {
  const fields = Object.keys(questions) as Field[];
  return (["in", "out"] as Mode[]).flatMap((mode) => fields.flatMap((field) => {
    const all = choices(catalogue, field, mode);
    // A single value leaves no choice.
    if (all.length < 2) return [];
    const text = questions[field][mode === "in" ? 0 : 1];
    return [{ text, run: () => open(all.map((filter) => ({ text: filterWords(catalogue, filter), run: () => set(filter) }))) }];
  }));
}
