// What blocked threads waited for and their wakers, as found by the exporter (exporters/page_waits.h); each row is
// unique. No DOM.
import { Catalogue } from "./catalogue";
import { Columns } from "./columns";

// Row 0: none.
export interface WaitTable {
  words: string[]; // "a socket, 10.0.0.5:5432 (recvfrom)"
  which: string[]; // with what distinguishes it from others of its kind; "": unknown
  place: Uint32Array; // that asked for it; 0: unknown
  by: Int32Array; // the waker; -1: not a recorded thread, or unknown
  byPlace: Uint32Array; // the line it was executing
  other: string[]; // the waker if it has no thread here: a program and its number
}

export function readWaitTable(columns: Columns, strings: string[], { threads, places }: Catalogue): WaitTable {
  const texts = (name: string) => Array.from(columns.numbers(name), (index) => strings[index] ?? "");
  const numbers = (name: string) =>
    Uint32Array.from(columns.numbers(name), (place) => (place < places.line.length ? place : 0));
  return {
    words: texts("wait.words"),
    which: texts("wait.which"),
    place: numbers("wait.place"),
    by: Int32Array.from(columns.numbers("wait.by"), (by) => (by <= threads.length ? by - 1 : -1)),
    byPlace: numbers("wait.byPlace"),
    other: texts("wait.other"),
  };
}
