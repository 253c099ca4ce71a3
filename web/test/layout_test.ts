import { Box, defaultOptions, layout, LayoutOptions } from "../src/layout/flame";
import { Tree } from "../src/model/tree";
import { ensure, equal, near, test } from "./harness";
import { nodeNamed, randomTree, treeOf } from "./trees";

const options: LayoutOptions = { ...defaultOptions, width: 100, minWidth: 1 };
const all = (tree: Tree, zoom = 0, more: Partial<LayoutOptions> = {}) =>
  layout(tree, tree.weights.total, zoom, { ...options, ...more });
const named = (tree: Tree, boxes: Box[]) =>
  boxes.map((box) => [tree.labels[tree.label[box.node]].name, box.row, box.x, box.width]);

test("zooming gives the frame the whole width and keeps its ancestors", () => {
  const tree = treeOf("main;a;x 10", "main;b 30", "other 60");
  const done = all(tree, nodeNamed(tree, "a"));
  equal(named(tree, done.ancestors), [["all", 0, 0, 100], ["main", 1, 0, 100]]);
  equal(named(tree, done.boxes), [["a", 2, 0, 100], ["x", 3, 0, 100]]);
  equal(done.rows, 4);
});

test("zooming shows what was too narrow before", () => {
  const tree = treeOf("a;x;y 5", "b 995");
  equal(all(tree, nodeNamed(tree, "a")).narrow.frames, 0);
});

test("many ancestors are folded into one row that says how many", () => {
  const names = Array.from({ length: 40 }, (_, i) => `f${i}`);
  const tree = treeOf(`${names.join(";")} 10`);
  const done = all(tree, nodeNamed(tree, "f39"), { maxAncestors: 12 });
  equal(done.ancestors.length, 11);
  equal(done.skipped, { row: 1, frames: 29, node: nodeNamed(tree, "f28") });
  equal(named(tree, done.boxes), [["f39", 12, 0, 100]]);
});

test("an empty tree is one box", () => equal(all(treeOf("0")).boxes.length, 1));

test("no box leaves its parent or overlaps a neighbour, in any tree", () => {
  for (let seed = 0; seed < 300; ++seed) {
    const tree = randomTree(seed);
    const { boxes, narrow, deep } = all(tree, 0, { minWidth: seed % 3 });
    const byNode = new Map(boxes.map((box) => [box.node, box]));
    const ends = new Map<number, number>();
    for (const box of boxes) {
      near(box.width, (tree.weights.total[box.node] / tree.weights.total[0]) * 100);
      const parent = byNode.get(tree.parent[box.node]) as Box;
      ensure(box.x >= parent.x - 1e-9 && box.x + box.width <= parent.x + parent.width + 1e-9,
        `out of parent, seed ${seed}`);
      ensure(box.x >= (ends.get(box.row) || 0) - 1e-9, `overlap, seed ${seed}`);
      ends.set(box.row, box.x + box.width);
    }
    equal(boxes.length + narrow.frames + deep.frames, tree.parent.length);
  }
});

test("the other recording's widths show what has vanished", () => {
  const tree = treeOf("gone 0 30", "stays 70 70");
  equal(named(tree, layout(tree, tree.weights.total, 0, options).boxes).map(([name]) => name), ["all", "stays"]);
  const before = tree.before as NonNullable<Tree["before"]>;
  equal(named(tree, layout(tree, before.total, 0, options).boxes).map(([name]) => name), ["all", "gone", "stays"]);
});
