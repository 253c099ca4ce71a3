import type { Show } from "../model/tree";

// The picture's state as the part of the address behind '#': "#zoom=12&search=json&view=icicle". No DOM.

export type View = "flame" | "icicle";

export interface State {
  zoom: number;
  search: string;
  view: View;
  widths: "after" | "before"; // for a difference: whose time makes the widths
  show: Show | ""; // which time makes the widths; "": as the file was written
}

export const initialState: State = { zoom: 0, search: "", view: "flame", widths: "after", show: "" };

export function formatFragment(state: State): string {
  const parts: string[] = [];
  if (state.zoom) parts.push(`zoom=${state.zoom}`);
  if (state.search) parts.push(`search=${encodeURIComponent(state.search)}`);
  if (state.view !== initialState.view) parts.push(`view=${state.view}`);
  if (state.widths !== initialState.widths) parts.push(`widths=${state.widths}`);
  if (state.show !== initialState.show) parts.push(`show=${state.show}`);
  return parts.join("&");
}

// Ignores unknown words and impossible values: people and programs type and truncate fragments.
export function parseFragment(fragment: string, nodes: number): State {
  const state = { ...initialState };
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const equals = part.indexOf("=");
    const key = equals < 0 ? part : part.slice(0, equals);
    let value = equals < 0 ? "" : part.slice(equals + 1);
    try {
      value = decodeURIComponent(value);
    } catch {
      continue;
    }
    if (key === "zoom" && /^\d{1,9}$/.test(value) && Number(value) < nodes) state.zoom = Number(value);
    if (key === "search") state.search = value;
    if (key === "view" && (value === "flame" || value === "icicle")) state.view = value;
    if (key === "show" && (value === "work" || value === "computing" || value === "waiting" || value === "everything"))
      state.show = value;
    if (key === "widths" && (value === "after" || value === "before")) state.widths = value;
  }
  return state;
}
