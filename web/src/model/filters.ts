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
  | { field: "language"; mode: Mode; values: Language[] }
  | { field: "state"; mode: Mode; values: StateWord[] }
  | { field: "time"; mode: Mode; from: number; to: number }; // ns since the recording's start; `to` is exclusive

// `show`: which time counts, as for --show. Decided once for the recording (docs/decisions/0005), independent of
// filters.
export interface Query {
  filters: Filter[];
  show: Show;
}

export const everything: Query = { filters: [], show: "everything" };

// The selected spans of time, in order; null: all of it.
export function spansOf(filters: readonly Filter[]): [number, number][] | null {
  let spans: [number, number][] = [[-Infinity, Infinity]];
  let any = false;
  for (const filter of filters) {
    if (filter.field !== "time") continue;
    any = true;
    const next: [number, number][] = [];
    for (const [from, to] of spans) {
      const parts: [number, number][] = filter.mode === "in"
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
