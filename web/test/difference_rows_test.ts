// How a difference judges its rows, and which ones a table has.
import { DifferenceRows, Part, Which } from "../src/model/difference_rows";
import { Changes, Difference } from "../src/model/questions/difference";
import { Kind } from "../src/model/tree";
import { equal, near, test } from "./harness";

// A row: before, after, and whether it is certain or the same. Row 0 is the root.
type Row = [number, number, "certain" | "same" | ""];

function changes(rows: Row[]): Changes {
  const column = (value: (row: Row) => number) => Float64Array.from(rows, value);
  const is = (word: Row[2]) => Uint8Array.from(rows, ([, , judged]) => (judged === word ? 1 : 0));
  const difference = column(([before, after]) => after - before);
  return { before: column(([before]) => before), after: column(([, after]) => after), difference, low: difference,
    high: difference, certain: is("certain"), same: is("same") };
}

function rowsOf(total: Row[], { self = total, per = "run" as Difference["per"], inTime = true } = {}): DifferenceRows {
  const side = { total: 100, samples: 10, elapsed: 2e9, cpu: 1 };
  const found = { per, before: side, after: { ...side, elapsed: 4e9 }, margin: { share: 0, least: 5 }, seen: 0,
    atMost: 0, self: changes(self), total: changes(total) } as unknown as Difference;
  return new DifferenceRows(found, total.map((_, row) => ({ kind: row === 6 ? Kind.marker : Kind.python })), inTime);
}

const all: Row[] = [[100, 100, "same"], [10, 30, "certain"], [0, 20, "certain"], [20, 0, "certain"], [20, 20, "same"], [
  20,
  23,
  "",
], [9, 9, "certain"], [0, 0, "certain"], [30, 10, "certain"]];

test("the table has what has any weight, and of it what was asked for", () => {
  const rows = rowsOf(all);
  const of = (which: Which) => rows.rows(which);
  equal([of("all"), of("changed"), of("new"), of("vanished")], [[1, 2, 3, 4, 5, 8], [1, 2, 3, 8], [2], [3]]);
});

test("a verdict says which way a row went, if anything is certain", () => {
  const rows = rowsOf(all);
  equal([1, 2, 3, 4, 5, 8].map((row) => rows.verdict(row, "total")), ["grew", "new", "vanished", "same", "inconclusive",
    "shrank"]);
  // Its own code may be certain where the rest is not, and each part has its own verdict.
  const parts = rowsOf([[100, 100, ""], [50, 50, ""]], { self: [[100, 100, ""], [1, 9, "certain"]] });
  equal((["total", "self"] as Part[]).map((part) => parts.verdict(1, part)), ["inconclusive", "grew"]);
  equal([parts.isCertain(1), parts.isCertain(0)], [true, false]);
});

test("certain differences come before greater ones that are not", () => {
  const rows = rowsOf([[0, 0, ""], [10, 11, "certain"], [10, 90, ""], [10, 5, "certain"]]);
  equal([1, 2, 3].sort((a, b) => rows.size(b, "total") - rows.size(a, "total")), [3, 1, 2]);
  near(rows.share(2, "total", "after"), 0.9);
});

test("unclear is what has enough weight and neither verdict", () => {
  equal([4, 5, 8].map((row) => rowsOf(all).isUnclear(row)), [false, true, false]);
  const little: Row[] = [[100, 100, ""], [4, 3, ""], [4, 6, ""]];
  equal([1, 2].map((row) => rowsOf(little).isUnclear(row)), [false, true]);
  // Of weights in each second: 12 in 2 s are 6, in 4 s they are 3.
  const rate: Row[] = [[100, 100, ""], [12, 0, ""], [0, 12, ""]];
  equal([1, 2].map((row) => rowsOf(rate, { per: "second", inTime: false }).isUnclear(row)), [true, false]);
  equal([1, 2].map((row) => rowsOf(rate, { per: "second" }).isUnclear(row)), [false, false]);
});
