// Compares two parts of the recording, or two recordings: which differences exceed sampling error. Threads, processes
// and recordings of whole runs are compared in seconds; time ranges and other recordings in seconds per second. The
// rule is that of report/diff.cpp, by function and, for flame graphs, by node.
import { addUp, Items, itemsOf, nodeItems, Sums } from "../analysis";
import { Amount, judge, Margin, marginOf, reachOf, strictness } from "../comparison";
import { Filter, Query } from "../filters";
import { By, eventOf, isAwait, Weight } from "../head";
import { amountOf, isTimed, SamplingError, samplingError } from "../sampling_error";
import { Model, Selection } from "../selection";
import { Kind } from "../tree";

export type Per = "run" | "second";

export interface Side {
  total: number; // weight of all selected samples
  samples: number;
  elapsed: number; // ns
  cpu: number; // ns in total, shown or not
}

export interface Changes {
  before: Float64Array; // weights, by item
  after: Float64Array;
  difference: Float64Array; // of the amounts: weights, or weights per second
  low: Float64Array; // 99 % interval of it
  high: Float64Array;
  certain: Uint8Array; // 1: they differ
  same: Uint8Array; // 1: they do not, within the margin. Both 0: too few samples to tell
}

export interface Sides {
  before: Filter[]; // filters that select one side of the query, and the other
  after: Filter[];
}

export interface Difference {
  per: Per;
  before: Side;
  after: Side;
  margin: Margin;
  // A difference of at least this size would have been found in every item that is neither certain nor the same and has
  // enough weight.
  seen: number;
  atMost: number; // largest possible difference of the items that are not certain
  self: Changes;
  total: Changes;
}

const margin = 0.1;
const second = 1e9;

interface Measured {
  side: Side;
  sums: Sums;
  error: SamplingError;
  timed: boolean;
  scale: number; // from a weight to the compared amount
  unseen: number; // weight
}

// Same as in view/markers.h.
const beforeItsPython = "(before its Python was up)";

// The weight of the time without samples.
function unseenOf(model: Model, selection: Selection, weight: Weight): number {
  const { functions, catalogue } = model.recording;
  const { name } = catalogue.functions;
  const at = name.indexOf(beforeItsPython);
  return at < 0 ? 0 : addUp(selection, "function", weight, itemsOf(functions, name.length)).self[at];
}

function measure(model: Model, query: Query, filters: Filter[], by: By, weight: Weight, items: Items): Measured {
  const selection = model.select({ ...query, filters: [...query.filters, ...filters] });
  const sums = addUp(selection, by, weight, items);
  const all = model.select({ ...query, show: "everything", filters: [...query.filters, ...filters] });
  const { start, wall } = model.recording.intervals;
  const { interval, part } = all.passing;
  const from = filters.flatMap((filter) => (filter.field === "time" && filter.mode === "in" ? [filter.from] : []))[0] ??
    -Infinity;
  let [begin, last, end] = [Infinity, -Infinity, -Infinity];
  for (let k = 0; k < interval.length; ++k) {
    const at = Math.max(start[interval[k]], from);
    begin = Math.min(begin, at);
    last = Math.max(last, at);
    end = Math.max(end, at + (part ? part[k] : wall[interval[k]]));
  }
  const side = { total: sums.total, samples: selection.all.samples, elapsed: end > begin ? end - begin : 0,
    cpu: all.all.cpu };
  return { side, sums, error: samplingError(selection, by, weight, items), timed: isTimed(model.recording.catalogue),
    scale: 1, unseen: unseenOf(model, selection, weight) };
}

function perOf(model: Model, { before, after }: Sides): Per {
  const filters = [...before, ...after];
  if (filters.some(({ field }) => field === "time" || field === "trace")) return "second";
  const { recordings } = model.recording.catalogue;
  return filters.some(({ field }) => field === "recording") && recordings.some(({ wholeRun }) => !wholeRun)
    ? "second"
    : "run";
}

function scaled({ sums, error, timed, scale, unseen }: Measured, part: "self" | "sum", item: number): Amount {
  const { value, variance, step } = amountOf(sums, error, timed, part, item);
  return { value: value * scale, variance: variance * scale * scale, step: step * scale, unseen: unseen * scale };
}

function changes(before: Measured, after: Measured, part: "self" | "sum", margin: Margin, compared: number): Changes {
  const items = before.sums.self.length;
  const out: Changes = {
    before: before.sums[part],
    after: after.sums[part],
    difference: new Float64Array(items),
    low: new Float64Array(items),
    high: new Float64Array(items),
    certain: new Uint8Array(items),
    same: new Uint8Array(items),
  };
  const { strict, single } = strictness(compared);
  for (let i = 0; i < items; ++i) {
    const found = judge(scaled(before, part, i), scaled(after, part, i), margin, strict, single);
    [out.difference[i], out.low[i], out.high[i]] = [found.difference, found.low, found.high];
    out.certain[i] = found.outcome === "more" || found.outcome === "less" ? 1 : 0;
    out.same[i] = found.outcome === "same" ? 1 : 0;
  }
  return out;
}

function compare(model: Model, query: Query, sides: Sides, by: By, weight: Weight, items: Items,
  counts: (item: number) => boolean): Difference
{
  const [before, after] = [sides.before, sides.after].map((filters) =>
    measure(model, query, filters, by, weight, items)
  );
  const hasLength = before.side.elapsed > 0 && after.side.elapsed > 0;
  const per = hasLength ? perOf(model, sides) : "run";
  const isTime = weight !== "samples" &&
    (eventOf(weight) === 0 || model.recording.catalogue.head.events[eventOf(weight) - 1].unit === "ns");
  let least = 0;
  for (const one of [before, after]) {
    one.scale = per === "second" ? (isTime ? 1 : second) / one.side.elapsed : 1;
    const whole = weight === "wall" && one.side.elapsed > 0
      ? Math.min(one.side.total, one.side.elapsed)
      : one.side.total;
    least = Math.max(least, (whole * one.scale * margin) / 10);
  }
  const limits = { own: margin, least };
  let compared = 3; // the length, the CPU time and the whole are tested too
  let several = 0;
  const parts = ["self", "sum"] as const;
  const value = (one: Measured, part: "self" | "sum", i: number) => one.sums[part][i] * one.scale;
  const weighs = (part: "self" | "sum", i: number) => Math.max(value(before, part, i), value(after, part, i)) >= least;
  for (let i = 1; i < items.count; ++i) {
    if (!counts(i) || (before.sums.sum[i] === 0 && after.sums.sum[i] === 0)) continue;
    ++several;
    for (const part of parts) if (weighs(part, i)) ++compared;
  }
  const [self, total] = parts.map((part) => changes(before, after, part, limits, compared));
  // The page does not have the sampling error of await time (report/await_error.h).
  if (isAwait(model.recording.catalogue.head, weight)) {
    for (const { certain, same } of [self, total]) [certain, same].forEach((column) => column.fill(0));
  }
  let [seen, atMost] = [0, 0];
  for (let i = 1; i < items.count; ++i) {
    if (!counts(i) || (before.sums.sum[i] === 0 && after.sums.sum[i] === 0)) continue;
    for (const part of parts) {
      const [b, a] = [scaled(before, part, i), scaled(after, part, i)];
      const error = reachOf(b, a, 2 * several);
      const { certain, same } = part === "self" ? self : total;
      if (weighs(part, i) && !certain[i] && !same[i]) seen = Math.max(seen, error, marginOf(limits, b.value, a.value));
      if (!certain[i]) atMost = Math.max(atMost, Math.abs(a.value - b.value) + error);
    }
  }
  return { per, before: before.side, after: after.side, margin: limits, seen, atMost, self, total };
}

// By function or place.
export function difference(model: Model, query: Query,
  { sides, by, weight }: { sides: Sides; by: By; weight: Weight }): Difference
{
  const { catalogue } = model.recording;
  const tree = by === "line" ? model.recording.lines : model.recording.functions;
  const { kind, owner } = catalogue.functions;
  const { places } = catalogue;
  // The time of the interpreter's own C belongs to the Python above it.
  const isCounted = (f: number) => kind[f] !== Kind.marker && owner[f] !== 1;
  const counts = by === "line" ? (i: number) => places.line[i] > 0 && isCounted(places.function[i]) : isCounted;
  return compare(model, query, sides, by, weight, itemsOf(tree, by === "line" ? places.line.length : kind.length),
    counts);
}

export interface ChangedTree {
  before: Float64Array; // including descendants, by node of the shape
  after: Float64Array;
  beforeSamples: Float64Array;
  afterSamples: Float64Array;
  per: Per;
  difference: Float64Array; // of the amounts
  steps: Int8Array; // -5 (shrank most) to 5 (grew most); 0: no certain difference
}

const steps = 5;

// Over the shape returned by `shape`.
export function changedTree(model: Model, query: Query,
  { sides, by, weight }: { sides: Sides; by: By; weight: Weight }): ChangedTree
{
  const tree = by === "line" ? model.recording.lines : model.recording.functions;
  const { total, per } = compare(model, query, sides, by, weight, nodeItems(tree), () => true);
  const samples = [sides.before, sides.after].map((filters) =>
    Float64Array.from(model.select({ ...query, filters: [...query.filters, ...filters] }).total(by, "samples"))
  );
  const [before, after] = [sides.before, sides.after].map((filters) =>
    Float64Array.from(model.select({ ...query, filters: [...query.filters, ...filters] }).total(by, weight))
  );
  let greatest = 0;
  for (let node = 1; node < total.certain.length; ++node)
    if (total.certain[node]) greatest = Math.max(greatest, Math.abs(total.difference[node]));
  const step = Int8Array.from(total.certain, (certain, node) => {
    if (!certain || node === 0) return 0;
    // A square root keeps small changes visible next to a big one.
    const size = Math.min(steps,
      Math.max(1, Math.ceil(Math.sqrt(Math.abs(total.difference[node]) / greatest) * steps - 0.5)));
    return total.difference[node] > 0 ? size : -size;
  });
  return { before, after, beforeSamples: samples[0], afterSamples: samples[1], per, difference: total.difference,
    steps: step };
}
