// One function: its callers, outward, and its callees, inward. A sample through it counts once, at its outermost call.
import { Query } from "../filters";
import { Weight } from "../head";
import { CallerGrowth, GrowingTree, SmallTree } from "../growing_tree";
import { Model } from "../selection";

export interface Sandwich {
  callers: SmallTree; // root: the function; children: its callers
  callees: SmallTree; // root: the function; children: what it calls
}

// `leastShare`: of the function's total; smaller nodes are not grown further.
export function sandwich(
  model: Model,
  query: Query,
  { function: f, weight, leastShare }: { function: number; weight: Weight; leastShare: number },
): Sandwich {
  const selection = model.select(query);
  const tree = model.recording.functions;
  const labels = model.recording.catalogue.functions.name.length;
  const { self, total, samples } = selection.column("function", weight);
  const callers = new GrowingTree(labels, f);
  const callees = new GrowingTree(labels, f);
  const front = { node: 0, at: [] as number[], weights: [] as number[], counts: [] as number[] };
  for (let node = 1; node < tree.label.length; ++node) {
    if (tree.label[node] !== f || !tree.outermost[node] || (total[node] === 0 && samples[node] === 0)) continue;
    front.at.push(node);
    front.weights.push(total[node]);
    front.counts.push(samples[node]);
    for (const growing of [callers, callees]) {
      growing.total[0] += total[node];
      growing.samples[0] += samples[node];
    }
  }
  const least = leastShare * callers.total[0];
  new CallerGrowth(callers, tree, labels).grow(front, least);
  for (const top of front.at) {
    const nodeOf = new Map<number, number>([[top, 0]]);
    callees.self[0] += self[top];
    for (let node = top + 1; node < tree.end[top];) {
      const above = nodeOf.get(tree.parent[node]) as number;
      // A node below the least may be one of many that are merged: only empty ones are omitted here.
      if (total[node] === 0 && samples[node] === 0) {
        node = tree.end[node];
        continue;
      }
      const into = callees.child(above, tree.label[node]);
      callees.self[into] += self[node];
      callees.total[into] += total[node];
      callees.samples[into] += samples[node];
      nodeOf.set(node, into);
      ++node;
    }
  }
  return { callers: callers.finish(), callees: callees.finish() };
}
