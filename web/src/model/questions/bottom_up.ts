// The inverted call tree: functions by self time, with their callers beneath.
import { CallTree } from "../call_tree";
import { Query } from "../filters";
import { Weight } from "../head";
import { CallerGrowth, GrowingTree, SmallTree } from "../growing_tree";
import { Model } from "../selection";

// Nodes below `leastShare` of the whole (with a path: of the node it leads to) are not grown further. `path`: labels
// from the leaf outward; only the nodes along and beneath it are grown.
export function bottomUp(
  model: Model,
  query: Query,
  { weight, leastShare, path }: { weight: Weight; leastShare: number; path: number[] },
): SmallTree {
  const selection = model.select(query);
  const tree = model.recording.functions;
  const self = selection.self("function", weight);
  const counts = selection.self("function", "samples");
  const labels = model.recording.catalogue.functions.name.length;
  const growing = new GrowingTree(labels);
  const growth = new CallerGrowth(growing, tree, labels);
  const [weightOf, countsOf] = [new Float64Array(labels), new Float64Array(labels)];
  for (let node = 1; node < tree.label.length; ++node) {
    weightOf[tree.label[node]] += self[node];
    countsOf[tree.label[node]] += counts[node];
    growing.total[0] += self[node];
    growing.samples[0] += counts[node];
  }
  const { first, nodes } = model.once("nodesByFunction", () => nodesByLabel(tree, labels));
  for (let label = 0; label < labels; ++label) {
    if (weightOf[label] === 0 && countsOf[label] === 0) continue;
    const node = growing.child(0, label);
    growing.total[node] = weightOf[label];
    growing.samples[node] = countsOf[label];
    const onPath = path.length > 0 && label === path[0];
    if (path.length > 0 && !onPath) continue;
    const least = leastShare * growing.total[path.length > 0 ? node : 0];
    if (!onPath && growing.total[node] < least) continue;
    const at = nodes.subarray(first[label], first[label + 1]).filter((leaf) => self[leaf] !== 0 || counts[leaf] !== 0);
    growth.grow({ node, at, weights: Float64Array.from(at, (leaf) => self[leaf]),
      counts: Float64Array.from(at, (leaf) => counts[leaf]) }, least, path.slice(1));
  }
  return growing.finish();
}

// Nodes by label: those of one label are nodes[first[label]] to nodes[first[label + 1]]. Without the root.
function nodesByLabel({ label }: CallTree, labels: number): { first: Uint32Array; nodes: Uint32Array } {
  const first = new Uint32Array(labels + 1);
  for (let node = 1; node < label.length; ++node) ++first[label[node] + 1];
  for (let i = 0; i < labels; ++i) first[i + 1] += first[i];
  const at = first.slice();
  const nodes = new Uint32Array(label.length - 1);
  for (let node = 1; node < label.length; ++node) nodes[at[label[node]]++] = node;
  return { first, nodes };
}
