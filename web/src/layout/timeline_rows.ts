// Which rows a timeline has and their order: threads by process, busiest first; threads that hardly run are folded into
// one row. No DOM.
import { Catalogue } from "../model/catalogue";
import { Filter } from "../model/filters";
import { ThreadTotals } from "../model/questions/threads";
import { activities, Activity } from "../model/states";

export type TimelineRow =
  | { kind: "process"; process: number; threads: number[]; busy: number }
  | { kind: "thread"; thread: number; busy: number; busiest: boolean }
  | { kind: "folded"; threads: number[]; ran: number; open: boolean } // ran: ns that they computed, in total
  | { kind: "cpu"; cpu: number };

export interface TimelineRows {
  rows: TimelineRow[];
  threads: number[]; // all rows' threads
  filteredOut: number; // threads
  without: number; // threads left without data by the other filters
  busiest: number; // -1: no thread ran
}

const mostRows = 9; // visible before they scroll, if the window is large enough
const leastRows = 3;
const spare = 3; // rows requested above and below the visible ones

// How many of the rows are visible at once, in a window of that many rows' height.
export const visibleRows = (count: number, window: number) =>
  Math.max(1, Math.min(count, Math.max(leastRows, Math.min(mostRows, Math.floor(window * 0.3)))));

// The rows between two heights (in rows), and a few around them; `first`: the number of the first one.
export function rowsAround<T>(rows: T[], from: number, to: number): { first: number; rows: T[] } {
  const first = Math.max(0, Math.floor(from) - spare);
  return { first, rows: rows.slice(first, Math.ceil(to) + spare) };
}

// From the rule of `--show work` (docs/decisions/0005): below this share, a thread only waits.
const hardlyRuns = 0.005;
// Fewer do not clutter the view.
const worthFolding = 4;

const computed = (totals: ThreadTotals, thread: number) => {
  let sum = 0;
  for (let activity = 0; activity < activities; ++activity) {
    if (activity !== Activity.blocked && activity !== Activity.unknown)
      sum += totals.activity[thread * activities + activity];
  }
  return sum;
};
const all = (totals: ThreadTotals, thread: number) =>
  totals.activity.subarray(thread * activities, (thread + 1) * activities).reduce((sum, ns) => sum + ns, 0);

// CPU time; the time found computing where the recording has no CPU times.
export function busyTimes(totals: ThreadTotals): Float64Array {
  return totals.cpu.some((ns) => ns > 0) ? totals.cpu : totals.cpu.map((_, thread) => computed(totals, thread));
}

export function threadPasses(catalogue: Catalogue, filters: readonly Filter[], thread: number): boolean {
  return filters.every((filter) => {
    if (filter.field === "thread") return filter.values.includes(thread) === (filter.mode === "in");
    if (filter.field === "recording")
      return filter.values.includes(catalogue.threads[thread].recording) === (filter.mode === "in");
    if (filter.field === "process")
      return filter.values.includes(catalogue.threads[thread].process) === (filter.mode === "in");
    return true;
  });
}

// `totals`: after all filters except those by time, so that rows keep their places when another range is brushed.
export function timelineRows(catalogue: Catalogue, totals: ThreadTotals, filters: readonly Filter[],
  unfold: boolean): TimelineRows
{
  const busy = busyTimes(totals);
  const threads = catalogue.threads.map((_, thread) => thread).filter((thread) => !catalogue.threads[thread].ofTasks);
  const passing = threads.filter((thread) => threadPasses(catalogue, filters, thread));
  const seen = passing.filter((thread) => totals.samples[thread] > 0 || all(totals, thread) > 0);
  const named = new Set(
    filters.flatMap((filter) => (filter.field === "thread" && filter.mode === "in" ? filter.values : [])),
  );
  const isMain = (thread: number) => {
    const { process, tid } = catalogue.threads[thread];
    return process >= 0 && tid !== 0 && catalogue.processes[process]?.pid === tid;
  };
  const idle = seen.filter((thread) =>
    !named.has(thread) && !isMain(thread) && computed(totals, thread) < hardlyRuns * all(totals, thread)
  );
  const folded = new Set(idle.length >= worthFolding ? idle : []);
  const order = (a: number, b: number) => busy[b] - busy[a] || computed(totals, b) - computed(totals, a) || a - b;
  const active = seen.filter((thread) => !folded.has(thread)).sort(order);
  const busiest = active.length && busy[active[0]] > 0 ? active[0] : -1;

  const rows: TimelineRow[] = [];
  const put = (thread: number) =>
    rows.push({ kind: "thread", thread, busy: busy[thread], busiest: thread === busiest });
  const groups = new Map<number, number[]>();
  for (const thread of active) {
    const { process } = catalogue.threads[thread];
    groups.set(process, [...(groups.get(process) ?? []), thread]);
  }
  const sum = (threads: number[]) => threads.reduce((ns, thread) => ns + busy[thread], 0);
  const processes = Array.from(groups).sort(([, a], [, b]) => sum(b) - sum(a));
  for (const [process, threads] of processes) {
    if (processes.length > 1) rows.push({ kind: "process", process, threads, busy: sum(threads) });
    threads.forEach(put);
  }
  if (folded.size) {
    const threads = Array.from(folded).sort(order);
    rows.push({ kind: "folded", threads, ran: threads.reduce((ns, thread) => ns + computed(totals, thread), 0),
      open: unfold });
    if (unfold) threads.forEach(put);
  }
  return { rows, threads: [...active, ...folded], filteredOut: threads.length - passing.length,
    without: passing.length - seen.length, busiest };
}

export function rowThreads(row: TimelineRow): number[] {
  return row.kind === "thread" ? [row.thread] : row.kind === "cpu" ? [] : row.threads;
}
