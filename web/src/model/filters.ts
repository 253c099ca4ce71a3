// Selects a part of a recording. A sample is selected if every filter of the trail passes it, so filters can be removed
// in any order. Within one filter any of its values is enough. No DOM.
import { Language } from "./languages";
import { StateWord } from "./states";
import { Show } from "./tree";

export type Mode = "in" | "out";

// "function" and "module": stacks through it, at any depth; "language": of the innermost frame, where the time is
// spent.
export type Filter =
  | { field: "process" | "thread" | "function"; mode: Mode; values: number[] }
  | { field: "recording"; mode: Mode; values: number[] } // on a page with two: 0 before, 1 after
  | { field: "module" | "endpoint"; mode: Mode; values: string[] }
  | { field: "trace"; mode: Mode; values: string[] } // ids; the times in which a thread worked for one
  | { field: "language"; mode: Mode; values: Language[] }
  | { field: "state"; mode: Mode; values: StateWord[] }
  | { field: "time"; mode: Mode; from: number; to: number }; // ns since the recording's start; `to` is exclusive

// `show`: which time counts, as for --show. Decided once for the recording (docs/decisions/0005), independent of
// filters.
export interface Query {
  filters: Filter[];
  show: Show;
}

export type Span = [number, number]; // ns since the recording's start; the end is exclusive

export const everything: Query = { filters: [], show: "everything" };

// What lies between spans, which are in order and do not overlap.
export function between(spans: readonly Span[]): Span[] {
  const gaps: Span[] = [];
  let at = -Infinity;
  for (const [from, to] of spans) {
    if (from > at) gaps.push([at, from]);
    at = to;
  }
  return [...gaps, [at, Infinity]];
}

// Spans in the order of their starts, without overlaps.
export function joined(spans: readonly Span[]): Span[] {
  const out: Span[] = [];
  for (const [from, to] of spans) {
    const last = out[out.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}

// What is in both; each is in order.
export function inBoth(a: readonly Span[], b: readonly Span[]): Span[] {
  const both: Span[] = [];
  for (let i = 0, k = 0; i < a.length && k < b.length;) {
    const [from, to] = [Math.max(a[i][0], b[k][0]), Math.min(a[i][1], b[k][1])];
    if (from < to) both.push([from, to]);
    if (a[i][1] < b[k][1]) ++i;
    else ++k;
  }
  return both;
}

// The spans of time that filters by time select, in order; null: all of it.
export function spansOf(filters: readonly Filter[]): Span[] | null {
  let spans: Span[] = [[-Infinity, Infinity]];
  let any = false;
  for (const filter of filters) {
    if (filter.field !== "time") continue;
    any = true;
    const next: Span[] = [];
    for (const [from, to] of spans) {
      const parts: Span[] = filter.mode === "in"
        ? [[filter.from, filter.to]]
        : [[-Infinity, filter.from], [filter.to, Infinity]];
      for (const [a, b] of parts) {
        if (Math.max(from, a) < Math.min(to, b)) next.push([Math.max(from, a), Math.min(to, b)]);
      }
    }
    spans = next;
  }
  return any ? spans : null;
}
