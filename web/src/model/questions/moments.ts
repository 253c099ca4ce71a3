// What threads did within a short time range, in enough detail for a description.
import { Query } from "../filters";
import { awaitEvent } from "../head";
import { overlap, samplesOf, spansIn, touches } from "../passing";
import { Model } from "../selection";
import { activities, Activity } from "../states";
import { Kind } from "../tree";

export interface Moment {
  wall: number; // ns, summed over all threads
  cpu: number;
  samples: number;
  activity: Float64Array; // ns
  calls: [call: string, ns: number][]; // system calls in which threads blocked; longest first
  // Innermost functions of the time spent computing, without waiting for the GIL; of everything if nothing computed.
  functions: [id: number, ns: number][];
  // By CPU time, a Python function including the native code that it calls; without markers, which are no code.
  used: [id: number, ns: number][];
  threads: [thread: number, ns: number][]; // those that ran
  // Functions, outermost first, if there is only one interval.
  only: { stack: number[]; start: number; wall: number } | null;
}

const named = 3; // entries per list

function longest<K>(sums: Map<K, number>): [K, number][] {
  return Array.from(sums).sort((a, b) => b[1] - a[1]).slice(0, named);
}

// Without function 0, which means none.
function mostOf(sums: Float64Array): [number, number][] {
  const most: [number, number][] = [];
  for (let f = 1; f < sums.length; ++f) {
    if (sums[f] <= 0 || (most.length === named && sums[f] <= most[named - 1][1])) continue;
    let at = most.length;
    while (at > 0 && most[at - 1][1] < sums[f]) --at;
    most.splice(at, 0, [f, sums[f]]);
    most.length = Math.min(most.length, named);
  }
  return most;
}

const add = <K>(sums: Map<K, number>, key: K, ns: number) => void sums.set(key, (sums.get(key) ?? 0) + ns);

// `cpu`: only what ran on this CPU; -1: all.
export function moment(model: Model, query: Query,
  { threads, from, to, cpu: onCpu }: { threads: number[]; from: number; to: number; cpu: number }): Moment
{
  const { passes } = model.select(query);
  const { start, wall, cpu, samples, node, state, activity, kind, cpuNumber, event, endpoint } =
    model.recording.intervals;
  const { catalogue, functions, functionNode } = model.recording;
  const out: Moment = { wall: 0, cpu: 0, samples: 0, activity: new Float64Array(activities), calls: [], functions: [],
    used: [], threads: [], only: null };
  const [calls, ran] = [new Map<string, number>(), new Map<number, number>()];
  // Arrays by function: a range may have a million intervals.
  const [computing, all, used] = [1, 2, 3].map(() => new Float64Array(catalogue.functions.name.length));
  const awaits = awaitEvent(catalogue.head);
  let found = 0;
  let last = -1;
  for (const thread of threads) {
    if (!passes.thread[thread]) continue;
    const [first, end] = model.inTime.of(thread, from, to);
    const spans = spansIn(passes, thread, from, to);
    for (let i = first; i < end; ++i) {
      if ((passes.node[node[i]] & passes.kind[kind[i]] & passes.endpoint[endpoint[i]]) === 0 ||
        (awaits && event[i] === awaits)) continue;
      if (onCpu >= 0 && (cpuNumber[i] !== onCpu + 1 || activity[i] > Activity.collecting)) continue;
      const part = overlap(spans, start[i], wall[i]);
      if (!touches(spans, start[i], part, wall[i])) continue;
      const share = part < wall[i] ? part / wall[i] : 1;
      const f = functions.label[functionNode[node[i]]];
      ++found;
      last = i;
      out.wall += part;
      const spent = share < 1 ? Math.round(cpu[i] * share) : cpu[i];
      out.cpu += spent;
      if (catalogue.functions.kind[f] !== Kind.marker)
        used[functions.label[functions.owner[functionNode[node[i]]]]] += spent;
      out.samples += samplesOf(samples[i], share);
      out.activity[activity[i]] += part;
      if (activity[i] === Activity.blocked) add(calls, catalogue.states[state[i]].call, part);
      else if (activity[i] <= Activity.runnable) computing[f] += part;
      if (activity[i] <= Activity.collecting) add(ran, thread, part);
      all[f] += part;
    }
  }
  out.calls = longest(calls).filter(([call]) => call);
  out.functions = mostOf(computing.some((ns) => ns > 0) ? computing : all);
  out.used = mostOf(used);
  out.threads = longest(ran);
  if (found === 1) {
    const stack: number[] = [];
    for (let at = functionNode[node[last]]; at > 0; at = functions.parent[at]) stack.push(functions.label[at]);
    out.only = { stack: stack.reverse(), start: start[last], wall: wall[last] };
  }
  return out;
}
