// The rows of a difference: which there are, how each is judged, which are wanted.
import { Changes, Difference, Side } from "./questions/difference";
import { Kind, Label } from "./tree";

export type Part = "total" | "self";
export type Which = "all" | "changed" | "new" | "vanished";

export class DifferenceRows {
  // `inTime`: weights are nanoseconds.
  constructor(readonly found: Difference, readonly labels: readonly Pick<Label, "kind">[],
    private readonly inTime: boolean)
  {}

  // By either part.
  isCertain(row: number): boolean {
    return this.found.self.certain[row] === 1 || this.found.total.certain[row] === 1;
  }

  // Enough weight to be judged, but too few samples.
  isUnclear(row: number): boolean {
    const { self, total, before, after, margin } = this.found;
    const most = ({ before: first, after: second }: Changes) =>
      Math.max(this.scaled(first[row], before), this.scaled(second[row], after));
    return [self, total].some((part) => !part.certain[row] && !part.same[row] && most(part) >= margin.least);
  }

  verdict(row: number, part: Part): string {
    const { certain, same, before, after, difference } = this.found[part];
    if (!certain[row]) return same[row] ? "same" : "inconclusive";
    return before[row] === 0 ? "new" : after[row] === 0 ? "vanished" : difference[row] > 0 ? "grew" : "shrank";
  }

  // To sort by: what is certain comes first.
  size(row: number, part: Part): number {
    const { certain, difference } = this.found[part];
    return Math.abs(difference[row]) * (certain[row] ? 1e6 : 1);
  }

  share(row: number, part: Part, side: "before" | "after"): number {
    const whole = this.found[side].total;
    return whole > 0 ? this.found[part][side][row] / whole : 0;
  }

  // All with any weight, or those of them that are wanted.
  rows(which: Which = "all"): number[] {
    const { before, after } = this.found.total;
    const rows = this.labels.map((_, row) => row).slice(1)
      .filter((row) => this.labels[row].kind !== Kind.marker && (before[row] > 0 || after[row] > 0));
    if (which === "all") return rows;
    const gone = which === "new" ? before : which === "vanished" ? after : null;
    return rows.filter((row) => this.isCertain(row) && (!gone || gone[row] === 0));
  }

  // As the difference has it: in the unit of the weights, or in it per second.
  private scaled(value: number, side: Side): number {
    return this.found.per === "second" ? value / side.elapsed * (this.inTime ? 1 : 1e9) : value;
  }
}
