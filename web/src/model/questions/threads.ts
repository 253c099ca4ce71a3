// What each thread did, and when: for the timeline and for lists of threads.
import { Query } from "../filters";
import { Model, overlap, samplesOf, touches } from "../selection";
import { activities } from "../states";

export interface ThreadTotals {
  activity: Float64Array; // ns, thread by thread: thread * activities + Activity
  cpu: Float64Array; // ns, by thread
  samples: Float64Array;
}

// Of the selection.
export function threads(model: Model, query: Query): ThreadTotals {
  const { passes } = model.select(query);
  const { first, start, wall, cpu, samples, node, state, activity, doing } = model.recording.stretches;
  const count = first.length - 1;
  const out: ThreadTotals = { activity: new Float64Array(count * activities), cpu: new Float64Array(count), samples: new Float64Array(count) };
  for (let t = 0; t < count; ++t) {
    if (!passes.thread[t]) continue;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      if ((passes.node[node[i]] & passes.state[state[i]] & passes.doing[doing[i]]) === 0) continue;
      const part = passes.spans ? overlap(passes.spans, start[i], wall[i]) : wall[i];
      if (passes.spans && !touches(passes.spans, start[i], part, wall[i])) continue;
      const share = part < wall[i] ? part / wall[i] : 1;
      out.activity[t * activities + activity[i]] += part;
      out.cpu[t] += share < 1 ? Math.round(cpu[i] * share) : cpu[i];
      out.samples[t] += samplesOf(samples[i], share);
    }
  }
  return out;
}

export interface Densities {
  bins: number;
  // ns in each state: (row * bins + bin) * activities + Activity. A row is a thread that was asked for; rows add up to at most a bin's
  // length each.
  time: Float32Array;
}

// Times of the named threads cut into equal bins from `from` to `to` (ns). `merged`: one row for all of them together.
export function densities(
  model: Model, query: Query,
  { threads: rows, from, to, bins, merged }: { threads: number[]; from: number; to: number; bins: number; merged: boolean },
): Densities {
  const { passes } = model.select(query);
  const { first, start, wall, node, state, activity, doing } = model.recording.stretches;
  const time = new Float32Array((merged ? 1 : rows.length) * bins * activities);
  const length = (to - from) / bins;
  const spans = passes.spans ?? [[-Infinity, Infinity]];
  rows.forEach((t, row) => {
    if (!passes.thread[t]) return;
    const base = merged ? 0 : row * bins * activities;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      const end = start[i] + wall[i];
      if (end <= from || start[i] >= to || (passes.node[node[i]] & passes.state[state[i]] & passes.doing[doing[i]]) === 0) continue;
      for (const [spanFrom, spanTo] of spans) {
        const a = Math.max(start[i], from, spanFrom) - from;
        const b = Math.min(end, to, spanTo) - from;
        for (let bin = Math.max(0, Math.floor(a / length)); bin < bins && bin * length < b; ++bin) {
          const part = Math.min(b, (bin + 1) * length) - Math.max(a, bin * length);
          if (part > 0) time[base + bin * activities + activity[i]] += part;
        }
      }
    }
  });
  return { bins, time };
}
