import { callTree, findOwners, nodeAlong, pathTo, relabelled } from "../src/model/call_tree";
import { equal, test } from "./harness";
import { randomNumbers } from "./trees";

// all; 1 > (2 > 1), 3; 4
const small = () => callTree(Uint8Array.from([0, 1, 2, 3, 2, 1]), Uint8Array.from([0, 1, 2, 1, 3, 4]));

test("depths tell parents, siblings and ends", () => {
  const tree = small();
  equal(Array.from(tree.parent), [0, 0, 1, 2, 1, 0]);
  equal(Array.from(tree.firstChild), [1, 2, 3, 0, 0, 0]);
  equal(Array.from(tree.nextSibling), [0, 5, 4, 0, 0, 0]);
  equal(Array.from(tree.end), [6, 5, 4, 4, 5, 6]);
});

test("a label within itself is not outermost", () => equal(Array.from(small().outermost), [1, 1, 1, 0, 1, 1]));

test("a path of labels leads to its node, and as far as it goes", () => {
  const tree = small();
  for (let node = 0; node < 6; ++node) equal(nodeAlong(tree, pathTo(tree, node)), node);
  equal(nodeAlong(tree, [1, 2, 9, 9]), 2);
  equal(nodeAlong(tree, [9]), 0);
});

test("siblings that get one label become one node, with all that is beneath them", () => {
  // places 1, 2 are function 1; 3 is function 2
  const lines = callTree(Uint8Array.from([0, 1, 2, 1, 2, 2]), Uint8Array.from([0, 1, 3, 2, 1, 3]));
  const { tree, nodeOf } = relabelled(lines, [0, 1, 1, 2]);
  equal(Array.from(tree.label), [0, 1, 1, 2]);
  equal(Array.from(tree.depth), [0, 1, 2, 2]);
  equal(Array.from(nodeOf), [0, 1, 3, 1, 2, 3]);
});

test("the time of Python functions that were not read is not their caller's", () => {
  // 1 is Python, 2 native, 3 a marker that hides Python, 4 one that does not
  const tree = callTree(Uint8Array.from([0, 1, 2, 2, 3, 2]), Uint8Array.from([0, 1, 2, 3, 2, 4]));
  findOwners(tree, (label) => label === 1, (label) => label === 3);
  equal(Array.from(tree.owner), [0, 1, 1, 3, 4, 1]);
});

test("relabelling keeps every stack, in any tree", () => {
  for (let seed = 0; seed < 200; ++seed) {
    const random = randomNumbers(seed);
    const depths = [0];
    const labels = [0];
    for (let i = 1; i < 80; ++i) {
      depths.push(1 + random(Math.min(depths[i - 1] + 1, 9)));
      labels.push(1 + random(12));
    }
    const of = Array.from({ length: 13 }, (_, i) => (i === 0 ? 0 : 1 + Math.floor(i / 3)));
    const old = callTree(Uint8Array.from(depths), Uint8Array.from(labels));
    const { tree, nodeOf } = relabelled(old, of);
    for (let node = 0; node < 80; ++node)
      equal(pathTo(tree, nodeOf[node]), pathTo(old, node).map((label) => of[label]));
    for (let node = 1; node < tree.label.length; ++node) {
      const next = tree.nextSibling[node];
      if (next && tree.label[next] <= tree.label[node]) throw new Error(`siblings out of order, seed ${seed}`);
    }
  }
});
