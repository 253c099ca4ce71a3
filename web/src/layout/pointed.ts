// What the keys or the pointer point at on the timeline, and how the keys move it. No DOM.
import { Sight } from "./timeline";

export interface Pointed {
  cursor: { row: number; time: number } | null;
  brush: Sight | null; // the range being chosen
  anchor: number | null; // start of a range chosen by keys
}

// After a step of so many rows, or so many ns; `choosing`: the step draws up a range, from where the first one began.
// `count`: of all rows, at least one.
export function stepped(pointed: Pointed, step: { rows: number; time: number; choosing: boolean }, count: number,
  sight: Sight, whole: Sight): Pointed & { cursor: { row: number; time: number } }
{
  const before = pointed.cursor ?? { row: step.rows > 0 ? -1 : 0, time: (sight.from + sight.to) / 2 };
  const row = Math.max(0, Math.min(count - 1, before.row + step.rows));
  const time = Math.max(whole.from, Math.min(whole.to, before.time + step.time));
  const anchor = step.choosing ? pointed.anchor ?? before.time : step.time ? null : pointed.anchor;
  const brush = anchor === null
    ? null
    : { from: Math.round(Math.min(anchor, time)), to: Math.round(Math.max(anchor, time)) };
  return { cursor: { row, time }, brush, anchor };
}
