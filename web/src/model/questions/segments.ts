// What threads did over time, for a flame chart: stacks in time order.
import { By } from "../head";
import { Query } from "../filters";
import { eachPart, spansIn } from "../passing";
import { Model } from "../selection";
import { activities } from "../states";

export interface Segments {
  first: Uint32Array; // those of the row-th thread are first[row] to first[row + 1], in time order
  start: Float64Array; // ns since the recording's start
  end: Float64Array;
  node: Uint32Array; // of the tree
  activity: Uint8Array; // of the longest part
  exact: Uint8Array; // by row; 0: more intervals than fit, each bin shows its longest stack
}

class Row {
  readonly start: number[] = [];
  readonly end: number[] = [];
  readonly node: number[] = [];
  readonly activity: number[] = [];

  // Contiguous equal parts become one segment. Starts are stored in microseconds, lengths in nanoseconds.
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
  model: Model,
  query: Query,
  { threads, from, to, bins, by }: { threads: number[]; from: number; to: number; bins: number; by: By },
): Segments {
  const selection = model.select(query);
  const { start, wall, node, activity } = model.recording.intervals;
  const { functionNode } = model.recording;
  const nodeOf = (i: number) => (by === "line" ? node[i] : functionNode[node[i]]);
  const length = (to - from) / bins;

  // Until `use` returns false.
  const each: Each = (thread, use) => {
    const { interval } = selection.passing;
    const [begin, end] = selection.passingIn(thread, from, to);
    const spans = spansIn(selection.passes, thread, from, to);
    for (let k = begin; k < end; ++k) {
      const i = interval[k];
      if (!eachPart(spans, start[i], wall[i], (a, b) => use(i, a, b))) return;
    }
  };

  // Whether the range has at most `most` intervals.
  const fits = (thread: number, most: number) => {
    let count = 0;
    each(thread, () => ++count <= most);
    return count <= most;
  };

  const out = new Row();
  const first = new Uint32Array(threads.length + 1);
  const exact = new Uint8Array(threads.length);
  let sums: Float64Array | null = null;
  threads.forEach((thread, row) => {
    exact[row] = fits(thread, 2 * bins) ? 1 : 0;
    const mine = new Row();
    if (exact[row]) each(thread, (i, a, b) => mine.put(a, b, nodeOf(i), activity[i]));
    else byBins(each, thread, nodeOf, activity, from, length,
        sums ??= new Float64Array(selection.tree(by).parent.length * activities), mine);
    for (let i = 0; i < mine.start.length; ++i)
      out.start.push(mine.start[i]), out.end.push(mine.end[i]), out.node.push(mine.node[i]),
        out.activity.push(mine.activity[i]);
    first[row + 1] = out.start.length;
  });
  return { first, exact, start: Float64Array.from(out.start), end: Float64Array.from(out.end),
    node: Uint32Array.from(out.node), activity: Uint8Array.from(out.activity) };
}

type Each = (thread: number, use: (i: number, a: number, b: number) => boolean | void) => void;

// The longest stack of each bin, unless two thirds of the bin have no samples. `sums`: room for node * activities +
// activity; zero before and after.
function byBins(each: Each, thread: number, nodeOf: (i: number) => number, activity: Uint8Array, from: number,
  length: number, sums: Float64Array, into: Row): void
{
  let bin = -1;
  let covered = 0; // ns
  const met: number[] = []; // in this bin
  const flush = () => {
    if (covered >= length / 3) {
      let best = -1;
      let most = 0;
      for (const key of met) if (sums[key] > most) [best, most] = [key, sums[key]];
      into.put(from + bin * length, from + (bin + 1) * length, Math.floor(best / activities), best % activities);
    }
    for (const key of met) sums[key] = 0;
    met.length = 0;
    covered = 0;
  };
  each(thread, (i, a, b) => {
    for (let at = Math.floor((a - from) / length); from + at * length < b; ++at) {
      if (at !== bin) {
        if (bin >= 0) flush();
        bin = at;
      }
      const part = Math.min(b, from + (at + 1) * length) - Math.max(a, from + at * length);
      if (part <= 0) continue;
      const key = nodeOf(i) * activities + activity[i];
      if (sums[key] === 0) met.push(key);
      sums[key] += part;
      covered += part;
    }
  });
  if (bin >= 0) flush();
}
