// The state as the part of the address behind '#':
// "#view=functions&weight=cpu&f=in.thread.3&search=json&flame.zoom=4.17". Values equal to the page's initial state are
// omitted. People and programs type, truncate and mangle fragments: unknown words and impossible values are ignored. No
// DOM.
import { Filter, Mode } from "../model/filters";
import { Weight, weightsOf } from "../model/head";
import { languages } from "../model/languages";
import { stateWords } from "../model/states";
import { Show, shown } from "../model/tree";
import { State } from "./state";

// Each value is encoded again, so that a comma is always a separator.
export function formatFilter(filter: Filter): string {
  const head = `${filter.mode}.${filter.field}.`;
  if (filter.field === "time") return `${head}${filter.from}-${filter.to}`;
  return head + (filter.values as (string | number)[]).map((value) => encodeURIComponent(value)).join(",");
}

// undefined: some are not possible.
function values<T>(text: string, possible: (value: string) => T | undefined): T[] | undefined {
  const read: T[] = [];
  for (const part of text.split(",")) {
    const value = possible(decodeURIComponent(part));
    if (value === undefined) return undefined;
    read.push(value);
  }
  return read;
}

const number = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined);
const oneOf = <T extends string>(known: readonly T[]) => (text: string) => known.find((word) => word === text);

function parseFilter(text: string): Filter | null {
  const parts = /^(in|out)\.([a-z]+)\.(.*)$/s.exec(text);
  if (!parts) return null;
  const mode = parts[1] as Mode;
  const [, , field, value] = parts;
  if (field === "time") {
    const range = /^(-?\d{1,18})-(-?\d{1,18})$/.exec(value);
    return range && Number(range[1]) < Number(range[2])
      ? { field, mode, from: Number(range[1]), to: Number(range[2]) }
      : null;
  }
  if (field === "process" || field === "thread" || field === "function" || field === "recording") {
    const ids = values(value, number);
    return ids ? { field, mode, values: ids } : null;
  }
  if (field === "module" || field === "endpoint") return { field, mode, values: values(value, (name) => name) ?? [] };
  if (field === "trace") {
    const ids = values(value, (id) => (/^[0-9a-f]{32}$/.test(id) ? id : undefined));
    return ids ? { field, mode, values: ids } : null;
  }
  if (field === "language") {
    const names = values(value, oneOf(languages));
    return names ? { field, mode, values: names } : null;
  }
  if (field === "state") {
    const words = values(value, oneOf(stateWords));
    return words ? { field, mode, values: words } : null;
  }
  return null;
}

export function formatFragment(state: State, initial: State): string {
  const parts: string[] = [];
  const put = (key: string, value: string) => parts.push(`${key}=${encodeURIComponent(value).replace(/%2C/g, ",")}`);
  if (state.view !== initial.view) put("view", state.view);
  if (state.show !== initial.show) put("show", state.show);
  if (state.weight !== initial.weight) put("weight", state.weight);
  if (state.by !== initial.by) put("by", state.by);
  if (state.inherited !== initial.inherited) put("inherited", state.inherited ? "shown" : "hidden");
  for (const filter of state.filters) put("f", formatFilter(filter));
  if (state.search) put("search", state.search);
  for (const key of Object.keys(state.own).sort()) put(key, state.own[key]);
  return parts.join("&");
}

// For views that keep filters of their own, written with formatFilter.
export function filtersIn(text: string): Filter[] {
  try {
    const filter = parseFilter(text);
    return filter ? [filter] : [];
  } catch {
    return []; // an invalid encoding
  }
}

// `weights`: those available.
export function parseFragment(fragment: string, initial: State, weights: Weight[] = weightsOf({ events: [] })): State {
  const own: Record<string, string> = {};
  const state: State = { ...initial, filters: [], own };
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const equals = part.indexOf("=");
    const key = equals < 0 ? part : part.slice(0, equals);
    let value = equals < 0 ? "" : part.slice(equals + 1);
    try {
      value = decodeURIComponent(value);
    } catch {
      continue;
    }
    if (key === "view" && /^[a-z-]+$/.test(value)) state.view = value;
    if (key === "show" && Object.keys(shown).includes(value)) state.show = value as Show;
    if (key === "weight") state.weight = weights.find((weight) => weight === value) ?? state.weight;
    if (key === "by" && (value === "function" || value === "line")) state.by = value;
    if (key === "inherited" && (value === "shown" || value === "hidden")) state.inherited = value === "shown";
    if (key === "search") state.search = value;
    if (key === "f") state.filters.push(...filtersIn(value));
    if (/^[a-z-]+\.[a-z-]+$/.test(key) && value !== "") own[key] = value;
  }
  return state;
}
