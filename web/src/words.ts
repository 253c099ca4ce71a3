// Numbers and names as text. No DOM.

export type Unit = "ns" | "samples" | "count" | "bytes";

// Three significant digits: "1.23 s", "45.6 ms", "1,234 samples", "1.23 MB"; counts in full.
export function weightWords(value: number, unit: Unit): string {
  if (unit === "samples") return `${countWords(value)} ${value === 1 ? "sample" : "samples"}`;
  if (unit === "count") return countWords(value);
  if (unit === "bytes") return byteWords(value);
  if (value === 0) return "0 s";
  if (Math.abs(value) >= 99_950_000_000) return `${countWords(Math.round(value / 1e9))} s`;
  const units: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const [size, name] = units.find(([size]) => Math.abs(value) >= size * 0.9995) || units[3];
  return `${significant(value / size)} ${name}`;
}

function byteWords(value: number): string {
  if (value < 1000) return `${countWords(value)} ${value === 1 ? "byte" : "bytes"}`;
  const names = ["kB", "MB", "GB", "TB", "PB", "EB"];
  let [number, unit] = [value / 1000, 0];
  for (; number >= 999.5 && unit + 1 < names.length; ++unit) number /= 1000;
  return `${significant(number)} ${names[unit]}`;
}

// A moment, like weightWords, with enough digits to distinguish it from one `resolution` ns away: "40.0234 s".
export function timeWords(value: number, resolution: number): string {
  const words = weightWords(value, "ns");
  if (value === 0) return words;
  const size = { s: 1e9, ms: 1e6, "µs": 1e3, ns: 1 }[words.slice(words.lastIndexOf(" ") + 1)] as number;
  const digits = Math.min(9, Math.ceil(Math.log10(size / Math.max(1, resolution)) - 1e-9));
  const given = /\.(\d+)/.exec(words)?.[1].length ?? 0;
  return digits <= given ? words : `${(value / size).toFixed(digits)} ${words.slice(words.lastIndexOf(" ") + 1)}`;
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
  return `${significant(percent)} %`;
}

// "4.1 to 6.3 %": an interval of shares.
export function rangeWords(low: number, high: number): string {
  return `${significant(low * 100)} to ${significant(high * 100)} %`;
}

// "+1.2" with a sign: percentage points of a difference.
export function pointsWords(change: number): string {
  const points = change * 100;
  if (Math.abs(points) < 0.005) return "±0 points";
  return `${points > 0 ? "+" : "−"}${significant(Math.abs(points))} points`;
}

function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
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
