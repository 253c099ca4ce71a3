// The pointer on the timeline: what a wheel, a drag or a click means. Knows pixels and moments, no threads.
import { moved, Sight, timeAt, xOf } from "../layout/timeline";
import { afterWheel } from "./parts/time_wheel";
import { headHeight, ruler } from "./timeline_picture";

export interface HandWishes {
  whole(): Sight;
  sight(): Sight;
  plot(): { left: number; width: number }; // pixels from the canvas' left edge
  edges(): number[]; // of the chosen range; they can be dragged
  scrolls(): boolean; // the rows do not fit the window: the wheel scrolls them
  see(sight: Sight): void;
  brush(range: Sight | null): void; // while it is drawn
  choose(range: Sight): void; // when it is finished
  click(y: number, time: number, inGutter: boolean): void; // on the rows
  menu(y: number, time: number, at: MouseEvent): void;
  hover(where: "strip" | "marks" | "rows" | "gutter" | "", x: number, y: number, event: MouseEvent): void;
}

const clickSlack = 3; // pixels that the pointer may move during a click
const edgeSlack = 4;

type Drag = (x: number) => void;

interface At {
  x: number; // pixels from the left edge of the plot
  y: number;
  width: number; // of the plot
}

export class TimelineHand {
  constructor(private readonly head: HTMLElement, private readonly rows: HTMLElement,
    private readonly actions: HandWishes)
  {
    for (const element of [head, rows]) {
      element.addEventListener("wheel", (event) => this.wheel(element, event), { passive: false });
      element.addEventListener("pointerleave", (event) => actions.hover("", 0, 0, event));
    }
    head.addEventListener("pointerdown", (event) => this.pressHead(event));
    rows.addEventListener("pointerdown", (event) => this.pressRows(event));
    rows.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      const { x, y, width } = this.at(event, rows);
      actions.menu(y, this.timeOf(x, width), event);
    });
    head.addEventListener("pointermove", (event) => {
      if (event.buttons) return;
      const { x, y } = this.at(event, head);
      head.style.cursor = x < 0 ? "" : y >= ruler.top ? "grab" : "crosshair";
      actions.hover(x < 0 ? "" : y < ruler.top ? "strip" : y < headHeight ? "marks" : "", x, y, event);
    });
    rows.addEventListener("pointermove", (event) => {
      if (event.buttons) return;
      const { x, y, width } = this.at(event, rows);
      rows.style.cursor = x < 0 ? "pointer" : this.held(x, width) === null ? "crosshair" : "ew-resize";
      actions.hover(x > width ? "" : x < 0 ? "gutter" : "rows", x, y, event);
    });
  }

  private at(event: MouseEvent, element: HTMLElement): At {
    const box = element.getBoundingClientRect();
    const { left, width } = this.actions.plot();
    return { x: event.clientX - box.left - left, y: event.clientY - box.top, width };
  }

  private timeOf(x: number, width: number, sight = this.actions.sight()): number {
    const { from, to } = this.actions.whole();
    return Math.max(from, Math.min(to, timeAt(x, sight, width)));
  }

  private wheel(element: HTMLElement, event: WheelEvent): void {
    const { actions } = this;
    const { x, y, width } = this.at(event, element);
    if (x < 0) return;
    const scrolls = element === this.rows && actions.scrolls();
    const around = element === this.head && y < ruler.top ? actions.whole() : actions.sight();
    const next = afterWheel(event, x, width, actions.sight(), actions.whole(), scrolls, around);
    if (!next) return;
    event.preventDefault();
    actions.see(next);
  }

  // ---- dragging -------------------------------------------------------------------------------------------------
  private drag(element: HTMLElement, event: PointerEvent, move: Drag, end?: (moved: boolean, x: number) => void): void {
    const start = this.at(event, element).x;
    let began = false;
    element.setPointerCapture(event.pointerId);
    const follow = (next: PointerEvent) => {
      const { x } = this.at(next, element);
      if (!began && Math.abs(x - start) < clickSlack) return;
      began = true;
      move(x);
    };
    const stop = (last: PointerEvent) => {
      element.removeEventListener("pointermove", follow);
      element.removeEventListener("pointerup", stop);
      element.removeEventListener("pointercancel", stop);
      if (last.type === "pointercancel") this.actions.brush(null);
      else end?.(began, this.at(last, element).x);
    };
    element.addEventListener("pointermove", follow);
    element.addEventListener("pointerup", stop);
    element.addEventListener("pointercancel", stop);
  }

  private pan(element: HTMLElement, event: PointerEvent, { x, width }: At, speed: number): void {
    const sight = this.actions.sight();
    const length = sight.to - sight.from;
    this.drag(element, event,
      (to) => this.actions.see(moved(sight, (((x - to) * speed) / width) * length, this.actions.whole())));
  }

  // From `fixed` to the pointer; `otherwise`: the pointer did not move.
  private brush(element: HTMLElement, event: PointerEvent, fixed: number, width: number, sight: () => Sight,
    use: (range: Sight) => void, otherwise: () => void): void
  {
    const range = (x: number) => {
      const time = this.timeOf(Math.max(0, Math.min(width, x)), width, sight());
      return { from: Math.round(Math.min(fixed, time)), to: Math.round(Math.max(fixed, time)) };
    };
    this.drag(element, event, (x) => this.actions.brush(range(x)), (moved, x) => {
      this.actions.brush(null);
      const done = range(x);
      if (moved && done.to > done.from) use(done);
      else if (!moved) otherwise();
    });
  }

  // The end that stays, if the pointer is on the other one.
  private held(x: number, width: number): number | null {
    const edges = this.actions.edges();
    if (edges.length !== 2) return null;
    const [a, b] = edges.map((time) => Math.abs(xOf(time, this.actions.sight(), width) - x));
    return Math.min(a, b) > edgeSlack ? null : a < b ? edges[1] : edges[0];
  }

  private pressHead(event: PointerEvent): void {
    const { head, actions } = this;
    const at = this.at(event, head);
    const { x, y, width } = at;
    if (event.button !== 0 || x < 0) return;
    const sight = actions.sight();
    const whole = actions.whole();
    if (y >= ruler.top) return this.pan(head, event, at, 1);
    const [a, b] = [xOf(sight.from, whole, width), xOf(sight.to, whole, width)];
    const isWhole = sight.from <= whole.from && sight.to >= whole.to;
    if (!isWhole && x >= a && x <= b)
      return this.pan(head, event, at, -(whole.to - whole.from) / (sight.to - sight.from));
    this.brush(head, event, this.timeOf(x, width, whole), width, () => whole, (range) => actions.see(range), () => {
      if (!isWhole) actions.see(moved(sight, timeAt(x, whole, width) - (sight.from + sight.to) / 2, whole));
    });
  }

  private pressRows(event: PointerEvent): void {
    const { rows, actions } = this;
    const at = this.at(event, rows);
    const { x, y, width } = at;
    // The scroll bar is next to the canvas.
    if (x > width || event.button > 1) return;
    if (x >= 0 && (event.button === 1 || event.shiftKey)) {
      event.preventDefault();
      return this.pan(rows, event, at, 1);
    }
    if (event.button !== 0) return;
    const time = this.timeOf(x, width);
    if (x < 0) return actions.click(y, time, true);
    this.brush(rows, event, this.held(x, width) ?? time, width, () => actions.sight(), (range) => actions.choose(range),
      () => actions.click(y, time, false));
  }
}
