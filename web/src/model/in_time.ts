// Finds a thread's intervals in a range of time without a scan. No DOM.
import { Intervals } from "./recording";

export class InTime {
  // The latest end of this interval and all before it. A binary search needs this maximum: in recordings of other tools
  // an interval may lie within the previous one.
  private readonly reach: Float64Array;

  constructor(private readonly intervals: Intervals) {
    const { first, start, wall } = intervals;
    this.reach = new Float64Array(start.length);
    for (let t = 0; t + 1 < first.length; ++t) {
      let furthest = -Infinity;
      for (let i = first[t]; i < first[t + 1]; ++i) this.reach[i] = furthest = Math.max(furthest, start[i] + wall[i]);
    }
  }

  // Between the two indexes are all of the thread's intervals that overlap the range or begin in it; some of them may
  // not.
  of(thread: number, from: number, to: number): [number, number] {
    const { first, start } = this.intervals;
    const [begin, end] = [first[thread], first[thread + 1]];
    // An interval of length 0 at `from` itself ends there too.
    return [lowest(begin, end, (i) => this.reach[i] >= from), lowest(begin, end, (i) => start[i] >= to)];
  }
}

// The first index for which `holds` is true; it must be true for all after that.
export function lowest(low: number, high: number, holds: (i: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
