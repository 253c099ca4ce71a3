// How far sampling alone may have moved what an item weighs: report/sampling_error.cpp in the page, which says why. Between two
// samples of a thread, of which one saw the item and the other did not, w of its time passed: the variance is ¾ Σ w². No DOM.
import { Items, Sums } from "./analysis";
import { Catalogue } from "./catalogue";
import { Amount } from "./comparison";
import { By, eventOf, Weight } from "./head";
import { samplesOf } from "./passing";
import { Selection } from "./selection";

export interface SamplingError {
  self: Float64Array; // variances of weights, by item
  sum: Float64Array;
  whole: number;
  step: number; // weight between two samples of a thread; each counted by its weight
}

// An item's weight with its error. `timed`: when samples were is known; else nothing is known of neighbours.
export function amountOf({ total, self, sum }: Sums, error: SamplingError, timed: boolean, part: "self" | "sum",
  item: number): Amount
{
  const value = (part === "self" ? self : sum)[item];
  const variance = timed ? error[part][item] : total > 0 ? error.step * value * (1 - value / total) : 0;
  return { value, variance, step: error.step };
}

// Of merged pages the order within a while is lost.
export const isTimed = ({ timed, head }: Catalogue) => timed && !head.merged;

const ofSquares = 0.75;
const notChosen = -1;

// Two neighbouring samples of one thread with different stacks.
interface Crossing {
  time: number;
  from: number; // nodes, or notChosen
  to: number;
  weight: number;
}

// The variance of each item of one kind.
class Adder {
  private readonly here: Float64Array;
  private readonly sum: Float64Array;
  private readonly squares: Float64Array;
  private readonly moment: Float64Array;
  private readonly variance: Float64Array;
  private touched: number[] = [];

  constructor(items: number) {
    [this.here, this.sum, this.squares, this.variance] = [new Float64Array(items), new Float64Array(items),
      new Float64Array(items), new Float64Array(items)];
    this.moment = new Float64Array(items).fill(-1);
  }

  change(item: number, weight: number): void {
    if (item === 0) return;
    if (this.here[item] === 0) this.touched.push(item);
    this.here[item] += weight;
  }

  // All changes of one crossing are there: what was left and entered again did not change.
  closeCrossing(moment: number): void {
    for (const item of this.touched) {
      const change = this.here[item];
      this.here[item] = 0;
      if (change === 0) continue;
      if (this.moment[item] !== moment) this.closeMoment(item);
      this.moment[item] = moment;
      this.sum[item] += change;
      this.squares[item] += change * change;
    }
    this.touched = [];
  }

  private closeMoment(item: number): void {
    this.variance[item] += Math.max(this.squares[item], this.sum[item] * this.sum[item]) * ofSquares;
    this.sum[item] = this.squares[item] = 0;
  }

  finish(): Float64Array {
    for (let item = 1; item < this.here.length; ++item) this.closeMoment(item);
    return this.variance;
  }
}

interface Found {
  crossings: Crossing[]; // in the order of time
  step: number;
  interval: number; // ns between two samples of a thread, as an average
}

const blocked = 3;
const runnable = 2;

// When an interval that starts there begins to pass.
function startIn(spans: readonly [number, number][], start: number): number {
  for (let s = 0; s < spans.length; ++s) if (spans[s][1] > start) return Math.max(start, spans[s][0]);
  return start;
}

// The mean square of the weights before and after a crossing, of those that are chosen.
const squareOf = (from: number, before: number, to: number, after: number) =>
  from === notChosen ? after * after : to === notChosen ? before * before : (before * before + after * after) / 2;

function crossingsOf({ recording, passing, passes }: Selection, by: By, weight: Weight): Found {
  const { first, start, wall, cpu, samples, node, event, value, state } = recording.intervals;
  const { states, threads, recordings } = recording.catalogue;
  const counting = eventOf(weight);
  const waits = Uint8Array.from(states, ({ cpu }) => (cpu === blocked || cpu === runnable ? 1 : 0));
  const nodeOf = by === "line" ? null : recording.functionNode;
  const crossings: Crossing[] = [];
  let [all, squares, seen, length] = [0, 0, 0, 0];
  for (let t = 0; t + 1 < first.length; ++t) {
    const exact = recordings[threads[t].recording]?.exactWaits ?? false;
    const spans = passes.spans?.(t) ?? [];
    let k = passing.first[t];
    const end = passing.first[t + 1];
    if (k === end) continue;
    let [lastNode, lastWeight, lastTime, unseen, any] = [0, 0, 0, 0, false];
    for (let i = first[t]; i < first[t + 1]; ++i) {
      const chosen = k < end && passing.interval[k] === i;
      const part = chosen && passing.part ? passing.part[k] : wall[i];
      if (chosen) ++k;
      if (event[i] && event[i] !== counting && wall[i] === 0 && samples[i] === 0) continue; // was not sampled with this weight
      // Waits that the kernel timed begin and end where it says.
      if (exact && waits[state[i]]) continue;
      const share = part < wall[i] ? part / wall[i] : 1;
      const sampled = samplesOf(samples[i], share);
      let amount = 0;
      if (chosen) {
        const whole = counting ? (event[i] === counting ? value[i] : 0) : cpu[i];
        amount = weight === "wall"
          ? part
          : weight === "samples"
          ? sampled
          : share < 1
          ? Math.round(whole * share)
          : whole;
        if (amount === 0) continue;
        if (samples[i] === 0) {
          unseen += amount;
          continue;
        }
      }
      const time = chosen ? startIn(spans, start[i]) : start[i];
      const count = Math.max(1, chosen ? sampled : 0);
      const here = (amount + unseen) / count;
      unseen = 0;
      const now = chosen ? (nodeOf ? nodeOf[node[i]] : node[i]) : notChosen;
      if (chosen) all += here * count;
      if (chosen) squares += here * here * count;
      if (any) {
        seen += count;
        length += Math.max(0, time - lastTime);
        const square = squareOf(lastNode, lastWeight, now, here);
        if (lastNode !== now && square > 0)
          crossings.push({ time, from: lastNode, to: now, weight: Math.sqrt(square) });
      }
      [lastNode, lastWeight, lastTime, any] = [now, here, time, true];
    }
  }
  crossings.sort((a, b) => a.time - b.time);
  return { crossings, step: all > 0 ? squares / all : 0, interval: seen > 0 ? Math.trunc(length / seen) : 0 };
}

export function samplingError(selection: Selection, by: By, weight: Weight,
  { count, of, outermost, owner, ownersAlone }: Items): SamplingError
{
  const { crossings, step, interval } = crossingsOf(selection, by, weight);
  const { parent } = selection.tree(by);
  const [self, sum, whole] = [new Adder(count), new Adder(count), new Adder(2)];
  const moments = Math.max(1, Math.trunc(interval / 2));
  const begin = crossings.length ? crossings[0].time : 0;
  const counts = (node: number) => outermost[node] && !(ownersAlone && owner[node] !== node);
  const leaf = (node: number, weight: number) => {
    if (node === notChosen) return;
    whole.change(1, weight);
    // Native code beneath a Python function is its own and that function's.
    self.change(of[owner[node]], weight);
    if (owner[node] !== node && !ownersAlone) self.change(of[node], weight);
  };
  for (const { time, from, to, weight } of crossings) {
    leaf(from, -weight);
    leaf(to, weight);
    // Up to where both meet: parents come before their children.
    let [a, b] = [Math.max(0, from), Math.max(0, to)];
    while (a !== b) {
      if (a > b) {
        if (counts(a)) sum.change(of[a], -weight);
        a = parent[a];
      } else {
        if (counts(b)) sum.change(of[b], weight);
        b = parent[b];
      }
    }
    const moment = Math.trunc((time - begin) / moments);
    for (const adder of [self, sum, whole]) adder.closeCrossing(moment);
  }
  return { self: self.finish(), sum: sum.finish(), whole: whole.finish()[1], step };
}
