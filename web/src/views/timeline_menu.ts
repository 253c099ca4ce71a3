// Menu items of a timeline row or colour.
import { Sight } from "../layout/timeline";
import { TimelineRow } from "../layout/timeline_rows";
import { Filter, Mode } from "../model/filters";
import { Language, languages } from "../model/languages";
import { Activity, activityWords, StateWord } from "../model/states";
import { filtersIn, formatFilter } from "../state/fragment";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, spanWords } from "../words";
import { shortName } from "./parts/thread_names";
import { MenuItem, Page } from "./view";

const filter = (page: Page, ...filters: Filter[]) => () => {
  let { state } = page;
  for (const one of filters) state = { ...state, ...withFilter(state, one) };
  page.change({ filters: state.filters });
};
const both = (make: (mode: Mode) => MenuItem): MenuItem[] => [make("in"), make("out")];
const word = (mode: Mode) => (mode === "in" ? "Only" : "Without");

export function rowItems(page: Page, row: TimelineRow, toggleFolded: () => void): MenuItem[] {
  const { catalogue } = page;
  const ofProcess = (process: number) =>
    both((mode) => ({
      text: `${word(mode)} process ${catalogue.processes[process].pid}`,
      run: filter(page, { field: "process", mode, values: [process] }),
    }));
  switch (row.kind) {
    case "cpu":
      return [];
    case "process":
      return row.process < 0 ? [] : ofProcess(row.process);
    case "folded": {
      const these = `these ${countWords(row.threads.length)} threads`;
      return [
        ...both((mode) => ({ text: `${word(mode)} ${these}`,
          run: filter(page, { field: "thread", mode, values: row.threads }) })
        ),
        { text: row.open ? "Fold them" : "A row each", run: toggleFolded },
      ];
    }
    case "thread": {
      const { thread } = row;
      const { process, label } = catalogue.threads[thread];
      const called = shortName(catalogue, thread);
      const items = both((mode) => ({ text: `${word(mode)} thread ${called}`,
        run: filter(page, { field: "thread", mode, values: [thread] }) })
      );
      if (catalogue.processes.length > 1 && process >= 0) items.push(...ofProcess(process));
      items.push({ text: "Copy the thread's name", run: () => page.copy(label) });
      return items;
    }
  }
}

export type TimeFilter = Filter & { field: "time" };

// Menu items of the range that a filter selects.
export function rangeItems(page: Page, range: TimeFilter, whole: Sight, zoom: () => void): MenuItem[] {
  const { filters } = page.state;
  // Makes the range one side of a difference, instead of a filter. If the other side is not chosen yet, it is the
  // longer rest.
  const compare = (side: "a" | "b") => () => {
    const other = filtersIn(own(page.state, "difference", side === "a" ? "b" : "a"))[0];
    const rest: Filter = range.from - whole.from > whole.to - range.to
      ? { field: "time", mode: "in", from: Math.round(whole.from), to: range.from } :
      { field: "time", mode: "in", from: range.to, to: Math.ceil(whole.to) };
    const texts = [formatFilter(range), formatFilter(other?.field === "time" && other.mode === "in" ? other : rest)];
    const [a, b] = side === "a" ? texts : texts.reverse();
    let next = { ...page.state, ...withOwn(page.state, "difference", "a", a) };
    next = { ...next, ...withOwn(next, "difference", "b", b) };
    page.change({ own: next.own, view: "difference", filters: filters.filter((filter) => filter !== range) });
  };
  return [
    { text: `Without ${spanWords(range.from, range.to)}`, run: () =>
      page.change({
        filters: filters.map((filter) => (filter === range ? { ...range, mode: "out" as const } : filter)),
      }) },
    { text: "Zoom to the range", run: zoom },
    { text: "Compare: the range is the first of two", run: compare("a") },
    { text: "Compare: the range is the second of two", run: compare("b") },
  ];
}

const compiled = languages.filter((language) => !(["Python", "kernel", "other"] as Language[]).includes(language));

// As filters: by state, and for computing also by the language of the innermost frame.
export function activityItems(page: Page, activity: Activity): MenuItem[] {
  const state = (mode: Mode, value: StateWord): Filter => ({ field: "state", mode, values: [value] });
  const words: Partial<Record<Activity, StateWord>> = {
    [Activity.collecting]: "collecting",
    [Activity.runnable]: "runnable",
    [Activity.gil]: "gil-waits",
    [Activity.blocked]: "idle",
  };
  const value = words[activity];
  if (value) {
    return [
      { text: `Only while ${activityWords[activity]}`, run: filter(page, state("in", value)) },
      { text: `Not while ${activityWords[activity]}`, run: filter(page, state("out", value)) },
    ];
  }
  if (activity === Activity.unknown) return [];
  const values: Language[] = activity === Activity.python
    ? ["Python"]
    : activity === Activity.kernel
    ? ["kernel"]
    : [...compiled];
  return [
    { text: `Only while running ${activityWords[activity]}`,
      run: filter(page, state("in", "running"), { field: "language", mode: "in", values }) },
    { text: `Without time spent in ${activityWords[activity]}`,
      run: filter(page, { field: "language", mode: "out", values }) },
  ];
}
