// Stretches by time: which of a thread's lie in a range, without looking at all of them. No DOM.
import { Stretches } from "./recording";

export class InTime {
  // How far the thread's time is told with this stretch and all before it. A stretch's own end would not do for a search by
  // halves: one that another tool recorded may lie within the one before it.
  private readonly reach: Float64Array;

  constructor(private readonly stretches: Stretches) {
    const { first, start, wall } = stretches;
    this.reach = new Float64Array(start.length);
    for (let t = 0; t + 1 < first.length; ++t) {
      let furthest = -Infinity;
      for (let i = first[t]; i < first[t + 1]; ++i) this.reach[i] = furthest = Math.max(furthest, start[i] + wall[i]);
    }
  }

  // From the first to before the second lie all stretches of the thread that overlap the range, or begin in it; some between
  // them may not.
  of(thread: number, from: number, to: number): [number, number] {
    const { first, start } = this.stretches;
    const [begin, end] = [first[thread], first[thread + 1]];
    // A stretch without length, at `from` itself, has its reach there too.
    return [lowest(begin, end, (i) => this.reach[i] >= from), lowest(begin, end, (i) => start[i] >= to)];
  }
}

// The first for which it holds; it holds for all behind that.
export function lowest(low: number, high: number, holds: (i: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
