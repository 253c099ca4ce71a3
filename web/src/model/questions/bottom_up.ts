// The call tree turned round: functions by what they spend themselves, beneath each its callers.
import { Query } from "../filters";
import { Weight } from "../head";
import { GrowingTree, growCallers, SmallTree } from "../growing_tree";
import { Model } from "../selection";

// What is below `leastShare` of the whole (with a path: of the node it leads to) is not grown further. `path`: labels from the
// leaf outward; only what lies along and beneath it is grown.
export function bottomUp(
  model: Model, query: Query, { weight, leastShare, path }: { weight: Weight; leastShare: number; path: number[] },
): SmallTree {
  const selection = model.select(query);
  const tree = model.recording.functions;
  const self = selection.self("function", weight);
  const looks = selection.self("function", "samples");
  const growing = new GrowingTree(model.recording.catalogue.functions.name.length);
  const leaves = new Map<number, number[]>();
  for (let node = 1; node < tree.label.length; ++node) {
    if (self[node] === 0 && looks[node] === 0) continue;
    const nodes = leaves.get(tree.label[node]);
    if (nodes) nodes.push(node);
    else leaves.set(tree.label[node], [node]);
    growing.total[0] += self[node];
    growing.samples[0] += looks[node];
  }
  for (const [label, at] of leaves) {
    const node = growing.child(0, label);
    for (const leaf of at) {
      growing.total[node] += self[leaf];
      growing.samples[node] += looks[leaf];
    }
    const onPath = path.length > 0 && label === path[0];
    if (path.length > 0 && !onPath) continue;
    const least = leastShare * growing.total[path.length > 0 ? node : 0];
    if (!onPath && growing.total[node] < least) continue;
    const weights = at.map((leaf) => self[leaf]);
    growCallers(growing, tree, { node, at, weights, looks: at.map((leaf) => looks[leaf]) }, least, path.slice(1));
  }
  return growing.finish();
}
