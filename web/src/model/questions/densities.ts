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

// Calls `add` with every passing stretch in the range and the part of it in each bin. Stretches of one thread, in their order.
function eachPart(model: Model, query: Query, thread: number, { from, to, bins }: Range, add: (stretch: number, bin: number, ns: number) => void): void {
  const { passes } = model.select(query);
  if (!passes.thread[thread]) return;
  const { start, wall, node, state, doing } = model.recording.stretches;
  const length = (to - from) / bins;
  const spans = passes.spans ?? [[-Infinity, Infinity]];
  const [first, last] = model.inTime.of(thread, from, to);
  for (let i = first; i < last; ++i) {
    const end = start[i] + wall[i];
    if (end <= from || (passes.node[node[i]] & passes.state[state[i]] & passes.doing[doing[i]]) === 0) continue;
    for (let s = 0; s < spans.length; ++s) {
      const a = Math.max(start[i], from, spans[s][0]) - from;
      const b = Math.min(end, to, spans[s][1]) - from;
      for (let bin = Math.max(0, Math.floor(a / length)); bin < bins && bin * length < b; ++bin) {
        const part = Math.min(b, (bin + 1) * length) - Math.max(a, bin * length);
        if (part > 0) add(i, bin, part);
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
    for (const thread of threads) eachPart(model, query, thread, range, (i, bin, ns) => { time[base + bin * activities + activity[i]] += ns; });
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
  for (let thread = 0; thread < model.recording.catalogue.threads.length; ++thread) {
    eachPart(model, query, thread, range, (i, bin, ns) => {
      if (ran(i)) time[((rowOf.get(cpuNumber[i] - 1) as number) * bins + bin) * activities + activity[i]] += ns;
    });
  }
  return { bins, time, numbers: numbers.slice() };
}
