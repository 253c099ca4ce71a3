// Which thread worked for which distributed trace, when. No DOM.
import { Columns, Numbers, unzigzag } from "./columns";
import { Head } from "./head";
import { lowest } from "./in_time";

// Sorted by thread, then start; those of thread t are first[t] to first[t + 1], and do not overlap.
export interface TraceTimes {
  ids: string[]; // 32 hex digits
  first: Uint32Array;
  start: Float64Array; // ns since the recording's start
  end: Float64Array;
  trace: Numbers; // index into ids
}

export const noTraceTimes = (threads: number): TraceTimes => ({ ids: [], first: new Uint32Array(threads + 1),
  start: new Float64Array(0), end: new Float64Array(0), trace: new Uint8Array(0) });

export function readTraceTimes(head: Pick<Head, "gridFirst">, columns: Columns, threads: number): TraceTimes {
  if (!columns.has("traces")) return noTraceTimes(threads);
  const unit = 1000; // ns
  const counts = columns.numbers("thread.traceTimes");
  const starts = columns.numbers("traceTime.start");
  const lengths = columns.numbers("traceTime.length");
  const first = new Uint32Array(counts.length + 1);
  for (let t = 0; t < counts.length; ++t) first[t + 1] = first[t] + counts[t];
  const count = first[counts.length];
  if (starts.length !== count) throw new Error("the page's data is damaged: times of traces without a thread");
  const [start, end] = [new Float64Array(count), new Float64Array(count)];
  for (let t = 0; t < counts.length; ++t) {
    let at = 0;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      start[i] = head.gridFirst + (at += unzigzag(starts[i])) * unit;
      end[i] = head.gridFirst + (at += lengths[i]) * unit;
    }
  }
  const trace = Uint32Array.from(columns.numbers("traceTime.trace"), unzigzag);
  for (let i = 1; i < count; ++i) trace[i] += trace[i - 1];
  return { ids: columns.text("traces").split("\n").slice(0, -1), first, start, end, trace };
}

// The times of a thread in a range: their first index and the one past the last.
export function traceTimesIn({ first, start, end }: TraceTimes, thread: number, from: number,
  to: number): [number, number]
{
  const [low, high] = [first[thread], first[thread + 1]];
  return [lowest(low, high, (i) => end[i] > from), lowest(low, high, (i) => start[i] >= to)];
}

// In words; empty: the thread worked for none, or that is not known.
export function traceWords(times: TraceTimes, thread: number, from: number, to: number): string {
  const [low, high] = traceTimesIn(times, thread, from, to);
  const traces = new Set(times.trace.slice(low, high));
  if (traces.size > 1) return `${traces.size} traces`;
  return low < high ? times.ids[times.trace[low]] : "";
}

// When a thread worked for one of these traces.
export function timesOf(times: TraceTimes, ids: readonly string[], thread: number): [number, number][] {
  const wanted = new Set(ids.map((id) => times.ids.indexOf(id)));
  const spans: [number, number][] = [];
  for (let i = times.first[thread]; i < times.first[thread + 1]; ++i)
    if (wanted.has(times.trace[i])) spans.push([times.start[i], times.end[i]]);
  return spans;
}
