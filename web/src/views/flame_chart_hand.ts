// The pointer on the flame chart: what a drag, a click or the wheel means. Knows pixels and boxes, no threads.
import { At } from "../layout/chart_rows";
import { moved, Sight } from "../layout/timeline";
import { afterWheel } from "./parts/time_wheel";

export interface ChartWishes {
  whole: Sight;
  sight(): Sight;
  plot(): { left: number; width: number }; // pixels from the left edge
  under(x: number, y: number): At | null; // pixels of the plot
  see(sight: Sight): void;
  point(at: At | null, x: number, y: number): void; // pixels of the window
  click(at: At): void;
  menu(at: At, x: number, y: number): void;
}

const clickSlack = 3; // pixels that the pointer may move during a click

// Drags move the time and scroll. Returns whether the last press became a drag.
function holdDrags(canvas: HTMLElement, scroller: HTMLElement, actions: ChartWishes): () => boolean {
  let dragged = false;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const from = actions.sight();
    const top = scroller.scrollTop;
    dragged = false;
    canvas.setPointerCapture(event.pointerId);
    const follow = (next: PointerEvent) => {
      const [x, y] = [event.clientX - next.clientX, event.clientY - next.clientY];
      if (!dragged && Math.hypot(x, y) < clickSlack) return;
      dragged = true;
      actions.point(null, 0, 0);
      scroller.scrollTop = top + y;
      actions.see(moved(from, (x / actions.plot().width) * (from.to - from.from), actions.whole));
    };
    const stop = () => {
      for (const type of ["pointerup", "pointercancel"]) canvas.removeEventListener(type, stop);
      canvas.removeEventListener("pointermove", follow);
    };
    canvas.addEventListener("pointermove", follow);
    for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, stop);
  });
  return () => dragged;
}

export function holdChart(canvas: HTMLElement, scroller: HTMLElement, actions: ChartWishes): void {
  const dragged = holdDrags(canvas, scroller, actions);
  const xIn = (event: MouseEvent) => event.clientX - scroller.getBoundingClientRect().left - actions.plot().left;
  const under = (event: MouseEvent) =>
    actions.under(xIn(event), event.clientY - scroller.getBoundingClientRect().top + scroller.scrollTop);

  canvas.addEventListener("click", (event) => {
    const at = dragged() ? null : under(event);
    if (at) actions.click(at);
  });
  canvas.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    const at = under(event);
    if (at) actions.menu(at, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const at = under(event);
    canvas.style.cursor = at ? "pointer" : "grab";
    actions.point(at, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => actions.point(null, 0, 0));
  canvas.addEventListener("wheel", (event) => {
    const scrolls = scroller.scrollHeight > scroller.clientHeight + 1;
    const next = afterWheel(event, xIn(event), actions.plot().width, actions.sight(), actions.whole, scrolls);
    if (!next) return;
    event.preventDefault();
    actions.see(next);
  }, { passive: false });
}
