// The numbers of a difference as text, and the sentences above it.
import { element } from "../page/dom";
import { DifferenceRows } from "../model/difference_rows";
import { By, isAwait, unitOf } from "../model/head";
import { Difference, Per, Side } from "../model/questions/difference";
import { countWords, weightWords } from "../words";
import { Chosen } from "./parts/sides";
import { Page } from "./view";

export const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

// The state's weight can differ from that of an old answer, which is shown until the next one.
export class DifferenceWords {
  constructor(private readonly page: Page) {}

  get isAwait(): boolean {
    return isAwait(this.page.catalogue.head, this.page.state.weight);
  }

  get inTime(): boolean {
    return unitOf(this.page.catalogue.head, this.page.state.weight) === "ns";
  }

  time(value: number): string {
    return weightWords(value, unitOf(this.page.catalogue.head, this.page.state.weight));
  }

  // With the unit of the comparison: "4.70 s", "388 ms/s".
  amount(value: number, per: Per): string {
    return per === "second" ? `${this.time(this.inTime ? value * 1e9 : value)}/s` : this.time(value);
  }

  change(value: number, per: Per): string {
    return `${value > 0 ? "+" : value < 0 ? "−" : ""}${this.amount(Math.abs(value), per)}`;
  }

  samples(count: number): string {
    return this.isAwait ? "" : `${countWords(count)} samples`;
  }

  summary(rows: DifferenceRows, { words: [first, second], kind }: Chosen, by: By): (Node | string)[] {
    const { found } = rows;
    const { before, after } = found;
    const lengths = lengthWords(found);
    return [
      kind === "recordings" ? element("b", {}, lengths) : lengths,
      element("b", {}, capital(first)),
      `: ${this.side(before)}. `,
      element("b", {}, capital(second)),
      `: ${this.side(after)}. `,
      ...(before.total && after.total
        ? this.verdict(rows, kind, by)
        : [element("b", {}, `Nothing is shown of ${before.total ? second : first}.`)]),
    ];
  }

  private side({ total, samples }: Side): string {
    const counted = this.page.state.weight === "samples" ? "" : this.samples(samples);
    return `${this.time(total)}${counted && `, ${counted}`}`;
  }

  private verdict(rows: DifferenceRows, kind: Chosen["kind"], by: By): (Node | string)[] {
    if (this.isAwait)
      return [
        "The page does not say whether they differ: it does not have the sampling error of await time. phlox diff --weight await does.",
      ];
    const { per, seen, atMost } = rows.found;
    const certain = rows.rows("changed").length;
    const unclear = rows.rows().filter((row) => !rows.isCertain(row) && rows.isUnclear(row)).length;
    const what = (count: number) =>
      `${countWords(count)} ${by === "line" ? "line" : "function"}${count === 1 ? "" : "s"}`;
    return [
      element("b", {}, what(certain)),
      ` differ${certain === 1 ? "s" : ""}`,
      unclear > 0
        ? `; for ${what(unclear)}, there are too few samples to see a difference below ${this.amount(seen, per)}.`
        : `; none of the others differs by more than ${this.amount(atMost, per)}.`,
      kind === "recordings" ? " Two recordings cannot show whether other runs differ too." : "",
    ];
  }
}

function lengthWords({ before, after, per }: Difference): string {
  const length = ({ elapsed }: Side) => weightWords(elapsed, "ns");
  const cpu = ({ cpu, elapsed }: Side) => weightWords(per === "second" ? (cpu / elapsed) * 1e9 : cpu, "ns");
  if (!before.elapsed || !after.elapsed) return "";
  return per === "second"
    ? `Of ${length(before)} and ${length(after)}; CPU time ${cpu(before)} of each second became ${cpu(after)}. `
    : `${length(before)} became ${length(after)}; CPU time ${cpu(before)} became ${cpu(after)}. `;
}
