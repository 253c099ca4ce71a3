// Shares and their errors, against what report/analysis.cpp has for the same numbers (tests/browser compares whole recordings).
import { analyse, itemsOf, nodeItems, quantile } from "../src/model/analysis";
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { Model } from "../src/model/selection";
import { ensure, equal, near, test } from "./harness";
import { byName, randomStretches, recordingOf, Stretch } from "./recordings";

test("quantiles are those of the normal's and Student's tables", () => {
  ensure(Math.abs(quantile(0.01, 0) - 2.575829) < 1e-5, String(quantile(0.01, 0)));
  ensure(Math.abs(quantile(0.01, 30) - 2.756) < 1e-3, String(quantile(0.01, 30)));
  ensure(Math.abs(quantile(0.01 / 200, 30) - 4.8) < 0.1, String(quantile(0.01 / 200, 30)));
});

test("sums are those of the table, whatever the blocks", () => {
  for (let seed = 0; seed < 30; ++seed) {
    const model = new Model(recordingOf(randomStretches(seed, 200)));
    const selection = model.select(everything);
    for (const by of ["function", "line"] as const) {
      const table = answer(model, "table", everything, { by });
      const found = analyse(selection, by, "wall", itemsOf(selection.tree(by), table.self.wall.length));
      near(found.total, selection.all.wall);
      for (let row = 1; row < table.self.wall.length; ++row) {
        near(found.self.weight[row], table.self.wall[row]);
        near(found.sum.weight[row], table.total.wall[row]);
      }
      const nodes = analyse(selection, by, "wall", nodeItems(selection.tree(by)));
      const total = selection.total(by, "wall");
      for (let node = 1; node < total.length; ++node) near(nodes.sum.weight[node], total[node]);
    }
  }
});

// Two functions by turns, a stretch of a look each.
const alternating = (length: number): Model => {
  const stretch = (i: number): Stretch => ({ thread: 0, start: i * 1e6, wall: 1e6, cpu: 0, samples: 1, stack: [[Math.floor(i / length) % 2 ? "f" : "g", 1]], state: 0, doing: 0 });
  return new Model(recordingOf(Array.from({ length: 1200 }, (_, i) => stretch(i))));
};

test("an interval is wider where blocks differ than where looks alone do", () => {
  const widths = [1, 300].map((length) => {
    const model = alternating(length);
    const { low, high } = answer(model, "intervals", everything, { by: "function", weight: "wall" }).self;
    const f = byName(model.recording, "f");
    ensure(low[f] < 0.5 && high[f] > 0.5, `${low[f]} to ${high[f]}`);
    return high[f] - low[f];
  });
  ensure(widths[1] > 3 * widths[0], widths.join());
});

test("too few looks make no blocks, and a wide interval", () => {
  const model = new Model(recordingOf([{ thread: 0, start: 0, wall: 1e9, cpu: 0, samples: 3, stack: [["f", 1]], state: 0, doing: 0 }]));
  const found = analyse(model.select(everything), "function", "wall", itemsOf(model.recording.functions, 2));
  equal([found.blocks, found.looks], [0, 3]);
  const { low, high } = answer(model, "intervals", everything, { by: "function", weight: "wall" }).total;
  ensure(low[1] < 0.5 && high[1] === 1, `${low[1]} to ${high[1]}`);
});
