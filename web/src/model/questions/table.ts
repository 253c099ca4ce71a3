// Functions or lines with self and total weight; a function that calls itself counts once. Time in native code also
// counts for the Python function that it is beneath. Without `natives` it has no row of its own there. Rows are by id:
// of functions, or of places.
import { addUp, itemsOf } from "../analysis";
import { Query } from "../filters";
import { By } from "../head";
import { Amounts, eachWeight, Model } from "../selection";

export interface Table {
  self: Amounts;
  total: Amounts;
}

export function table(model: Model, query: Query, { by, natives }: { by: By; natives: boolean }): Table {
  const selection = model.select(query);
  const { functions, places } = model.recording.catalogue;
  const items = itemsOf(selection.tree(by), by === "line" ? places.line.length : functions.name.length, natives);
  const all = eachWeight(selection.weights, (weight) => addUp(selection, by, weight, items));
  for (const { sum, total } of Object.values(all)) sum[0] = total;
  return { self: eachWeight(selection.weights, (weight) => all[weight].self),
    total: eachWeight(selection.weights, (weight) => all[weight].sum) };
}
