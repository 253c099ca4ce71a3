// Where the boxes of a flame chart are, and which one an arrow key leads to.
import { At, ChartRows, lineHeight, rowHeight, titleHeight } from "../src/layout/chart_rows";
import { ChartBox, firstAfter, Lane } from "../src/layout/flame_chart";
import { equal, test } from "./harness";

const above = titleHeight + lineHeight;

// "0-4 6-9": the boxes of a row.
const lane = (...rows: string[]): Lane => ({
  deeper: 0,
  rows: rows.map((text, row) =>
    text.split(" ").map((range, node): ChartBox => {
      const [from, to] = range.split("-").map(Number);
      return { node, row, from, to, waits: false };
    })
  ),
});

// Two threads, and one between them that has nothing.
const chart = new ChartRows([lane("0-4 6-9", "0-1 1-4 6-8", "6-7"), lane(), lane("2-9", "3-5 5-8")]);
const at = (lane: number, row: number, index: number): At => ({ lane, row, index });

test("lanes are one below the other, and an empty one has room for its title", () => {
  equal(chart.tops[0], 0);
  equal([chart.top(0, 0), chart.top(0, 2)], [above, above + 2 * rowHeight]);
  equal([0, 1, 2].map((lane) => chart.bottom(lane) - chart.top(lane, 0)), [3, 2, 2].map((rows) => rows * rowHeight));
  equal([chart.tops[1] > chart.bottom(0), chart.tops[2] > chart.bottom(1), chart.height > chart.bottom(2)], [true, true,
    true]);
});

test("what is under the pointer is the box of that row and time, or nothing", () => {
  equal(chart.under(above, 3), at(0, 0, 0));
  equal(chart.under(above + rowHeight - 1, 3), at(0, 0, 0));
  equal(chart.under(above + rowHeight, 3), at(0, 1, 1));
  equal(chart.under(chart.top(2, 1), 5), at(2, 1, 1));
  equal([chart.under(above, 5), chart.under(above - 1, 3), chart.under(chart.top(1, 0), 3),
    chart.under(chart.height, 3)], [null, null, null, null]);
  equal([chart.has(at(0, 2, 0)), chart.has(at(0, 2, 1)), chart.has(at(1, 0, 0)), chart.has(at(3, 0, 0))], [true, false,
    false, false]);
});

test("keys begin at the first box in sight", () => {
  equal(chart.first({ from: 0, to: 9 }), at(0, 0, 0));
  equal(chart.first({ from: 4, to: 9 }), at(0, 0, 1));
  equal(new ChartRows([lane(), lane("2-9")]).first({ from: 0, to: 9 }), at(1, 0, 0));
  equal([chart.first({ from: 9, to: 12 }), new ChartRows([]).first({ from: 0, to: 9 })], [null, null]);
  const [boxes] = chart.lanes[0].rows;
  equal([-1, 0, 4, 8, 9].map((time) => firstAfter(boxes, time)), [0, 0, 1, 1, 2]);
});

test("left and right stay in the row, up leads to the caller, down to the longest callee", () => {
  equal([chart.next(at(0, 1, 0), "ArrowRight"), chart.next(at(0, 1, 1), "ArrowLeft")], [at(0, 1, 1), at(0, 1, 0)]);
  equal([chart.next(at(0, 1, 2), "ArrowRight"), chart.next(at(0, 0, 0), "ArrowLeft")], [null, null]);
  equal([chart.next(at(0, 2, 0), "ArrowUp"), chart.next(at(0, 1, 1), "ArrowUp")], [at(0, 1, 2), at(0, 0, 0)]);
  equal(chart.next(at(0, 0, 0), "ArrowDown"), at(0, 1, 1));
  // Of two as long, the first.
  equal(new ChartRows([lane("0-4", "0-2 2-4")]).next(at(0, 0, 0), "ArrowDown"), at(0, 1, 0));
});

test("the outermost and the innermost box lead to the neighbouring thread, at the same time", () => {
  const both = new ChartRows([lane("0-4 6-9"), lane("0-1 5-8", "6-7")]);
  equal(both.next(at(0, 0, 1), "ArrowDown"), at(1, 0, 1));
  equal(both.next(at(0, 0, 0), "ArrowDown"), at(1, 0, 0));
  equal(both.next(at(1, 0, 0), "ArrowUp"), at(0, 0, 0));
  // Nothing at that time: its first one.
  equal(both.next(at(1, 0, 1), "ArrowUp"), at(0, 0, 0));
  equal([both.next(at(0, 0, 0), "ArrowUp"), both.next(at(1, 1, 0), "ArrowDown")], [null, null]);
  equal(chart.next(at(2, 0, 0), "ArrowUp"), null);
});

test("matches are stepped through by thread and time, the outer one first", () => {
  const all = chart.inOrder({ from: 0, to: 9 }, ({ node }) => node === 0);
  equal(all, [at(0, 0, 0), at(0, 1, 0), at(0, 2, 0), at(2, 0, 0), at(2, 1, 0)]);
  equal(chart.inOrder({ from: 5, to: 6.5 }, () => true), [at(0, 0, 1), at(0, 1, 2), at(0, 2, 0), at(2, 0, 0),
    at(2, 1, 1)]);
});
