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

export function holdTimeline(head: HTMLElement, rows: HTMLElement, actions: HandWishes): void {
  const at = (event: MouseEvent, element: HTMLElement) => {
    const box = element.getBoundingClientRect();
    const { left, width } = actions.plot();
    return { x: event.clientX - box.left - left, y: event.clientY - box.top, width };
  };
  const timeOf = (x: number, width: number, sight = actions.sight()) => {
    const { from, to } = actions.whole();
    return Math.max(from, Math.min(to, timeAt(x, sight, width)));
  };

  // ---- the wheel ------------------------------------------------------------------------------------------------
  const wheel = (element: HTMLElement, always: boolean) => (event: WheelEvent) => {
    const { x, y, width } = at(event, element);
    if (x < 0) return;
    const onStrip = always && y < ruler.top;
    const next = afterWheel(event, x, width, actions.sight(), actions.whole(), !always && actions.scrolls(),
      onStrip ? actions.whole() : actions.sight());
    if (!next) return;
    event.preventDefault();
    actions.see(next);
  };
  head.addEventListener("wheel", wheel(head, true), { passive: false });
  rows.addEventListener("wheel", wheel(rows, false), { passive: false });

  // ---- dragging -------------------------------------------------------------------------------------------------
  const drag = (element: HTMLElement, event: PointerEvent, move: Drag, end: (moved: boolean, x: number) => void) => {
    const start = at(event, element).x;
    let began = false;
    element.setPointerCapture(event.pointerId);
    const follow = (next: PointerEvent) => {
      const { x } = at(next, element);
      if (!began && Math.abs(x - start) < clickSlack) return;
      began = true;
      move(x);
    };
    const stop = (last: PointerEvent) => {
      element.removeEventListener("pointermove", follow);
      element.removeEventListener("pointerup", stop);
      element.removeEventListener("pointercancel", stop);
      if (last.type === "pointercancel") actions.brush(null);
      else end(began, at(last, element).x);
    };
    element.addEventListener("pointermove", follow);
    element.addEventListener("pointerup", stop);
    element.addEventListener("pointercancel", stop);
  };

  const panning = (x: number, width: number, speed: number): Drag => {
    const sight = actions.sight();
    const length = sight.to - sight.from;
    return (to) => actions.see(moved(sight, (((x - to) * speed) / width) * length, actions.whole()));
  };

  // From `fixed` to the pointer.
  const brushing = (element: HTMLElement, event: PointerEvent, fixed: number, width: number,
    use: (range: Sight) => void, sight?: Sight, otherwise?: () => void) =>
  {
    const range = (x: number) => {
      const time = timeOf(Math.max(0, Math.min(width, x)), width, sight ?? actions.sight());
      return { from: Math.round(Math.min(fixed, time)), to: Math.round(Math.max(fixed, time)) };
    };
    drag(element, event, (x) => actions.brush(range(x)), (moved, x) => {
      actions.brush(null);
      const done = range(x);
      if (moved && done.to > done.from) use(done);
      else if (!moved) otherwise?.();
    });
  };

  // The end that stays, if the pointer is on the other one.
  const held = (x: number, width: number): number | null => {
    const edges = actions.edges();
    if (edges.length !== 2) return null;
    const [a, b] = edges.map((time) => Math.abs(xOf(time, actions.sight(), width) - x));
    return Math.min(a, b) > edgeSlack ? null : a < b ? edges[1] : edges[0];
  };

  head.addEventListener("pointerdown", (event) => {
    const { x, y, width } = at(event, head);
    if (event.button !== 0 || x < 0) return;
    const sight = actions.sight();
    const whole = actions.whole();
    if (y >= ruler.top) return drag(head, event, panning(x, width, 1), () => undefined);
    const [a, b] = [xOf(sight.from, whole, width), xOf(sight.to, whole, width)];
    const isWhole = sight.from <= whole.from && sight.to >= whole.to;
    if (!isWhole && x >= a && x <= b)
      return drag(head, event, panning(x, width, -(whole.to - whole.from) / (sight.to - sight.from)), () => undefined);
    const centre = () =>
      !isWhole && actions.see(moved(sight, timeAt(x, whole, width) - (sight.from + sight.to) / 2, whole));
    brushing(head, event, timeOf(x, width, whole), width, (range) => actions.see(range), whole, centre);
  });
  rows.addEventListener("pointerdown", (event) => {
    const { x, y, width } = at(event, rows);
    // The scroll bar is next to the canvas.
    if (x > width || event.button > 1) return;
    if (x >= 0 && (event.button === 1 || event.shiftKey)) {
      event.preventDefault();
      return drag(rows, event, panning(x, width, 1), () => undefined);
    }
    if (event.button !== 0) return;
    const time = timeOf(x, width);
    if (x < 0) return actions.click(y, time, true);
    brushing(rows, event, held(x, width) ?? time, width, actions.choose, undefined,
      () => actions.click(y, time, false));
  });
  rows.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    const { x, y, width } = at(event, rows);
    actions.menu(y, timeOf(x, width), event);
  });

  // ---- pointing -------------------------------------------------------------------------------------------------
  head.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const { x, y } = at(event, head);
    head.style.cursor = x < 0 ? "" : y >= ruler.top ? "grab" : "crosshair";
    actions.hover(x < 0 ? "" : y < ruler.top ? "strip" : y < headHeight ? "marks" : "", x, y, event);
  });
  rows.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const { x, y, width } = at(event, rows);
    rows.style.cursor = x < 0 ? "pointer" : held(x, width) === null ? "crosshair" : "ew-resize";
    actions.hover(x > width ? "" : x < 0 ? "gutter" : "rows", x, y, event);
  });
  for (const element of [head, rows])
    element.addEventListener("pointerleave", (event) => actions.hover("", 0, 0, event));
}
