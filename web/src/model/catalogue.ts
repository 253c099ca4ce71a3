// The small tables of a recording: what everything in it is called. The page has them all; the large ones stay with the
// model. Ids are indexes; function 0, place 0 and node 0 are "all". No DOM.
import { Columns } from "./columns";
import { By, Head } from "./head";
import { Language, languageOf } from "./languages";
import { ThreadState } from "./states";
import { Kind, Label } from "./tree";

export interface Process {
  label: string;
  pid: number;
  parent: number; // process; -1: none
  commandLine: string;
  python: string;
  howEnded: string;
  start: number; // ns since the recording's start
  end: number; // -1: still running when last seen
}

export interface Thread {
  label: string;
  name: string;
  process: number; // -1: not known
  recording: number; // index
  tid: number;
  interpreter: number;
  python: boolean;
  ofTasks?: boolean; // stands for an event loop whose thread is not known: it has tasks and no time of its own
  start: number;
  end: number;
}

export interface RecordedEvent {
  kind: number; // docs/recording.md
  time: number; // ns since the recording's start
  process: number; // -1: none
  thread: number;
  value: number;
  text: string;
}

// What tells processes apart comes first: of one server all have the same command line, and long names are cut at their ends.
export const processName = ({ label, pid }: Pick<Process, "label" | "pid">) => `${pid}: ${label.replace(/ \(pid \d+\)$/, "")}`;

// A page is of one, or of two that are compared: before and after.
export interface RecordingName {
  name: string; // "before", "after"; empty: the only one
  title: string;
  exactWaits: boolean; // their lengths and ends are the scheduler's
  wholeRun: boolean; // of a program that phlox started, to its end
}

export interface Catalogue {
  head: Head;
  recordings: RecordingName[];
  processes: Process[];
  threads: Thread[];
  states: ThreadState[];
  events: RecordedEvent[];
  meta: Record<string, string>;
  tallies: { process: number; name: string; value: number }[];
  functions: {
    name: string[];
    full: string[]; // with namespaces and template arguments; equal to name where that is all
    file: string[];
    module: string[];
    binary: string[];
    line: number[];
    kind: Kind[];
    owner: number[]; // native: whose time is spent in it. 0: its own; 1: Python's, of whose own C it is; 2: of whatever calls it
    language: Language[];
  };
  places: { function: Uint32Array; line: Uint32Array; file: string[] }; // "": the function's
  sourceFiles: string[]; // of which the page has the text
  start: number; // of the first stretch, and the end of the last: ns since the recording's start
  end: number;
  timed: boolean; // false: the format that it comes from does not say when something was
  nodes: number;
  stretches: number;
  inherits: boolean; // forked children have frames of their parents, which may be shown or not
}

type Told = Pick<Catalogue, "recordings" | "processes" | "threads" | "states" | "events" | "meta" | "tallies">;

export function readCatalogue(head: Head, columns: Columns, strings: string[]): Catalogue {
  const told = JSON.parse(columns.text("catalogue")) as Told;
  const texts = (name: string) => Array.from(columns.numbers(name), (index) => strings[index]);
  const functions = {
    name: texts("function.name"),
    full: [] as string[],
    file: texts("function.file"),
    module: texts("function.module"),
    binary: texts("function.binary"),
    line: Array.from(columns.numbers("function.line")),
    kind: Array.from(columns.numbers("function.kind")) as Kind[],
    owner: Array.from(columns.numbers("function.owner")),
    language: [] as Language[],
  };
  const placeFunction = Uint32Array.from(columns.numbers("place.function"));
  for (let i = 1; i < placeFunction.length; ++i) placeFunction[i] += placeFunction[i - 1];
  const catalogue: Catalogue = {
    ...told,
    head,
    functions,
    places: { function: placeFunction, line: Uint32Array.from(columns.numbers("place.line")), file: texts("place.file") },
    sourceFiles: [],
    start: 0,
    end: 0,
    timed: true,
    nodes: 0,
    stretches: 0,
    inherits: false,
  };
  functions.full = texts("function.full").map((full, f) => full || functions.name[f]);
  functions.language = labelsOf(catalogue, "function").map(languageOf);
  return catalogue;
}

// Labels of the nodes of a tree by function (an id is a function) or by line (a place, "name:line").
export function labelsOf(catalogue: Catalogue, by: By): Label[] {
  const { name, full, file, module, line, kind } = catalogue.functions;
  const label = (f: number, end: string, line: number, file: string): Label => ({
    name: name[f] + end, full: full[f] + end, file, line, module: module[f], kind: kind[f],
  });
  if (by === "function") return name.map((_, f) => label(f, "", line[f], file[f]));
  const { places } = catalogue;
  return Array.from(places.function, (f, place) => {
    const at = places.line[place];
    return label(f, at > 0 ? `:${at}` : "", at, fileOf(catalogue, place));
  });
}

// Of a line; the function may be declared in another one.
export const fileOf = ({ functions, places }: Pick<Catalogue, "functions" | "places">, place: number) => places.file[place] || functions.file[places.function[place]];

export function functionOf(catalogue: Catalogue, by: By, label: number): number {
  return by === "function" ? label : catalogue.places.function[label];
}
