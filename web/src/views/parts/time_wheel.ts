// The wheel over a horizontal time axis: with Ctrl, or where nothing scrolls, it zooms; with Shift, or sideways, it
// pans.
import { moved, Sight, timeAt, zoomed } from "../../layout/timeline";

const wheelStep = 1.0016; // to the power of a wheel's pixels: a notch of 100 is a sixth

// `around`: the range that x refers to; null: the wheel should scroll instead.
export function afterWheel(event: WheelEvent, x: number, width: number, sight: Sight, whole: Sight, scrolls: boolean,
  around = sight): Sight | null
{
  const pixels = event.deltaMode === 1 ? 16 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    return moved(sight, ((sideways * pixels) / width) * (sight.to - sight.from), whole);
  }
  if (scrolls && !event.ctrlKey && !event.metaKey) return null;
  // A pinch on a touch pad arrives as a wheel with Ctrl and small steps.
  const factor = wheelStep ** (event.deltaY * pixels * (event.ctrlKey && Math.abs(event.deltaY) < 30 ? 6 : 1));
  return zoomed(sight, Math.max(whole.from, Math.min(whole.to, timeAt(x, around, width))), factor, whole);
}
