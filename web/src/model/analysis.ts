// A selection added up by item (a function, a line, a node of a tree) with the error of every share: report/analysis.cpp in the
// page. The time shown is cut into blocks of equal length; a share is a ratio of two sums over blocks, x of the item and t of
// everything, p = Σx / Σt, with the variance  B/(B-1) Σ(x_b - p t_b)² / (Σt)².  Few looks make few blocks differ by luck, so it
// is never taken below that of a coin thrown as often as was looked. No DOM.
import { CallTree } from "./call_tree";
import { By, Weight } from "./head";
import { Recording } from "./recording";
import { overlap, Passes, samplesOf, Selection, touches } from "./selection";

const mostBlocks = 30;
const looksInABlock = 10;
export const missing = 0.01; // 99 % intervals

export interface Shares {
  weight: Float64Array; // by item
  variance: Float64Array; // of the share
}

export interface Analysis {
  total: number;
  samples: number;
  looks: number; // as many equal ones would say as much
  blocks: number; // 0: too few looks for any
  self: Shares;
  sum: Shares; // with everything beneath; an item within itself counts once
}

// What nodes of a tree are counted as: an item below `count`, 0 of them for none.
export interface Items {
  count: number;
  of: Uint32Array; // by node
  outermost: Uint8Array; // 1: no node above is the same item
}

export function itemsOf(tree: CallTree, count: number): Items {
  return { count, of: tree.label, outermost: tree.outermost };
}

// Each node an item of its own.
export function nodeItems(tree: CallTree): Items {
  return { count: tree.parent.length, of: Uint32Array.from(tree.parent.keys()), outermost: new Uint8Array(tree.parent.length).fill(1) };
}

type Part = (node: number, start: number, wall: number, weight: number, samples: number) => void;

// Every part of a stretch that passes, as SampleFilter::part has it: with several spans from the first one it lies in.
function eachPart(recording: Recording, passes: Passes, weight: Weight, run: Part): void {
  const { first, start, wall, cpu, samples, node, state, doing } = recording.stretches;
  for (let t = 0; t + 1 < first.length; ++t) {
    if (!passes.thread[t]) continue;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      if ((passes.node[node[i]] & passes.state[state[i]] & passes.doing[doing[i]]) === 0) continue;
      let [from, length, share] = [start[i], wall[i], 1];
      if (passes.spans) {
        length = overlap(passes.spans, from, wall[i]);
        if (!touches(passes.spans, from, length, wall[i])) continue;
        if (length < wall[i]) share = length / wall[i];
        const span = passes.spans.find(([, to]) => to > from);
        if (span) from = Math.max(from, span[0]);
      }
      const looks = samplesOf(samples[i], share);
      run(node[i], from, length, weight === "wall" ? length : weight === "samples" ? looks : share < 1 ? Math.round(cpu[i] * share) : cpu[i], looks);
    }
  }
}

// Agresti and Coull: the variance of a share of so many throws, not zero for 0 and 1. 6.6 is the square of 2.58, of 99 %.
function throwVariance(share: number, looks: number): number {
  if (looks <= 0) return 1;
  const p = (share * looks + 3.3) / (looks + 6.6);
  return (p * (1 - p)) / looks;
}

export const unseenVariance = (analysis: Analysis) => throwVariance(0, analysis.looks);

// The complementary error function, to 1e-7 of itself (W. J. Cody's form in Numerical Recipes, 6.2).
function erfc(x: number): number {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  const series = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const y = t * Math.exp(-x * x + series.reduceRight((sum, c) => sum * t + c, 0));
  return x >= 0 ? y : 2 - y;
}

// How many standard errors the two-sided interval with this chance of missing reaches to either side (Student's t).
export function quantile(chance: number, blocks: number): number {
  const tail = chance / 2;
  const t = Math.sqrt(-2 * Math.log(tail));
  // The normal's: Abramowitz and Stegun 26.2.23 with two Newton steps.
  let z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  for (let i = 0; i < 2; ++i) z += (0.5 * erfc(z / Math.SQRT2) - tail) / (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI));
  if (blocks < 2) return z;
  // Student's from the normal's: Abramowitz and Stegun 26.7.5.
  const [v, z3] = [blocks - 1, z * z * z];
  const [z5, z7] = [z3 * z * z, z3 * z * z * z * z];
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) + (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v);
}

// Sums of each item and what its variance needs: over blocks, of x² and x·t, in parts of the whole.
class Adder {
  readonly weight: Float64Array;
  private readonly here: Float64Array;
  private readonly xx: Float64Array;
  private readonly xt: Float64Array;
  private touched: number[] = [];

  constructor(items: number, private readonly whole: number) {
    [this.weight, this.here, this.xx, this.xt] = [new Float64Array(items), new Float64Array(items), new Float64Array(items), new Float64Array(items)];
  }

  add(item: number, weight: number): void {
    if (this.here[item] === 0) this.touched.push(item);
    this.here[item] += weight;
  }

  closeBlock(t: number): void {
    for (const item of this.touched) {
      const x = this.here[item] / this.whole;
      this.weight[item] += this.here[item];
      this.xx[item] += x * x;
      this.xt[item] += x * t;
      this.here[item] = 0;
    }
    this.touched = [];
  }

  finish(looks: number, blocks: number, tt: number): Shares {
    const variance = this.weight.map((weight, i) => {
      const p = this.whole > 0 ? weight / this.whole : 0;
      const thrown = throwVariance(p, looks);
      return blocks > 1 ? Math.max(thrown, (blocks / (blocks - 1)) * Math.max(0, this.xx[i] - 2 * p * this.xt[i] + p * p * tt)) : thrown;
    });
    return { weight: this.weight, variance };
  }
}

interface Span { total: number; samples: number; squares: number; begin: number; end: number }

function measure(recording: Recording, passes: Passes, weight: Weight): Span {
  const all: Span = { total: 0, samples: 0, squares: 0, begin: Infinity, end: -Infinity };
  eachPart(recording, passes, weight, (_, start, wall, part, samples) => {
    all.begin = Math.min(all.begin, start);
    all.end = Math.max(all.end, start + wall);
    all.total += part;
    all.samples += samples;
    all.squares += (part * part) / Math.max(1, samples);
  });
  return all;
}

// Weights of the nodes of the tree by line, block by block.
function cutIntoBlocks(recording: Recording, passes: Passes, weight: Weight, { begin, end }: Span, count: number, run: (block: Float64Array) => void): void {
  const nodes = recording.lines.parent.length;
  const sums = Array.from({ length: count }, () => new Float64Array(nodes));
  const length = count > 1 ? (end - begin) / count : 1;
  const blockOf = (time: number) => Math.min(count - 1, Math.floor((time - begin) / length));
  eachPart(recording, passes, weight, (node, start, wall, part) => {
    if (part === 0) return;
    let block = count > 1 ? blockOf(start) : 0;
    const last = count > 1 && wall > 0 ? blockOf(start + wall - 1) : block;
    let left = part;
    for (; block < last; ++block) {
      const until = begin - start + length * (block + 1); // of the stretch, up to the end of the block
      const done = Math.min(part, Math.max(0, Math.round((part * until) / wall)));
      const piece = done - (part - left);
      if (piece <= 0) continue;
      sums[block][node] += piece;
      left -= piece;
    }
    if (left > 0) sums[last][node] += left;
  });
  for (const block of sums) run(block);
}

export function analyse(selection: Selection, by: By, weight: Weight, items: Items): Analysis {
  const { recording, passes } = selection;
  const all = measure(recording, passes, weight);
  const blocks = Math.min(mostBlocks, Math.floor(all.samples / looksInABlock));
  const count = blocks >= 5 && all.end > all.begin ? blocks : 1;
  const tree = selection.tree(by);
  const { functionNode } = recording;
  const self = new Adder(items.count, all.total);
  const sum = new Adder(items.count, all.total);
  let tt = 0;
  const beneath = new Float64Array(tree.parent.length);
  cutIntoBlocks(recording, passes, weight, all, count, (block) => {
    beneath.fill(0);
    let t = 0;
    for (let node = 0; node < block.length; ++node) {
      if (block[node] === 0) continue;
      const at = by === "line" ? node : functionNode[node];
      beneath[at] += block[node];
      t += block[node];
    }
    for (let node = beneath.length - 1; node > 0; --node) if (beneath[node] !== 0) self.add(items.of[node], beneath[node]);
    for (let node = beneath.length - 1; node > 0; --node) {
      if (beneath[node] === 0) continue;
      if (items.outermost[node]) sum.add(items.of[node], beneath[node]);
      beneath[tree.parent[node]] += beneath[node];
    }
    const share = all.total > 0 ? t / all.total : 0;
    tt += share * share;
    self.closeBlock(share);
    sum.closeBlock(share);
  });
  const looks = all.squares > 0 ? (all.total * all.total) / all.squares : 0;
  const cut = count > 1 ? count : 0;
  return { total: all.total, samples: all.samples, looks, blocks: cut, self: self.finish(looks, cut, tt), sum: sum.finish(looks, cut, tt) };
}
