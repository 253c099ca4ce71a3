// The wholes that shares refer to.
import { everything, Query } from "../filters";
import { Amount, Model } from "../selection";

export function totals(model: Model, query: Query): { shown: Amount; recorded: Amount } {
  return { shown: model.select(query).all, recorded: model.select(everything).all };
}
