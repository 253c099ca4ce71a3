// How far the shares of functions, or lines, can be trusted: their 99 % intervals, as `phlox report` has them.
import { analyse, itemsOf, missing, quantile, Shares } from "../analysis";
import { Query } from "../filters";
import { By, Weight } from "../head";
import { Model } from "../selection";

export interface Interval {
  low: Float64Array; // of the share, 0 to 1; by function, or place
  high: Float64Array;
}

export function intervals(model: Model, query: Query, { by, weight }: { by: By; weight: Weight }): { self: Interval; total: Interval } {
  const selection = model.select(query);
  const { functions, places } = model.recording.catalogue;
  const found = analyse(selection, by, weight, itemsOf(selection.tree(by), by === "line" ? places.line.length : functions.name.length));
  const errors = quantile(missing, found.blocks);
  const interval = ({ weight, variance }: Shares): Interval => {
    const share = (row: number) => (found.total > 0 ? weight[row] / found.total : 0);
    return {
      low: variance.map((value, row) => Math.max(0, share(row) - errors * Math.sqrt(value))),
      high: variance.map((value, row) => Math.min(1, share(row) + errors * Math.sqrt(value))),
    };
  };
  return { self: interval(found.self), total: interval(found.sum) };
}
