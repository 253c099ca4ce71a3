// Two parts of the recording, or two recordings, against each other by share: what changed, and what may be chance. The rule is
// that of report/diff.cpp, function by function and, for flame graphs, node by node.
import { Analysis, analyse, Items, itemsOf, missing, nodeItems, quantile, Shares, unseenVariance } from "../analysis";
import { Filter, Query } from "../filters";
import { By, Weight } from "../head";
import { Model } from "../selection";
import { Kind } from "../tree";

// Below this share on both sides an item is not counted among the comparisons that are made: hundreds of functions that were
// looked at once or twice cannot make anybody believe in a difference.
const compared = 0.001;

export interface Side {
  total: number; // weight of all that passed
  samples: number;
  blocks: number;
}

export interface Changes {
  before: Float64Array; // weights, by item
  after: Float64Array;
  difference: Float64Array; // of the shares
  low: Float64Array; // 99 % interval of it
  high: Float64Array;
  certain: Uint8Array; // 0: may be chance
}

export interface Sides {
  before: Filter[]; // what of the query is the one side, and the other
  after: Filter[];
}

export interface Difference {
  before: Side;
  after: Side;
  self: Changes;
  total: Changes;
}

const sideOf = ({ total, samples, blocks }: Analysis): Side => ({ total, samples, blocks });
const shareOf = (analysis: Analysis, shares: Shares, item: number) => (analysis.total > 0 ? shares.weight[item] / analysis.total : 0);

function changes(before: Analysis, after: Analysis, side: "self" | "sum", chance: number): Changes {
  const [b, a] = [before[side], after[side]];
  const items = b.weight.length;
  // What has too few looks for blocks has none: then the other's.
  const blocks = before.blocks === 0 ? after.blocks : after.blocks === 0 ? before.blocks : Math.min(before.blocks, after.blocks);
  const [reach, bar] = [quantile(missing, blocks), quantile(chance, blocks)];
  const out: Changes = {
    before: b.weight, after: a.weight, difference: new Float64Array(items), low: new Float64Array(items), high: new Float64Array(items), certain: new Uint8Array(items),
  };
  const [unseenBefore, unseenAfter] = [unseenVariance(before), unseenVariance(after)];
  for (let i = 0; i < items; ++i) {
    const difference = shareOf(after, a, i) - shareOf(before, b, i);
    const error = Math.sqrt((b.weight[i] === 0 ? unseenBefore : b.variance[i]) + (a.weight[i] === 0 ? unseenAfter : a.variance[i]));
    out.difference[i] = difference;
    out.low[i] = Math.max(-1, difference - reach * error);
    out.high[i] = Math.min(1, difference + reach * error);
    out.certain[i] = Math.abs(difference) > bar * error ? 1 : 0;
  }
  return out;
}

function compare(model: Model, query: Query, sides: Sides, by: By, weight: Weight, items: Items, counts: (item: number) => boolean): Difference {
  const [before, after] = [sides.before, sides.after].map((filters) => analyse(model.select({ ...query, filters: [...query.filters, ...filters] }), by, weight, items));
  let several = 0;
  for (let i = 1; i < items.count; ++i) {
    if (counts(i) && (shareOf(before, before.sum, i) >= compared || shareOf(after, after.sum, i) >= compared)) ++several;
  }
  const chance = missing / Math.max(1, several);
  return { before: sideOf(before), after: sideOf(after), self: changes(before, after, "self", chance), total: changes(before, after, "sum", chance) };
}

// By function, or place.
export function difference(model: Model, query: Query, { sides, by, weight }: { sides: Sides; by: By; weight: Weight }): Difference {
  const { catalogue } = model.recording;
  const tree = by === "line" ? model.recording.lines : model.recording.functions;
  const { kind } = catalogue.functions;
  const { places } = catalogue;
  const counts = by === "line" ? (i: number) => places.line[i] > 0 && kind[places.function[i]] !== Kind.marker : (i: number) => kind[i] !== Kind.marker;
  return compare(model, query, sides, by, weight, itemsOf(tree, by === "line" ? places.line.length : kind.length), counts);
}

export interface ChangedTree {
  before: Float64Array; // with everything beneath, by node of the shape
  after: Float64Array;
  beforeSamples: Float64Array;
  afterSamples: Float64Array;
  difference: Float64Array; // of the shares
  steps: Int8Array; // -5 (shrank most) to 5 (grew most); 0: may be chance
}

const steps = 5;

// Over the shape that `shape` gives.
export function changedTree(model: Model, query: Query, { sides, by, weight }: { sides: Sides; by: By; weight: Weight }): ChangedTree {
  const tree = by === "line" ? model.recording.lines : model.recording.functions;
  const { total } = compare(model, query, sides, by, weight, nodeItems(tree), () => true);
  const samples = [sides.before, sides.after].map((filters) => Float64Array.from(model.select({ ...query, filters: [...query.filters, ...filters] }).total(by, "samples")));
  const [before, after] = [sides.before, sides.after].map((filters) => Float64Array.from(model.select({ ...query, filters: [...query.filters, ...filters] }).total(by, weight)));
  let greatest = 0;
  for (let node = 1; node < total.certain.length; ++node) if (total.certain[node]) greatest = Math.max(greatest, Math.abs(total.difference[node]));
  const step = Int8Array.from(total.certain, (certain, node) => {
    if (!certain || node === 0) return 0;
    // A square root keeps small changes visible beside one big one.
    const size = Math.min(steps, Math.max(1, Math.ceil(Math.sqrt(Math.abs(total.difference[node]) / greatest) * steps - 0.5)));
    return total.difference[node] > 0 ? size : -size;
  });
  return { before, after, beforeSamples: samples[0], afterSamples: samples[1], difference: total.difference, steps: step };
}
