// A selection's weights by item: function, line or tree node. With sampling_error.ts, which estimates the sampling
// error of each sum, it is the page's counterpart of report/analysis.cpp. No DOM.
import { CallTree } from "./call_tree";
import { By, Weight } from "./head";
import { Selection } from "./selection";

export const missing = 0.01; // 99 % intervals

// Maps the nodes of a tree to items: numbers below `count`; 0: none.
export interface Items {
  count: number;
  of: Uint32Array; // by node
  outermost: Uint8Array; // 1: no ancestor is the same item
  owner: Uint32Array; // by node: the item that its time also counts for, as in CallTree; itself: none
  ownersAlone: boolean; // native code beneath a Python function is not an item of its own
}

export function itemsOf(tree: CallTree, count: number, natives = true): Items {
  return { count, of: tree.label, outermost: tree.outermost, owner: tree.owner, ownersAlone: !natives };
}

// Every node is its own item.
export function nodeItems(tree: CallTree): Items {
  const nodes = Uint32Array.from(tree.parent.keys());
  return { count: nodes.length, of: nodes, outermost: new Uint8Array(nodes.length).fill(1), owner: nodes,
    ownersAlone: false };
}

// Weights by item.
export interface Sums {
  total: number;
  self: Float64Array;
  sum: Float64Array; // including descendants; an item within itself counts once
}

export function addUp(selection: Selection, by: By, weight: Weight,
  { count, of, outermost, owner, ownersAlone }: Items): Sums
{
  const [self, sum] = [new Float64Array(count), new Float64Array(count)];
  const own = selection.self(by, weight);
  const totals = selection.total(by, weight);
  for (let node = 1; node < totals.length; ++node) {
    // Native code beneath a Python function counts for itself and for that function.
    if (owner[node] !== node) self[of[owner[node]]] += own[node];
    if (owner[node] !== node && ownersAlone) continue;
    self[of[node]] += own[node];
    if (outermost[node]) sum[of[node]] += totals[node];
  }
  return { total: totals[0], self, sum };
}

// The complementary error function, with a relative error of 1e-7 (W. J. Cody's form in Numerical Recipes, 6.2).
function erfc(x: number): number {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  const series = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277];
  const y = t * Math.exp(-x * x + series.reduceRight((sum, c) => sum * t + c, 0));
  return x >= 0 ? y : 2 - y;
}

// Half the width, in standard errors, of the two-sided interval with this chance of missing: of the normal distribution
// or, for the mean of `values` values of unknown spread, of Student's t.
export function quantile(chance: number, values = 0): number {
  const tail = chance / 2;
  const t = Math.sqrt(-2 * Math.log(tail));
  // Normal: Abramowitz and Stegun 26.2.23 with two Newton steps.
  let z = t -
    (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  for (let i = 0; i < 2; ++i)
    z += (0.5 * erfc(z / Math.SQRT2) - tail) / (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI));
  if (values < 2) return z;
  // Student's t from the normal: Abramowitz and Stegun 26.7.5.
  const [v, z3] = [values - 1, z * z * z];
  const [z5, z7] = [z3 * z * z, z3 * z * z * z * z];
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
    (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}
