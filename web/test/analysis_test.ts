// Shares and their errors, against what report/analysis.cpp has for the same numbers (tests/browser compares whole recordings).
import { addUp, itemsOf, nodeItems, quantile } from "../src/model/analysis";
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { Model } from "../src/model/selection";
import { ensure, near, test } from "./harness";
import { byName, randomStretches, recordingOf, Stretch } from "./recordings";

test("quantiles are those of the normal's and Student's tables", () => {
  ensure(Math.abs(quantile(0.01) - 2.575829) < 1e-5, String(quantile(0.01)));
  ensure(Math.abs(quantile(0.01, 30) - 2.756) < 1e-3, String(quantile(0.01, 30)));
  ensure(Math.abs(quantile(0.01 / 200, 30) - 4.8) < 0.1, String(quantile(0.01 / 200, 30)));
});

test("sums are those of the table", () => {
  for (let seed = 0; seed < 30; ++seed) {
    const model = new Model(recordingOf(randomStretches(seed, 200)));
    const selection = model.select(everything);
    for (const by of ["function", "line"] as const) {
      const table = answer(model, "table", everything, { by, natives: true });
      const found = addUp(selection, by, "wall", itemsOf(selection.tree(by), table.self.wall.length));
      near(found.total, selection.all.wall);
      for (let row = 1; row < table.self.wall.length; ++row) {
        near(found.self[row], table.self.wall[row]);
        near(found.sum[row], table.total.wall[row]);
      }
      const nodes = addUp(selection, by, "wall", nodeItems(selection.tree(by)));
      const total = selection.total(by, "wall");
      for (let node = 1; node < total.length; ++node) near(nodes.sum[node], total[node]);
    }
  }
});

// Two functions in turn, an interval of one sample each.
const alternating = (length: number): Model => {
  const interval = (i: number): Stretch => ({ thread: 0, start: i * 1e6, wall: 1e6, cpu: 0, samples: 1,
    stack: [[Math.floor(i / length) % 2 ? "f" : "g", 1]], state: 0, doing: 0 });
  return new Model(recordingOf(Array.from({ length: 1200 }, (_, i) => interval(i))));
};

test("an interval is that of samples which do not know what was between them", () => {
  const widths = [1, 300].map((length) => {
    const model = alternating(length);
    const { low, high } =
      answer(model, "intervals", everything, { by: "function", weight: "wall", natives: true }).self;
    const f = byName(model.recording, "f");
    ensure(low[f] < 0.5 && high[f] > 0.5, `${low[f]} to ${high[f]}`);
    return high[f] - low[f];
  });
  // A phase has the error of its two ends.
  ensure(widths[0] > 3 * widths[1], widths.join());
});

test("few samples make a wide interval", () => {
  const model = new Model(recordingOf([
    { thread: 0, start: 0, wall: 1e9, cpu: 0, samples: 1, stack: [["f", 1]], state: 0, doing: 0 },
    { thread: 0, start: 1e9, wall: 2e9, cpu: 0, samples: 2, stack: [["g", 1]], state: 0, doing: 0 },
  ]));
  const { low, high } = answer(model, "intervals", everything, { by: "function", weight: "wall", natives: true }).total;
  const f = byName(model.recording, "f");
  ensure(low[f] === 0 && high[f] === 1, `${low[f]} to ${high[f]}`);
});
