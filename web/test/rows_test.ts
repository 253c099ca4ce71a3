import { defaultOptions, layout } from "../src/layout/flame";
import { Rows } from "../src/layout/rows";
import { ensure, equal, test } from "./harness";
import { nodeNamed, randomTree, treeOf } from "./trees";

test("the box under a point is found, and none beside them", () => {
  for (let seed = 0; seed < 50; ++seed) {
    const tree = randomTree(seed);
    const done = layout(tree, tree.weights.total, 0, { ...defaultOptions, width: 500 });
    const rows = new Rows(done);
    for (const box of done.boxes)
      ensure(rows.find(box.row, box.x + box.width / 2)?.node === box.node, `box ${box.node}, seed ${seed}`);
    equal([rows.find(0, -1), rows.find(0, 500.1), rows.find(done.rows, 3), rows.find(-1, 3)], [undefined, undefined,
      undefined, undefined]);
  }
});

test("ancestors of a zoomed frame are rows like the others", () => {
  const tree = treeOf("a;b;c 10", "a 5");
  const rows = new Rows(layout(tree, tree.weights.total, nodeNamed(tree, "b"), { ...defaultOptions, width: 100 }));
  equal([0, 1, 2, 3].map((row) => rows.at(row).length), [1, 1, 1, 1]);
});
