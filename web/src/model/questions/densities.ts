// What threads, or CPUs, did in equal bins of time: the timeline's rows.
import { Query } from "../filters";
import { Model } from "../selection";
import { activities, Activity } from "../states";

export interface Densities {
  bins: number;
  // ns in each state: (row * bins + bin) * activities + Activity. A row of one thread adds up to at most a bin's length.
  time: Float32Array;
}

interface Range {
  from: number; // ns
  to: number;
  bins: number;
}

// Adds what lies from a to b (ns since the range's start) to the bins that it lies in; bin 0 is at `at`.
function addPart(into: Float32Array, at: number, a: number, b: number, length: number, bins: number): void {
  let bin = Math.floor(a / length);
  if (bin < bins && b <= (bin + 1) * length) { // as nearly all do
    if (b > a) into[at + bin * activities] += b - a;
    return;
  }
  for (; bin < bins && bin * length < b; ++bin) {
    const part = Math.min(b, (bin + 1) * length) - Math.max(a, bin * length);
    if (part > 0) into[at + bin * activities] += part;
  }
}

// Adds every passing stretch of a thread in the range to the bins that it lies in. `slot`: where its bin 0 is; below 0: nowhere.
function addParts(model: Model, query: Query, thread: number, { from, to, bins }: Range, into: Float32Array, slot: (stretch: number) => number): void {
  const { passes } = model.select(query);
  if (!passes.thread[thread]) return;
  const { start, wall, node, state, doing } = model.recording.stretches;
  const { node: nodePasses, state: statePasses, doing: doingPasses, spans } = passes;
  const length = (to - from) / bins;
  const [first, last] = model.inTime.of(thread, from, to);
  for (let i = first; i < last; ++i) {
    const end = start[i] + wall[i];
    if (end <= from || (nodePasses[node[i]] & statePasses[state[i]] & doingPasses[doing[i]]) === 0) continue;
    const at = slot(i);
    if (at < 0) continue;
    const begin = start[i] < from ? from : start[i];
    const until = end > to ? to : end;
    if (!spans) {
      addPart(into, at, begin - from, until - from, length, bins);
      continue;
    }
    for (let s = 0; s < spans.length; ++s) {
      const [a, b] = [Math.max(begin, spans[s][0]), Math.min(until, spans[s][1])];
      if (b > a) addPart(into, at, a - from, b - from, length, bins);
    }
  }
}

// A row is a list of threads: their times are added up. `busy`: only while they ran, or would have, had they had a CPU or the GIL.
export function densities(model: Model, query: Query, { rows, busy, ...range }: { rows: number[][]; busy?: boolean } & Range): Densities {
  const { activity } = model.recording.stretches;
  const { bins } = range;
  const time = new Float32Array(rows.length * bins * activities);
  rows.forEach((threads, row) => {
    const base = row * bins * activities;
    const slot = (i: number) => (busy && activity[i] >= Activity.blocked ? -1 : base + activity[i]);
    for (const thread of threads) addParts(model, query, thread, range, time, slot);
  });
  return { bins, time };
}

// Which CPUs threads ran on, and a row for each of them: only time spent running, as that is all that a CPU sees. What a
// thread ran between two looks may have been on two CPUs; it counts for the one on which it was last seen.
export function cpus(model: Model, query: Query, range: Range): Densities & { numbers: Uint32Array } {
  const { activity, cpuNumber } = model.recording.stretches;
  const ran = (i: number) => cpuNumber[i] > 0 && activity[i] <= Activity.collecting;
  const numbers = model.cpuNumbers;
  const rowOf = new Map(Array.from(numbers, (number, row) => [number, row]));
  const { bins } = range;
  const time = new Float32Array(numbers.length * bins * activities);
  const slot = (i: number) => (ran(i) ? (rowOf.get(cpuNumber[i] - 1) as number) * bins * activities + activity[i] : -1);
  for (let thread = 0; thread < model.recording.catalogue.threads.length; ++thread) addParts(model, query, thread, range, time, slot);
  return { bins, time, numbers: numbers.slice() };
}
