// Time as pixels: the visible time range, the position of a moment, the ruler's ticks, the height of each state in a
// bin. No DOM.
import { Catalogue } from "../model/catalogue";
import { activities, Activity } from "../model/states";

export interface Sight {
  from: number; // ns since the recording's start
  to: number;
}

// The margin left of every time plot, so that the plots are aligned.
export const gutterWidth = (width: number) => Math.round(Math.max(90, Math.min(250, width * 0.24)));

// From the recording's start to its end, or to that of the last interval.
export function wholeOf({ start, end, events }: Pick<Catalogue, "start" | "end" | "events">): Sight {
  const ends = events.filter((event) => event.kind === 1).map((event) => event.time);
  return { from: Math.min(0, start), to: Math.max(end, ...ends, 1) };
}

// Ten microseconds: samples are further apart, so one interval fills the window long before this.
export const shortestSight = 10_000;

// Clamps to the whole and to the shortest visible range.
export function within(sight: Sight, whole: Sight): Sight {
  const length = Math.max(Math.min(shortestSight, whole.to - whole.from),
    Math.min(sight.to - sight.from, whole.to - whole.from));
  const from = Math.round(Math.max(whole.from, Math.min(sight.from, whole.to - length)));
  return { from, to: Math.round(from + length) };
}

// `factor` below 1 zooms in. The moment `around` keeps its position.
export function zoomed(sight: Sight, around: number, factor: number, whole: Sight): Sight {
  const length = Math.max(shortestSight, (sight.to - sight.from) * factor);
  const share = (around - sight.from) / (sight.to - sight.from);
  return within({ from: around - share * length, to: around + (1 - share) * length }, whole);
}

export function moved(sight: Sight, by: number, whole: Sight): Sight {
  return within({ from: sight.from + by, to: sight.to + by }, whole);
}

export const xOf = (time: number, { from, to }: Sight, width: number) => ((time - from) / (to - from)) * width;
export const timeAt = (x: number, { from, to }: Sight, width: number) => from + (x / width) * (to - from);

// As in the address, "from-to"; "" for the whole.
export function sightText(sight: Sight, whole: Sight): string {
  return sight.from <= whole.from && sight.to >= whole.to ? "" : `${Math.round(sight.from)}-${Math.round(sight.to)}`;
}

export function sightOf(text: string, whole: Sight): Sight {
  const range = /^(-?\d{1,18})-(-?\d{1,18})$/.exec(text);
  return range && Number(range[1]) < Number(range[2])
    ? within({ from: Number(range[1]), to: Number(range[2]) }, whole)
    : whole;
}

export interface Tick {
  time: number;
  text: string;
}

const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

// At 1, 2 or 5 times a power of ten, at least `apart` pixels apart, all in one unit.
export function ticks(sight: Sight, width: number, apart: number): Tick[] {
  const atLeast = ((sight.to - sight.from) * apart) / Math.max(apart, width);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, atLeast)));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= atLeast) as number;
  // The unit of the latest visible moment: five seconds and a microsecond are 5.000001 s.
  const [size, unit] = units.find(([size]) => sight.to >= size) ?? units[3];
  const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  const out: Tick[] = [];
  for (let i = Math.ceil(sight.from / step); i * step <= sight.to; ++i)
    out.push({ time: i * step, text: `${((i * step) / size).toFixed(digits)} ${unit}` });
  return out;
}

// From the bottom of a row upwards: computing, then ready to compute, then waiting.
export const stackOrder: readonly Activity[] = [
  Activity.python,
  Activity.native,
  Activity.kernel,
  Activity.collecting,
  Activity.runnable,
  Activity.gil,
  Activity.unknown,
  Activity.blocked,
];

// Pixels of each state in one bin, in the order above; `full`: ns that fill the row. Every state present except waiting
// gets at least one pixel: one sample in a thousand may be the one a user is looking for.
export function heights(time: ArrayLike<number>, at: number, full: number, rowHeight: number, out: Uint8Array): void {
  let used = 0;
  let sum = 0;
  for (let i = 0; i < activities; ++i) {
    const activity = stackOrder[i];
    const part = time[at + activity];
    out[i] = 0;
    if (part <= 0) continue;
    sum += part;
    const upTo = sum >= full ? rowHeight : Math.floor((sum / full) * rowHeight + 0.5);
    out[i] = upTo > used ? upTo - used : activity === Activity.blocked ? 0 : 1;
    used += out[i];
  }
  // Take back the minimum pixels from the tallest states.
  for (; used > rowHeight; --used) {
    let highest = 0;
    for (let i = 1; i < activities; ++i) if (out[i] > out[highest]) highest = i;
    --out[highest];
  }
}

function isEmpty(time: Float32Array, at: number): boolean {
  for (let i = 0; i < activities; ++i) if (time[at + i] > 0) return false;
  return true;
}

// The picture of all rows, `bins` pixels wide, one word per pixel, all 0 before. `colours`: by Activity.
export function paintRows(time: Float32Array, bins: number, full: readonly number[], rowHeight: number,
  colours: Uint32Array, out: Uint32Array): void
{
  const high = new Uint8Array(activities);
  for (let row = 0; row < full.length; ++row) {
    for (let bin = 0; bin < bins; ++bin) {
      const at = (row * bins + bin) * activities;
      if (isEmpty(time, at)) continue;
      heights(time, at, full[row], rowHeight, high);
      let pixel = ((row + 1) * rowHeight - 1) * bins + bin;
      for (let i = 0; i < activities; ++i) {
        if (high[i] === 0) continue;
        const colour = colours[stackOrder[i]];
        for (let n = high[i]; n > 0; --n, pixel -= bins) out[pixel] = colour;
      }
    }
  }
}
