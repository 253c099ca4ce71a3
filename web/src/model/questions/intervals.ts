// 99 % sampling intervals of the shares of functions or lines, as in `phlox report`.
import { addUp, itemsOf } from "../analysis";
import { reachOfOne } from "../comparison";
import { Query } from "../filters";
import { By, Weight } from "../head";
import { amountOf, isTimed, samplingError } from "../sampling_error";
import { Model } from "../selection";

export interface Interval {
  low: Float64Array; // of the share, 0 to 1; by function or place
  high: Float64Array;
}

export function intervals(model: Model, query: Query,
  { by, weight, natives }: { by: By; weight: Weight; natives: boolean }): { self: Interval; total: Interval }
{
  const selection = model.select(query);
  const { catalogue } = model.recording;
  const items = itemsOf(selection.tree(by),
    by === "line" ? catalogue.places.line.length : catalogue.functions.name.length, natives);
  const sums = addUp(selection, by, weight, items);
  const error = samplingError(selection, by, weight, items);
  const interval = (part: "self" | "sum"): Interval => {
    const [low, high] = [new Float64Array(items.count), new Float64Array(items.count)];
    for (let item = 0; item < items.count && sums.total > 0; ++item) {
      const amount = amountOf(sums, error, isTimed(catalogue), part, item);
      const reach = reachOfOne(amount);
      low[item] = Math.max(0, (amount.value - reach) / sums.total);
      high[item] = Math.min(1, (amount.value + reach) / sums.total);
    }
    return { low, high };
  };
  return { self: interval("self"), total: interval("sum") };
}
