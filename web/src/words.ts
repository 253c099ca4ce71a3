// Numbers and names as text. No DOM. Numbers follow the rules of reports (src/phlox/base/number_words.h); both are tested
// with tests/cases/numbers.json.

export type Unit = "ns" | "samples" | "count" | "bytes";

// "1.23 s", "45.6 ms", "2 h 5 min", "1,234 samples", "1.23 MB"; counts in full.
export function weightWords(value: number, unit: Unit): string {
  if (unit === "samples") return `${countWords(value)} ${value === 1 ? "sample" : "samples"}`;
  if (unit === "count") return countWords(value);
  return unit === "bytes" ? byteWords(value) : lengthWords(value);
}

const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

function unitOf(ns: number): [number, string] {
  return units.find(([size]) => Math.abs(ns) >= size * 0.9995) || units[3];
}

function lengthWords(ns: number): string {
  if (ns === 0) return "0 s";
  if (Math.abs(ns) >= 119_500_000_000) {
    const seconds = Math.round(Math.abs(ns) / 1e9);
    const words = seconds < 7200
      ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
      : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
    return (ns < 0 ? "-" : "") + words;
  }
  const [size, name] = unitOf(ns);
  return size === 1 ? `${Math.round(ns)} ns` : `${threeDigits(ns / size)} ${name}`;
}

function byteWords(value: number): string {
  if (value < 1000) return `${countWords(value)} ${value === 1 ? "byte" : "bytes"}`;
  const names = ["kB", "MB", "GB", "TB", "PB", "EB"];
  let [number, unit] = [value / 1000, 0];
  for (; number >= 999.5 && unit + 1 < names.length; ++unit) number /= 1000;
  return `${threeDigits(number)} ${names[unit]}`;
}

// A moment, in seconds however late it is, with enough digits to distinguish it from one `resolution` ns away: "40.0234 s".
export function timeWords(value: number, resolution: number): string {
  if (value === 0) return "0 s";
  const [size, name] = unitOf(value);
  const digits = Math.min(9, Math.ceil(Math.log10(size / Math.max(1, resolution)) - 1e-9));
  const words = threeDigits(value / size);
  const given = /\.(\d+)/.exec(words)?.[1].length ?? 0;
  if (digits > given) return `${(value / size).toFixed(digits)} ${name}`;
  return `${given ? words : countWords(value / size)} ${name}`;
}

// With enough digits to distinguish its ends: "40.02 s to 40.03 s".
export function spanWords(from: number, to: number): string {
  return `${timeWords(from, (to - from) / 10)} to ${timeWords(to, (to - from) / 10)}`;
}

export function countWords(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function shareWords(part: number, whole: number): string {
  if (whole <= 0 || part === 0) return "0 %";
  const percent = (part / whole) * 100;
  if (Math.abs(percent) < 0.01) return "< 0.01 %";
  return `${percentDigits(percent)} %`;
}

// "4.1 to 6.3 %": an interval of shares.
export function rangeWords(low: number, high: number): string {
  return `${percentDigits(low * 100)} to ${percentDigits(high * 100)} %`;
}

// "+1.2" with a sign: percentage points of a difference.
export function pointsWords(change: number): string {
  const points = change * 100;
  if (Math.abs(points) < 0.005) return "±0 points";
  return `${points > 0 ? "+" : "−"}${percentDigits(Math.abs(points))} points`;
}

function threeDigits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function percentDigits(percent: number): string {
  return percent.toFixed(Math.abs(percent) < 0.995 ? 2 : 1);
}

// The longest beginning of `text` that fits into `room`, with "…" for the rest; "" if not even two characters and the
// dots fit. `measure` returns the width of a text.
export function fit(text: string, room: number, measure: (text: string) => number): string {
  // No character is narrower than a pixel, so a very long name is known not to fit without measuring all of it.
  if (text.length <= room && measure(text) <= room) return text;
  // Whole code points: half an emoji would show as a box.
  const parts = Array.from(text.slice(0, Math.max(0, Math.ceil(room))));
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(parts.slice(0, middle).join("") + "…") <= room) low = middle;
    else high = middle - 1;
  }
  return low >= 2 ? parts.slice(0, low).join("").trimEnd() + "…" : "";
}

// Like fit(), but keeps the end of a name such as "libfoo.so+0x1a40": only the address distinguishes unnamed functions.
export function fitName(name: string, full: string, room: number, measure: (text: string) => number): string {
  if (full !== name && full.length <= room && measure(full) <= room) return full;
  const [, module, address] = /^(.+)(\+0x[0-9a-f]+)$/s.exec(name) || [];
  if (!address || measure(name) <= room) return fit(name, room, measure);
  const left = room - measure(address);
  return left < measure("…") ? fit(name, room, measure) : (fit(module, left, measure) || "…") + address;
}

// Lines no wider than `room`, broken at spaces; a word that is too long has a line of its own.
export function wrap(text: string, room: number, measure: (text: string) => number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && measure(longer) > room) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  if (line) lines.push(line);
  return lines;
}

// "dgemm_kernel (libopenblas) 96 %": a native function beneath Python, and its share of the time.
export function nativeWords({ name, module }: { name: string; module: string }, share: number): string {
  return `${name}${module ? ` (${module})` : ""} ${shareWords(share, 1)}`;
}
