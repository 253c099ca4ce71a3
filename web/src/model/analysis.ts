// A selection added up by item (a function, a line, a node of a tree) with the error of every share: report/analysis.cpp in the
// page. The time shown is cut into blocks of equal length; a share is a ratio of two sums over blocks, x of the item and t of
// everything, p = Σx / Σt, with the variance  B/(B-1) Σ(x_b - p t_b)² / (Σt)².  Few looks make few blocks differ by luck, so it
// is never taken below that of a coin thrown as often as was looked. No DOM.
import { CallTree } from "./call_tree";
import { By, eventOf, Weight } from "./head";
import { samplesOf } from "./passing";
import { Selection } from "./selection";

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
  owner: Uint32Array; // by node: whose item the time is as well, as CallTree has it; itself: nobody's else
}

export function itemsOf(tree: CallTree, count: number): Items {
  return { count, of: tree.label, outermost: tree.outermost, owner: tree.owner };
}

// Each node an item of its own.
export function nodeItems(tree: CallTree): Items {
  const nodes = Uint32Array.from(tree.parent.keys());
  return { count: nodes.length, of: nodes, outermost: new Uint8Array(nodes.length).fill(1), owner: nodes };
}

// The part of each stretch that passes, as SampleFilter::part has it: with several spans from the first one it lies in.
interface Parts {
  node: Uint32Array; // of the tree by line
  start: Float64Array;
  wall: Float64Array;
  weight: Float64Array;
  samples: Float64Array;
}

function partsOf({ recording, passing, passes }: Selection, weight: Weight): Parts {
  const { start, wall, cpu, samples, node, event, value } = recording.stretches;
  const counting = eventOf(weight);
  const { stretch, part } = passing;
  const spans = passes.spans ?? [];
  const count = stretch.length;
  const out: Parts = { node: new Uint32Array(count), start: new Float64Array(count), wall: new Float64Array(count), weight: new Float64Array(count), samples: new Float64Array(count) };
  for (let k = 0; k < count; ++k) {
    const i = stretch[k];
    const length = part ? part[k] : wall[i];
    const share = length < wall[i] ? length / wall[i] : 1;
    const looks = samplesOf(samples[i], share);
    let s = 0;
    while (s < spans.length && spans[s][1] <= start[i]) ++s;
    out.node[k] = node[i];
    out.start[k] = s < spans.length ? Math.max(start[i], spans[s][0]) : start[i];
    out.wall[k] = length;
    const amount = counting ? (event[i] === counting ? value[i] : 0) : cpu[i];
    out.weight[k] = weight === "wall" ? length : weight === "samples" ? looks : share < 1 ? Math.round(amount * share) : amount;
    // Each sample of another event than the one whose looks are counted is a look of its own.
    out.samples[k] = counting ? (event[i] === counting ? Math.max(1, looks) : 0) : looks;
  }
  return out;
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
  readonly here: Float64Array; // of the block that is being added up
  private readonly xx: Float64Array;
  private readonly xt: Float64Array;

  constructor(items: number, private readonly whole: number) {
    [this.weight, this.here, this.xx, this.xt] = [new Float64Array(items), new Float64Array(items), new Float64Array(items), new Float64Array(items)];
  }

  closeBlock(t: number): void {
    const { weight, here, xx, xt, whole } = this;
    for (let item = 0; item < here.length; ++item) {
      if (here[item] === 0) continue;
      const x = here[item] / whole;
      weight[item] += here[item];
      xx[item] += x * x;
      xt[item] += x * t;
      here[item] = 0;
    }
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

function measure({ start, wall, weight, samples }: Parts): Span {
  const all: Span = { total: 0, samples: 0, squares: 0, begin: Infinity, end: -Infinity };
  for (let k = 0; k < start.length; ++k) {
    all.begin = Math.min(all.begin, start[k]);
    all.end = Math.max(all.end, start[k] + wall[k]);
    all.total += weight[k];
    all.samples += samples[k];
    all.squares += (weight[k] * weight[k]) / Math.max(1, samples[k]);
  }
  return all;
}

// Adds up by node what lies in one block after the other. Stretches of a thread are in the order of time, so that each block goes on
// where the one before it ended, and only one block's sums are in use: they stay in the processor's caches.
class Blocks {
  private readonly next: Uint32Array; // by thread: the first part that begins in a later block
  private readonly end: Uint32Array;
  private readonly length: number; // ns
  private over: [number, number][] = []; // parts that reach into the next block, and how much of their weight is left for it
  private now = 0;

  // `nodeOf` says of which node those of a node of the tree by line are; null: of itself. `first`: the parts by thread.
  constructor(private readonly parts: Parts, first: Uint32Array, private readonly span: Span, private readonly count: number, private readonly nodeOf: Uint32Array | null) {
    this.next = first.slice(0, -1);
    this.end = first.subarray(1);
    this.length = count > 1 ? (span.end - span.begin) / count : 1;
  }

  addNext(sums: Float64Array): void {
    const { parts: { node, start, wall, weight }, nodeOf, next, end, length, span: { begin } } = this;
    const isLast = this.now === this.count - 1;
    const until = ++this.now; // in blocks
    const over = this.over;
    this.over = [];
    for (const [k, left] of over) this.addLong(sums, k, left, isLast);
    for (let thread = 0; thread < next.length; ++thread) {
      let k = next[thread];
      for (; k < end[thread] && (isLast || (start[k] - begin) / length < until); ++k) {
        if (isLast || wall[k] === 0 || (start[k] + wall[k] - 1 - begin) / length < until) sums[nodeOf ? nodeOf[node[k]] : node[k]] += weight[k];
        else this.addLong(sums, k, weight[k], false);
      }
      next[thread] = k;
    }
  }

  private addLong(sums: Float64Array, k: number, left: number, isLast: boolean): void {
    const { parts: { node, start, wall, weight }, nodeOf, length, span: { begin }, now } = this;
    let piece = left;
    if (!isLast && (start[k] + wall[k] - 1 - begin) / length >= now) {
      const inside = begin - start[k] + length * now; // of the stretch, up to the end of the block
      const done = Math.min(weight[k], Math.max(0, Math.round((weight[k] * inside) / wall[k])));
      piece = Math.max(0, done - (weight[k] - left));
      this.over.push([k, left - piece]);
    }
    sums[nodeOf ? nodeOf[node[k]] : node[k]] += piece;
  }
}

export function analyse(selection: Selection, by: By, weight: Weight, items: Items): Analysis {
  const { functionNode } = selection.recording;
  const parts = partsOf(selection, weight);
  const all = measure(parts);
  const blocks = Math.min(mostBlocks, Math.floor(all.samples / looksInABlock));
  const count = blocks >= 5 && all.end > all.begin ? blocks : 1;
  const { parent } = selection.tree(by);
  const self = new Adder(items.count, all.total);
  const sum = new Adder(items.count, all.total);
  let tt = 0;
  const { of, outermost, owner } = items;
  const cut = new Blocks(parts, selection.passing.first, all, count, by === "line" ? null : functionNode);
  const block = new Float64Array(parent.length);
  const [selfHere, sumHere] = [self.here, sum.here];
  const beneath = new Float64Array(parent.length);
  for (let b = 0; b < count; ++b) {
    cut.addNext(block);
    let t = block[0];
    block[0] = 0;
    // Children come before their parents.
    for (let node = block.length - 1; node > 0; --node) {
      const own = block[node];
      const all = own + beneath[node];
      if (all === 0) continue;
      const item = of[node];
      selfHere[item] += own;
      if (owner[node] !== node) selfHere[of[owner[node]]] += own;
      t += own;
      block[node] = 0;
      if (outermost[node]) sumHere[item] += all;
      beneath[parent[node]] += all;
      beneath[node] = 0;
    }
    beneath[0] = 0;
    const share = all.total > 0 ? t / all.total : 0;
    tt += share * share;
    self.closeBlock(share);
    sum.closeBlock(share);
  }
  const looks = all.squares > 0 ? (all.total * all.total) / all.squares : 0;
  const told = count > 1 ? count : 0;
  return { total: all.total, samples: all.samples, looks, blocks: told, self: self.finish(looks, told, tt), sum: sum.finish(looks, told, tt) };
}
