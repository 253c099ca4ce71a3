// Where the boxes of a flame chart are: lanes one below the other, each with a title, a line of activity and rows.
// Which box is at a place, and which is next to another. No DOM.
import { boxAt, ChartBox, firstAfter, Lane } from "./flame_chart";
import { Sight } from "./timeline";

export const rowHeight = 17;
export const titleHeight = 4; // above a lane
export const lineHeight = 5; // of its activity
const gap = 8; // between lanes

export interface At {
  lane: number;
  row: number;
  index: number; // of the box in its row
}

export class ChartRows {
  readonly tops: number[] = []; // of the lanes, in pixels
  readonly height: number;

  constructor(readonly lanes: readonly Lane[]) {
    let height = 0;
    for (const lane of lanes) {
      this.tops.push(height);
      height += titleHeight + lineHeight + Math.max(2, lane.rows.length) * rowHeight + gap;
    }
    this.height = height;
  }

  top(lane: number, row: number): number {
    return this.tops[lane] + titleHeight + lineHeight + row * rowHeight;
  }

  bottom(lane: number): number {
    return this.top(lane, Math.max(2, this.lanes[lane].rows.length));
  }

  box({ lane, row, index }: At): ChartBox {
    return this.lanes[lane].rows[row][index];
  }

  has({ lane, row, index }: At): boolean {
    return this.lanes[lane]?.rows[row]?.[index] !== undefined;
  }

  under(y: number, time: number): At | null {
    const lane = this.lanes.findIndex(({ rows }, at) => y >= this.top(at, 0) && y < this.top(at, rows.length));
    return lane < 0 ? null : this.atTime(lane, Math.floor((y - this.top(lane, 0)) / rowHeight), time);
  }

  // The outermost visible box of the first lane that has any.
  first({ from }: Sight): At | null {
    for (let lane = 0; lane < this.lanes.length; ++lane) {
      const at = { lane, row: 0, index: firstAfter(this.lanes[lane].rows[0] ?? [], from) };
      if (this.has(at)) return at;
    }
    return null;
  }

  // Where an arrow key leads: along the row, to the caller (from the outermost frame to the previous lane), or inwards.
  next(at: At, key: string): At | null {
    const { lane, row, index } = at;
    if (key === "ArrowDown") return this.inwards(at);
    if (key === "ArrowUp") {
      const { from } = this.box(at);
      return row > 0 ? this.atTime(lane, row - 1, from) : this.nearest(lane - 1, from);
    }
    const next = { lane, row, index: index + (key === "ArrowRight" ? 1 : -1) };
    return this.has(next) ? next : null;
  }

  // The visible boxes that are wanted, by lane and time.
  inOrder({ from, to }: Sight, isWanted: (box: ChartBox) => boolean): At[] {
    return this.lanes.flatMap(({ rows }, lane) =>
      rows.flatMap((boxes, row) => boxes.map((box, index) => ({ box, at: { lane, row, index } })))
        .filter(({ box }) => isWanted(box) && box.to > from && box.from < to)
        .sort((a, b) => a.box.from - b.box.from || a.at.row - b.at.row).map(({ at }) => at)
    );
  }

  private atTime(lane: number, row: number, time: number): At | null {
    const index = boxAt(this.lanes[lane].rows[row], time);
    return index < 0 ? null : { lane, row, index };
  }

  // The outermost box of a lane at that time, or its first.
  private nearest(lane: number, time: number): At | null {
    const row = this.lanes[lane]?.rows[0];
    return row ? { lane, row: 0, index: Math.max(0, boxAt(row, time)) } : null;
  }

  // The longest visible callee; from the innermost frame on to the next lane.
  private inwards(at: At): At | null {
    const { from, to } = this.box(at);
    const inner = (this.lanes[at.lane].rows[at.row + 1] ?? []).map((box, index) => ({ index, length: box.to - box.from,
      box })
    )
      .filter(({ box }) => box.from >= from && box.to <= to);
    if (!inner.length) return this.nearest(at.lane + 1, from);
    const longest = inner.reduce((best, next) => (best.length >= next.length ? best : next));
    return { lane: at.lane, row: at.row + 1, index: longest.index };
  }
}
