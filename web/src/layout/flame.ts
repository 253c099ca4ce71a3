// The position of each box of a flame graph. No DOM: returns rows and pixels from the left; the caller decides in which
// direction rows grow. exporters/flame_layout.cpp does the same for the static picture; tests/browser compares them.
//
//   x(node) = (weight of everything to its left beneath the zoomed node) / total(zoomed) * width
//   width(node) = total(node) / total(zoomed) * width
//
// A node's children stand side by side from its left edge, in their order; its own weight is the free rest on the right.
import { Shape } from "../model/tree";

export interface LayoutOptions {
  width: number;
  minWidth: number; // narrower boxes are omitted
  maxBoxes: number; // minWidth is doubled until at most this many boxes are left
  maxDepth: number; // rows beneath the zoomed node
  maxAncestors: number; // rows between the root and the zoomed node; those in the middle are folded into one row
}

// A box narrower than 0.3 px changes a pixel's colour by less than a third: it can be neither seen nor clicked.
// Chromium draws 20,000 boxes in 0.2 s and 100,000 in 10 s. 512 rows are 9,000 px, more than anyone scrolls through.
export const defaultOptions: LayoutOptions = {
  width: 1180,
  minWidth: 0.3,
  maxBoxes: 20000,
  maxDepth: 512,
  maxAncestors: 12,
};

export interface Box {
  node: number;
  row: number; // 0: the root
  x: number;
  width: number;
}

export interface LeftOut {
  frames: number;
  weight: number; // of the outermost ones: the area left empty in the picture
}

export interface Layout {
  ancestors: Box[]; // of the zoomed node, at full width, root first
  skipped: { row: number; frames: number; node: number } | null; // ancestors folded into one row; node: the innermost
  boxes: Box[]; // the zoomed node and its descendants, row by row
  rows: number;
  minWidth: number; // the value used
  narrow: LeftOut;
  deep: LeftOut;
}

// To a hundredth of a pixel, as the exporter rounds.
export function roundPixels(value: number): number {
  return Math.floor(value * 100 + 0.5) / 100;
}

// By node: how many frames of its subtree, itself included, have a width.
function framesFrom({ parent }: Shape, total: Float64Array): Uint32Array {
  const count = new Uint32Array(total.length);
  for (let node = total.length - 1; node > 0; --node) {
    if (total[node] > 0) ++count[node];
    count[parent[node]] += count[node];
  }
  return count;
}

function ancestorRows(tree: Shape, zoom: number, options: LayoutOptions): Pick<Layout, "ancestors" | "skipped"> {
  const chain: number[] = [];
  for (let node = zoom; node !== 0;) chain.unshift(node = tree.parent[node]);
  const full = (node: number, row: number): Box => ({ node, row, x: 0, width: options.width });
  if (chain.length <= options.maxAncestors) return { ancestors: chain.map(full), skipped: null };
  const kept = chain.slice(chain.length - (options.maxAncestors - 2));
  const frames = chain.length - kept.length - 1;
  return {
    ancestors: [full(0, 0), ...kept.map((node, i) => full(node, i + 2))],
    skipped: { row: 1, frames, node: chain[frames] },
  };
}

function attempt(tree: Shape, total: Float64Array, frames: Uint32Array, zoom: number, options: LayoutOptions,
  minWidth: number): Layout | null
{
  const above = ancestorRows(tree, zoom, options);
  const base = above.ancestors.length + (above.skipped ? 1 : 0);
  const scale = total[zoom] > 0 ? options.width / total[zoom] : 0;
  const narrow = { frames: 0, weight: 0 };
  const deep = { frames: 0, weight: 0 };
  const boxes: Box[] = [{ node: zoom, row: base, x: 0, width: options.width }];
  const offsets = [0]; // by box: weight to its left
  let rows = base + 1;
  for (let i = 0; i < boxes.length; ++i) {
    let offset = offsets[i];
    const row = boxes[i].row + 1;
    for (let child = tree.firstChild[boxes[i].node]; child; child = tree.nextSibling[child]) {
      const weight = total[child];
      if (weight <= 0) continue;
      if (weight * scale < minWidth || row - base > options.maxDepth) {
        const out = weight * scale < minWidth ? narrow : deep;
        out.frames += frames[child];
        out.weight += weight;
      } else {
        if (boxes.length >= options.maxBoxes) return null;
        boxes.push({ node: child, row, x: offset * scale, width: weight * scale });
        offsets.push(offset);
        rows = Math.max(rows, row + 1);
      }
      offset += weight;
    }
  }
  return { ...above, boxes, rows, minWidth, narrow, deep };
}

// `total`: tree.weights.total, or tree.before.total for the other recording's widths.
export function layout(tree: Shape, total: Float64Array, zoom: number, options: LayoutOptions): Layout {
  const frames = framesFrom(tree, total);
  for (let minWidth = options.minWidth;; minWidth *= 2) {
    const done = attempt(tree, total, frames, zoom, options, minWidth);
    if (done) return done;
  }
}
