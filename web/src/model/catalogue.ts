// The small tables of a recording: the names of everything in it. The page has all of them; the large tables stay with
// the model. Ids are indexes; function 0, place 0 and node 0 are "all". No DOM.
import { Columns } from "./columns";
import { By, Head } from "./head";
import { Language, languageOf } from "./languages";
import { ThreadState } from "./states";
import { readTraceTimes, TraceTimes } from "./trace_times";
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
  ofTasks?: boolean; // represents an event loop whose thread is not known: it has tasks and no time of its own
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

// The distinguishing part comes first: all processes of one server have the same command line, and long names are
// truncated at the end.
export const processName = ({ label, pid }: Pick<Process, "label" | "pid">) =>
  `${pid}: ${label.replace(/ \(pid \d+\)$/, "")}`;

// A page has one recording, or two to compare: before and after.
export interface RecordingName {
  name: string; // "before", "after"; empty: the only one
  title: string;
  exactWaits: boolean; // wait lengths and ends are from the scheduler
  wholeRun: boolean; // of a program that phlox started, until it exited
}

export interface Catalogue {
  head: Head;
  recordings: RecordingName[];
  processes: Process[];
  threads: Thread[];
  states: ThreadState[];
  endpoints: string[]; // functions that web frameworks call for requests; [0]: "(no endpoint)"
  events: RecordedEvent[];
  meta: Record<string, string>;
  tallies: { process: number; name: string; value: number }[];
  functions: {
    name: string[];
    full: string[]; // with namespaces and template arguments; equal to name if there are none
    file: string[];
    module: string[];
    binary: string[];
    line: number[];
    kind: Kind[];
    // Native: whose time is spent in it. 0: its own; 1: Python's (the interpreter's own C); 2: its caller's.
    owner: number[];
    language: Language[];
  };
  places: { function: Uint32Array; line: Uint32Array; file: string[] }; // "": the function's file
  traces: TraceTimes;
  sourceFiles: string[]; // files whose text the page has
  start: number; // of the first interval; `end`: of the last; ns since the recording's start
  end: number;
  timed: boolean; // false: the source format has no timestamps
  nodes: number;
  intervals: number;
  inherits: boolean; // forked children have frames of their parents, which can be shown or hidden
}

type Sent = Pick<Catalogue,
  "recordings" | "processes" | "threads" | "states" | "endpoints" | "events" | "meta" | "tallies">;

export function readCatalogue(head: Head, columns: Columns, strings: string[]): Catalogue {
  const sent = JSON.parse(columns.text("catalogue")) as Sent;
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
    ...sent,
    head,
    functions,
    places: { function: placeFunction, line: Uint32Array.from(columns.numbers("place.line")),
      file: texts("place.file") },
    traces: readTraceTimes(head, columns, sent.threads.length),
    sourceFiles: [],
    start: 0,
    end: 0,
    timed: true,
    nodes: 0,
    intervals: 0,
    inherits: false,
  };
  functions.full = texts("function.full").map((full, f) => full || functions.name[f]);
  functions.language = labelsOf(catalogue, "function").map(languageOf);
  return catalogue;
}

// Labels of a tree's nodes by function (an id is a function) or by line (a place, "name:line").
export function labelsOf(catalogue: Catalogue, by: By): Label[] {
  const { name, full, file, module, line, kind } = catalogue.functions;
  const label = (f: number, end: string, line: number, file: string): Label => ({
    name: name[f] + end,
    full: full[f] + end,
    file,
    line,
    module: module[f],
    kind: kind[f],
  });
  if (by === "function") return name.map((_, f) => label(f, "", line[f], file[f]));
  const { places } = catalogue;
  return Array.from(places.function, (f, place) => {
    const at = places.line[place];
    return label(f, at > 0 ? `:${at}` : "", at, fileOf(catalogue, place));
  });
}

// The file of a line, which may differ from its function's.
export const fileOf = ({ functions, places }: Pick<Catalogue, "functions" | "places">, place: number) =>
  places.file[place] || functions.file[places.function[place]];

export function functionOf(catalogue: Catalogue, by: By, label: number): number {
  return by === "function" ? label : catalogue.places.function[label];
}
