// The boxes of a layout by row: to draw the visible ones and find the one under the pointer. No DOM.
import { Box, Layout } from "./flame";

export class Rows {
  private readonly rows: Box[][] = [];

  constructor(done: Layout) {
    for (const list of [done.ancestors, done.boxes]) {
      for (const box of list) (this.rows[box.row] ??= []).push(box);
    }
  }

  // Left to right.
  at(row: number): Box[] {
    return this.rows[row] ?? [];
  }

  // Among several boxes in the same pixel, the one that reaches furthest into it.
  find(row: number, x: number): Box | undefined {
    const boxes = this.at(row);
    let low = 0;
    let high = boxes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (boxes[middle].x + boxes[middle].width <= x) low = middle + 1;
      else high = middle;
    }
    const box = boxes[low];
    return box && box.x <= x ? box : undefined;
  }
}
