// What the page knows before anything is unpacked; exporters/page_data.cpp writes it. No DOM.
import { ColumnEntry } from "./columns";
import { Show } from "./tree";

export type Weight = "wall" | "cpu" | "samples";
export type By = "function" | "line";

// What was done to fit the page's size.
export interface Merged {
  limit: number; // bytes
  window: number; // ns; order within it is lost
  stretchesBefore: number;
  stretchesAfter: number;
  nodesBefore: number;
  nodesAfter: number;
  rareShare: number; // stacks rarer than this lost their inner frames; 0: none did
  cutWall: number; // ns in such stacks
}

export interface Head {
  format: number;
  phlox: string;
  title: string;
  subtitle: string;
  quality: string[];
  warning: string;
  unfinished: boolean;
  leftOut: string; // what `show` "work" leaves out of the whole, in words
  weight: Weight; // what the page begins with
  show: Show;
  by: By;
  gridFirst: number; // ns: what the starts of stretches count from, and in steps of
  gridUnit: number;
  sources?: { files: number; missing: number; leftOut: number; bytes: number }; // of the program; not there: nobody asked for it
  merged?: Merged;
  columns: ColumnEntry[];
}
