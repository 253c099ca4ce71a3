// The keyboard on the timeline: arrows choose a row and a moment, with Shift a range; Enter, Escape and letters act on
// it. timeline_hand handles the pointer.
import { moved, Sight } from "../layout/timeline";
import { TimelineRow } from "../layout/timeline_rows";
import { rowHeight } from "./timeline_picture";

// What the keys or the pointer point at.
export interface Pointed {
  cursor: { row: number; time: number } | null;
  brush: Sight | null; // the range being chosen
  anchor: number | null; // start of a range chosen by keys
}

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

export function holdKeys(scroller: HTMLElement, pointed: Pointed, actions: KeyWishes): void {
  const { whole } = actions;

  function move(rows: number, pixels: number, choosing: boolean): void {
    const list = actions.rows();
    if (!list.length) return;
    const sight = actions.sight();
    const before = pointed.cursor ?? { row: rows > 0 ? -1 : 0, time: (sight.from + sight.to) / 2 };
    const row = Math.max(0, Math.min(list.length - 1, before.row + rows));
    const at = Math.max(whole.from, Math.min(whole.to, before.time + pixels * actions.perPixel()));
    if (choosing) pointed.anchor ??= before.time;
    else if (pixels) pointed.anchor = null;
    const { anchor } = pointed;
    pointed.cursor = { row, time: at };
    pointed.brush = anchor === null
      ? null
      : { from: Math.round(Math.min(anchor, at)), to: Math.round(Math.max(anchor, at)) };
    const top = row * rowHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + rowHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = top + rowHeight - scroller.clientHeight;
    if (at < sight.from || at > sight.to) actions.see(moved(sight, at - (sight.from + sight.to) / 2, whole));
    actions.changed();
    const here = list[row];
    if (!pixels) return actions.tell(here);
    if (here.kind === "thread" || here.kind === "cpu") actions.tellMoment(here, at, row);
  }

  function menu(): void {
    if (!pointed.cursor) return;
    const box = scroller.getBoundingClientRect();
    actions.menu(box.left + 60, box.top + (pointed.cursor.row + 1) * rowHeight - scroller.scrollTop);
  }

  function enter(): void {
    const row = pointed.cursor ? actions.rows()[pointed.cursor.row] : undefined;
    const range = pointed.brush;
    if (range && range.to > range.from) {
      pointed.brush = null;
      actions.choose(range);
    } else if (row?.kind === "folded") actions.toggleFolded();
    else menu();
  }

  function escape(): void {
    if (!pointed.brush) return actions.back();
    pointed.brush = pointed.anchor = null;
    actions.draw();
  }

  scroller.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { shiftKey } = event;
    const run: Record<string, () => void> = {
      ArrowUp: () => move(-1, 0, false),
      ArrowDown: () => move(1, 0, false),
      PageUp: () => move(-pageRows, 0, false),
      PageDown: () => move(pageRows, 0, false),
      ArrowLeft: () => move(0, -8, shiftKey),
      ArrowRight: () => move(0, 8, shiftKey),
      Home: () => actions.see(whole, true),
      "+": () => actions.zoom(0.7),
      "=": () => actions.zoom(0.7),
      "-": () => actions.zoom(1 / 0.7),
      z: actions.seeRange,
      m: menu,
      ContextMenu: menu,
      Enter: enter,
      Escape: escape,
    };
    if (!run[event.key]) return;
    run[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });
}
