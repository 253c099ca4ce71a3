// What blocked threads waited for and who ended that, as the exporter found it (exporters/page_waits.h): each a row once. No DOM.
import { Catalogue } from "./catalogue";
import { Columns } from "./columns";

// Row 0: none.
export interface WaitTable {
  words: string[]; // "a socket, 10.0.0.5:5432 (recvfrom)"
  which: string[]; // with what tells many apart that are alike; "": not known
  place: Uint32Array; // that asked for it; 0: not known
  by: Int32Array; // the thread that ended it; -1: none that is recorded, or nobody knows
  byPlace: Uint32Array; // what that was doing
  other: string[]; // who it was, without a thread: a program and its number
}

export function readWaitTable(columns: Columns, strings: string[], { threads, places }: Catalogue): WaitTable {
  const texts = (name: string) => Array.from(columns.numbers(name), (index) => strings[index] ?? "");
  const numbers = (name: string) => Uint32Array.from(columns.numbers(name), (place) => (place < places.line.length ? place : 0));
  return {
    words: texts("wait.words"),
    which: texts("wait.which"),
    place: numbers("wait.place"),
    by: Int32Array.from(columns.numbers("wait.by"), (by) => (by <= threads.length ? by - 1 : -1)),
    byPlace: numbers("wait.byPlace"),
    other: texts("wait.other"),
  };
}
