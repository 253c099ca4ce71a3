// Every choice of whoever looks at the page, in one value that is never changed but replaced. It stands in the address, so that
// the same file with the same address shows the same. No DOM.
import { Filter } from "../model/filters";
import { By, Head, Weight } from "../model/head";
import { Show } from "../model/tree";

export interface State {
  view: string; // name of the main view
  filters: Filter[]; // a trail: in the order in which they were set
  show: Show; // which of the time: work, computing, waiting, everything
  weight: Weight;
  by: By; // what a frame is
  inherited: boolean; // with the frames that forked children have of their parents
  search: string;
  // What belongs to one view alone, by "view.key" ("flame.zoom"), as text: a view reads it with own() and writes it with
  // withOwn(), and no other file needs to know.
  own: Readonly<Record<string, string>>;
}

export function initialState(head: Pick<Head, "show" | "weight" | "by" | "inherited">, view: string): State {
  return { view, filters: [], show: head.show, weight: head.weight, by: head.by, inherited: head.inherited ?? false, search: "", own: {} };
}

export function own(state: State, view: string, key: string): string {
  return state.own[`${view}.${key}`] ?? "";
}

// Empty text takes the choice back.
export function withOwn(state: State, view: string, key: string, value: string): Pick<State, "own"> {
  const next = { ...state.own };
  if (value === "") delete next[`${view}.${key}`];
  else next[`${view}.${key}`] = value;
  return { own: next };
}

export function sameFilter(a: Filter, b: Filter): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

// A filter that is there already is not set twice.
export function withFilter(state: State, filter: Filter): Pick<State, "filters"> {
  return { filters: state.filters.some((other) => sameFilter(other, filter)) ? state.filters : [...state.filters, filter] };
}

export function withoutFilter(state: State, index: number): Pick<State, "filters"> {
  return { filters: state.filters.filter((_, i) => i !== index) };
}
