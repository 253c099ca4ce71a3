// Where the arrow keys go from a frame.
import { defaultOptions, layout } from "../src/layout/flame";
import { neighbour } from "../src/svg/movement";
import { equal, test } from "./harness";
import { nodeNamed, treeOf } from "./trees";

const tree = treeOf("main;a;deep 2", "main;b 5", "main;c 1", "other 2");
const drawn = layout(tree, tree.weights.total, 0, { ...defaultOptions, width: 1000 });
const named = (name: string) => nodeNamed(tree, name);

test("outward leads to the widest frame, inward to the one that called it", () => {
  equal(neighbour(tree, drawn, "flame", 0, named("main"), "ArrowUp"), named("b"));
  equal(neighbour(tree, drawn, "flame", 0, named("deep"), "ArrowDown"), named("a"));
  equal(neighbour(tree, drawn, "flame", 0, 0, "ArrowUp"), named("main"));
});

test("an icicle grows the other way", () => {
  equal(neighbour(tree, drawn, "icicle", 0, named("main"), "ArrowDown"), named("b"));
  equal(neighbour(tree, drawn, "icicle", 0, named("main"), "ArrowUp"), 0);
});

test("sideways goes along the row, over the edges of callers, and stops at its ends", () => {
  equal(neighbour(tree, drawn, "flame", 0, named("a"), "ArrowRight"), named("b"));
  equal(neighbour(tree, drawn, "flame", 0, named("b"), "ArrowLeft"), named("a"));
  equal(neighbour(tree, drawn, "flame", 0, named("a"), "ArrowLeft"), undefined);
  equal(neighbour(tree, drawn, "flame", 0, named("c"), "ArrowRight"), undefined);
  equal(neighbour(tree, drawn, "flame", 0, named("main"), "ArrowRight"), named("other"));
});

test("there is nothing beyond the root and beyond a leaf", () => {
  equal(neighbour(tree, drawn, "flame", 0, 0, "ArrowDown"), undefined);
  equal(neighbour(tree, drawn, "flame", 0, named("deep"), "ArrowUp"), undefined);
});

test("from nowhere, or from a frame that is not drawn, the way leads to the zoomed frame", () => {
  const zoomed = layout(tree, tree.weights.total, named("a"), { ...defaultOptions, width: 1000 });
  equal(neighbour(tree, zoomed, "flame", named("a"), -1, "ArrowUp"), named("a"));
  equal(neighbour(tree, zoomed, "flame", named("a"), named("other"), "ArrowUp"), named("a"));
  equal(neighbour(tree, zoomed, "flame", named("a"), named("a"), "ArrowDown"), named("main"));
});
