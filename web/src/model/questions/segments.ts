// What threads did one after the other, for a flame chart: stacks in the order of time.
import { By } from "../head";
import { Query } from "../filters";
import { Model } from "../selection";

export interface Segments {
  first: Uint32Array; // those of the row-th thread are first[row] to first[row + 1], in the order of time
  start: Float64Array; // ns since the recording's start
  end: Float64Array;
  node: Uint32Array; // of the tree
  activity: Uint8Array; // of the longest part
  exact: Uint8Array; // by row; 0: more stretches than there is room for, each bin shows the stack with most of its time
}

class Row {
  readonly start: number[] = [];
  readonly end: number[] = [];
  readonly node: number[] = [];
  readonly activity: number[] = [];

  // What goes on is one segment. Starts are kept in microseconds, lengths in nanoseconds.
  put(from: number, to: number, node: number, activity: number): void {
    const last = this.end.length - 1;
    if (last >= 0 && this.node[last] === node && this.activity[last] === activity && from - this.end[last] <= slack) {
      this.end[last] = to;
      return;
    }
    this.start.push(from);
    this.end.push(to);
    this.node.push(node);
    this.activity.push(activity);
  }
}

export const slack = 2000; // ns

export function segments(
  model: Model, query: Query, { threads, from, to, bins, by }: { threads: number[]; from: number; to: number; bins: number; by: By },
): Segments {
  const { passes } = model.select(query);
  const { start, wall, node, state, activity, doing } = model.recording.stretches;
  const { functionNode } = model.recording;
  const nodeOf = (i: number) => (by === "line" ? node[i] : functionNode[node[i]]);
  const spans = (passes.spans ?? [[-Infinity, Infinity]]).map(([a, b]): [number, number] => [Math.max(a, from), Math.min(b, to)]).filter(([a, b]) => a < b);
  const length = (to - from) / bins;

  const each = (thread: number, use: (i: number, a: number, b: number) => void) => {
    if (!passes.thread[thread]) return;
    const [first, last] = model.inTime.of(thread, from, to);
    for (let i = first; i < last; ++i) {
      if ((passes.node[node[i]] & passes.state[state[i]] & passes.doing[doing[i]]) === 0) continue;
      for (const span of spans) {
        const a = Math.max(span[0], start[i]);
        const b = Math.min(span[1], start[i] + wall[i]);
        if (a < b) use(i, a, b);
      }
    }
  };

  const out = new Row();
  const first = new Uint32Array(threads.length + 1);
  const exact = new Uint8Array(threads.length);
  threads.forEach((thread, row) => {
    let count = 0;
    each(thread, () => { ++count; });
    exact[row] = count <= 2 * bins ? 1 : 0;
    const mine = new Row();
    if (exact[row]) each(thread, (i, a, b) => mine.put(a, b, nodeOf(i), activity[i]));
    else byBins(each, thread, nodeOf, activity, from, length, mine);
    for (let i = 0; i < mine.start.length; ++i) out.start.push(mine.start[i]), out.end.push(mine.end[i]), out.node.push(mine.node[i]), out.activity.push(mine.activity[i]);
    first[row + 1] = out.start.length;
  });
  return { first, exact, start: Float64Array.from(out.start), end: Float64Array.from(out.end), node: Uint32Array.from(out.node), activity: Uint8Array.from(out.activity) };
}

type Each = (thread: number, use: (i: number, a: number, b: number) => void) => void;

// In each bin the stack with most of the time, unless nothing was seen in two thirds of it.
function byBins(each: Each, thread: number, nodeOf: (i: number) => number, activity: Uint8Array, from: number, length: number, into: Row): void {
  let bin = -1;
  let told = 0; // ns
  const sums = new Map<number, number>(); // node * 8 + activity
  const flush = () => {
    if (told >= length / 3) {
      let best = -1;
      let most = 0;
      for (const [key, ns] of sums) if (ns > most) [best, most] = [key, ns];
      into.put(from + bin * length, from + (bin + 1) * length, Math.floor(best / 8), best % 8);
    }
    sums.clear();
    told = 0;
  };
  each(thread, (i, a, b) => {
    for (let at = Math.floor((a - from) / length); from + at * length < b; ++at) {
      if (at !== bin) {
        if (bin >= 0) flush();
        bin = at;
      }
      const part = Math.min(b, from + (at + 1) * length) - Math.max(a, from + at * length);
      if (part <= 0) continue;
      const key = nodeOf(i) * 8 + activity[i];
      sums.set(key, (sums.get(key) ?? 0) + part);
      told += part;
    }
  });
  if (bin >= 0) flush();
}
