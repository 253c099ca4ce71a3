// All of a user's choices on the page, in one value that is replaced, never changed. The address contains it, so the
// same file with the same address shows the same. No DOM.
import { Filter } from "../model/filters";
import { By, Head, Weight } from "../model/head";
import { Show } from "../model/tree";

export interface State {
  view: string; // name of the main view
  filters: Filter[]; // in the order in which they were set
  show: Show; // which of the time: work, computing, waiting, everything
  weight: Weight;
  by: By; // what a frame is
  inherited: boolean; // include the frames that forked children have from their parents
  search: string;
  // A view's own choices by "view.key" ("flame.zoom"), as text: the view reads them with own() and writes them with
  // withOwn(); no other file needs to know them.
  own: Readonly<Record<string, string>>;
}

export function initialState(head: Pick<Head, "show" | "weight" | "by" | "inherited">, view: string): State {
  return { view, filters: [], show: head.show, weight: head.weight, by: head.by, inherited: head.inherited ?? false,
    search: "", own: {} };
}

export function own(state: State, view: string, key: string): string {
  return state.own[`${view}.${key}`] ?? "";
}

// Empty text removes the choice.
export function withOwn(state: State, view: string, key: string, value: string): Pick<State, "own"> {
  const next = { ...state.own };
  if (value === "") delete next[`${view}.${key}`];
  else next[`${view}.${key}`] = value;
  return { own: next };
}

export function sameFilter(a: Filter, b: Filter): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

// A filter is never set twice.
export function withFilter(state: State, filter: Filter): Pick<State, "filters"> {
  return {
    filters: state.filters.some((other) => sameFilter(other, filter)) ? state.filters : [...state.filters, filter],
  };
}

export function withoutFilter(state: State, index: number): Pick<State, "filters"> {
  return { filters: state.filters.filter((_, i) => i !== index) };
}
