// What each thread did, in all: for the order of the timeline and for lists of threads.
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
