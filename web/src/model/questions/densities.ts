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

const always: [number, number][] = [[-Infinity, Infinity]];

// Adds every passing stretch of a thread in the range to the bins that it lies in. `slot`: where its bin 0 is; below 0: nowhere.
function addParts(model: Model, query: Query, thread: number, { from, to, bins }: Range, into: Float32Array, slot: (stretch: number) => number): void {
  const { passes } = model.select(query);
  if (!passes.thread[thread]) return;
  const { start, wall, node, state, doing } = model.recording.stretches;
  const { node: nodePasses, state: statePasses, doing: doingPasses } = passes;
  const length = (to - from) / bins;
  const spans = passes.spans ?? always;
  const [first, last] = model.inTime.of(thread, from, to);
  for (let i = first; i < last; ++i) {
    const end = start[i] + wall[i];
    if (end <= from || (nodePasses[node[i]] & statePasses[state[i]] & doingPasses[doing[i]]) === 0) continue;
    const at = slot(i);
    if (at < 0) continue;
    for (let s = 0; s < spans.length; ++s) {
      const a = Math.max(start[i], from, spans[s][0]) - from;
      const b = Math.min(end, to, spans[s][1]) - from;
      for (let bin = Math.max(0, Math.floor(a / length)); bin < bins && bin * length < b; ++bin) {
        const part = Math.min(b, (bin + 1) * length) - Math.max(a, bin * length);
        if (part > 0) into[at + bin * activities] += part;
      }
    }
  }
}

// A row is a list of threads: their times are added up.
export function densities(model: Model, query: Query, { rows, ...range }: { rows: number[][] } & Range): Densities {
  const { activity } = model.recording.stretches;
  const { bins } = range;
  const time = new Float32Array(rows.length * bins * activities);
  rows.forEach((threads, row) => {
    const base = row * bins * activities;
    const slot = (i: number) => base + activity[i];
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
