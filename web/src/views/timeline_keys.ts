// The keyboard on the timeline: arrows choose a row and a moment, with Shift a range; Enter, Escape and letters act on
// it. timeline_hand handles the pointer.
import { Pointed, stepped } from "../layout/pointed";
import { moved, Sight } from "../layout/timeline";
import { TimelineRow } from "../layout/timeline_rows";
import { rowHeight } from "./timeline_picture";

export interface KeyWishes {
  whole: Sight;
  sight(): Sight;
  rows(): TimelineRow[];
  perPixel(): number; // ns
  see(sight: Sight, alone?: boolean): void;
  back(): void;
  zoom(factor: number): void;
  seeRange(): void;
  choose(range: Sight): void;
  toggleFolded(): void;
  menu(x: number, y: number): void;
  changed(): void; // called when what is pointed at changes
  draw(): void;
  tell(row: TimelineRow): void; // the cursor moved to it
  tellMoment(row: TimelineRow, time: number, number: number): void; // or to a moment in it; number: of the row
}

const pageRows = 6;

export class TimelineKeys {
  constructor(private readonly scroller: HTMLElement, private readonly pointed: Pointed,
    private readonly actions: KeyWishes)
  {
    const move = (rows: number, pixels = 0, choosing = false) => this.move(rows, pixels, choosing);
    const run: Record<string, (event: KeyboardEvent) => void> = {
      ArrowUp: () => move(-1),
      ArrowDown: () => move(1),
      PageUp: () => move(-pageRows),
      PageDown: () => move(pageRows),
      ArrowLeft: ({ shiftKey }) => move(0, -8, shiftKey),
      ArrowRight: ({ shiftKey }) => move(0, 8, shiftKey),
      Home: () => actions.see(actions.whole, true),
      "+": () => actions.zoom(0.7),
      "=": () => actions.zoom(0.7),
      "-": () => actions.zoom(1 / 0.7),
      z: () => actions.seeRange(),
      m: () => this.menu(),
      ContextMenu: () => this.menu(),
      Enter: () => this.enter(),
      Escape: () => this.escape(),
    };
    scroller.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !run[event.key]) return;
      run[event.key](event);
      event.preventDefault();
      event.stopPropagation();
    });
  }

  private move(rows: number, pixels: number, choosing: boolean): void {
    const { scroller, actions } = this;
    const list = actions.rows();
    if (!list.length) return;
    const sight = actions.sight();
    const step = { rows, time: pixels * actions.perPixel(), choosing };
    const { cursor: { row, time } } = Object.assign(this.pointed,
      stepped(this.pointed, step, list.length, sight, actions.whole));
    const top = row * rowHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + rowHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top + rowHeight - scroller.clientHeight;
    if (time < sight.from || time > sight.to)
      actions.see(moved(sight, time - (sight.from + sight.to) / 2, actions.whole));
    actions.changed();
    const here = list[row];
    if (!pixels) return actions.tell(here);
    if (here.kind === "thread" || here.kind === "cpu") actions.tellMoment(here, time, row);
  }

  private menu(): void {
    const { cursor } = this.pointed;
    if (!cursor) return;
    const box = this.scroller.getBoundingClientRect();
    this.actions.menu(box.left + 60, box.top + (cursor.row + 1) * rowHeight - this.scroller.scrollTop);
  }

  private enter(): void {
    const { pointed, actions } = this;
    const row = pointed.cursor ? actions.rows()[pointed.cursor.row] : undefined;
    const range = pointed.brush;
    if (range && range.to > range.from) {
      pointed.brush = null;
      actions.choose(range);
    } else if (row?.kind === "folded") actions.toggleFolded();
    else this.menu();
  }

  private escape(): void {
    const { pointed, actions } = this;
    if (!pointed.brush) return actions.back();
    pointed.brush = pointed.anchor = null;
    actions.draw();
  }
}
