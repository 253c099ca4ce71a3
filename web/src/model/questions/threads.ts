// What each thread did in total: for the timeline's order and for lists of threads.
import { Query } from "../filters";
import { samplesOf } from "../passing";
import { Model } from "../selection";
import { activities } from "../states";

export interface ThreadTotals {
  activity: Float64Array; // ns, thread by thread: thread * activities + Activity
  cpu: Float64Array; // ns, by thread
  samples: Float64Array;
}

// For the selection.
export function threads(model: Model, query: Query): ThreadTotals {
  const { first, interval, part: parts } = model.select(query).passing;
  const { wall, cpu, samples, activity } = model.recording.intervals;
  const count = first.length - 1;
  const out: ThreadTotals = { activity: new Float64Array(count * activities), cpu: new Float64Array(count),
    samples: new Float64Array(count) };
  for (let t = 0; t < count; ++t) {
    const row = t * activities;
    let [used, counts] = [0, 0];
    for (let k = first[t]; k < first[t + 1]; ++k) {
      const i = interval[k];
      if (parts && parts[k] < wall[i]) {
        const share = parts[k] / wall[i];
        out.activity[row + activity[i]] += parts[k];
        used += Math.round(cpu[i] * share);
        counts += samplesOf(samples[i], share);
        continue;
      }
      out.activity[row + activity[i]] += wall[i];
      used += cpu[i];
      counts += samples[i];
    }
    out.cpu[t] = used;
    out.samples[t] = counts;
  }
  return out;
}
