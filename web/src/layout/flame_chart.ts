// Boxes of a flame chart: consecutive stacks that share a frame become one box. No DOM.
import { CallTree } from "../model/call_tree";
import { Segments, slack } from "../model/questions/segments";
import { Activity } from "../model/states";

export interface ChartBox {
  node: number;
  row: number; // 0: the outermost frame
  from: number; // ns
  to: number;
  waits: boolean; // throughout the box
}

// One thread's rows: rows[0] has the outermost frames, each row is in time order. Rows deeper than `most` are omitted.
export interface Lane {
  rows: ChartBox[][];
  deeper: number; // rows omitted
}

export function laneOf(tree: CallTree, { first, start, end, node, activity }: Segments, at: number,
  most: number): Lane
{
  const rows: ChartBox[][] = [];
  let open: ChartBox[] = [];
  let until = -Infinity;
  let deepest = 0;
  const path: number[] = [];
  for (let i = first[at]; i < first[at + 1]; ++i) {
    path.length = 0;
    for (let n = node[i]; n > 0; n = tree.parent[n]) path.push(n);
    path.reverse();
    deepest = Math.max(deepest, path.length);
    path.length = Math.min(path.length, most);
    if (start[i] - until > slack) open = [];
    let same = 0;
    while (same < open.length && same < path.length && open[same].node === path[same]) ++same;
    open.length = same;
    const waits = activity[i] === Activity.blocked;
    for (const box of open) {
      box.to = end[i];
      box.waits = box.waits && waits;
    }
    for (let row = same; row < path.length; ++row) {
      const box = { node: path[row], row, from: start[i], to: end[i], waits };
      open.push(box);
      (rows[row] ??= []).push(box);
    }
    until = end[i];
  }
  return { rows, deeper: Math.max(0, deepest - most) };
}

// The first box that ends after the moment.
export function firstAfter(boxes: readonly ChartBox[], time: number): number {
  let low = 0;
  let high = boxes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (boxes[middle].to > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The box at that time; -1: none.
export function boxAt(row: readonly ChartBox[] | undefined, time: number): number {
  const at = row ? firstAfter(row, time) : 0;
  return row && at < row.length && row[at].from <= time ? at : -1;
}
