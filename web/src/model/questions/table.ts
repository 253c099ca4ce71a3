// Functions, or lines, each with what was spent in it and with everything it called; a function that calls itself counts once.
// What is spent in native code is spent in the Python function that it is beneath as well. Without `natives` it is no row of its own there.
// Rows are by id: of functions, or of places.
import { Query } from "../filters";
import { By, Weight } from "../head";
import { Amounts, eachWeight, Model } from "../selection";

export interface Table {
  self: Amounts;
  total: Amounts;
}

export function table(model: Model, query: Query, { by, natives }: { by: By; natives: boolean }): Table {
  const selection = model.select(query);
  const tree = selection.tree(by);
  const { functions, places } = model.recording.catalogue;
  const rows = by === "line" ? places.line.length : functions.name.length;
  const sums = (weight: Weight) => {
    const self = new Float64Array(rows);
    const total = new Float64Array(rows);
    const selfOf = selection.self(by, weight);
    const totalOf = selection.total(by, weight);
    for (let node = 1; node < selfOf.length; ++node) {
      const row = tree.label[node];
      const owner = tree.owner[node];
      if (owner !== node) self[tree.label[owner]] += selfOf[node];
      if (owner !== node && !natives) continue;
      self[row] += selfOf[node];
      if (tree.outermost[node]) total[row] += totalOf[node];
    }
    total[0] = totalOf[0];
    return { self, total };
  };
  const all = eachWeight(selection.weights, sums);
  return { self: eachWeight(selection.weights, (weight) => all[weight].self), total: eachWeight(selection.weights, (weight) => all[weight].total) };
}
