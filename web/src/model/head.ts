// What the page knows before anything is unpacked; exporters/page_data.cpp writes it. No DOM.
import { ColumnEntry } from "./columns";
import { Show } from "./tree";
import { Unit } from "../words";

export type EventWeight = `event${number}`; // what an event counted: "event1" is the first of `events`
export type Weight = "wall" | "cpu" | "samples" | EventWeight;
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

export const eventOf = (weight: Weight): number => (weight.startsWith("event") ? Number(weight.slice(5)) : 0); // from 1; 0: of none

export const weightsOf = (
  { events }: Pick<Head, "events">,
): Weight[] => ["wall", "cpu", "samples", ...events.map((_, i): EventWeight => `event${i + 1}`)];

export const unitOf = ({ events }: Pick<Head, "events">, weight: Weight): Unit => {
  const event = eventOf(weight);
  return event ? events[event - 1].unit : weight === "samples" ? "samples" : "ns";
};

export const weightName = ({ events }: Pick<Head, "events">, weight: Weight): string => {
  const event = eventOf(weight);
  return event
    ? (events[event - 1].awaits ? "await time" : events[event - 1].name)
    : weight === "wall"
    ? "wall time"
    : weight === "cpu"
    ? "CPU time"
    : "samples";
};

// The event of await time, which has no place in the recording's time; from 1; 0: there is none.
export const awaitEvent = ({ events }: Pick<Head, "events">): number => events.findIndex(({ awaits }) => awaits) + 1;

// Whether the weight is await time. What the samples of threads say is then said of something else.
export const isAwait = (head: Pick<Head, "events">, weight: Weight): boolean =>
  eventOf(weight) > 0 && eventOf(weight) === awaitEvent(head);

// A time in which an event loop did not wait for events (view/loop_stalls.h).
export interface Stall {
  thread: number; // index
  start: number; // ns since the recording's start
  wall: number; // ns
  length: string; // in words, with what is not certain of it
  exact: boolean; // false: samples alone tell
  oneTurn: boolean;
  place: string; // the line that took longest; empty: not known
  words: string; // "asleep"
  callbacks: number;
}

// The time of a request at one line of the program (view/slow_requests.h).
export interface RequestPart {
  awaited: boolean; // of the tasks that the request waits for, all together
  words: string; // "the end of sleep()", "ready to run"
  place: string; // "read (app.py:12)"; empty: no coroutine
  time: number; // ns
}

// One of the slowest single requests. It began and ended between two moments.
export interface SlowRequest {
  endpoint: string;
  thread: number; // index, of its event loop; -1: not known
  start: number; // the latest moment at which it began; ns since the recording's start
  wall: number; // ns that it lasted at least
  began: string; // in words, with what is not certain of it
  lasted: string;
  parts: RequestPart[]; // of its own task first
}

// One of the longest traces that samples found (view/traces.h).
export interface TraceRow {
  id: string; // 32 hex digits
  start: number; // ns since the recording's start: first seen
  wall: number; // ns until last seen
  cpu: number; // ns, of all of its threads
  waiting: number;
  threads: number;
  processes: number;
  place: string; // "read (app.py)": where its threads were longest; empty: not known
  endpoint: string; // empty: not known
}

// Why the recording of an incident was written (view/incident_causes.h).
export interface Incident {
  time: number; // when it began; ns since the recording's start
  kind: string; // of condition: "stall"
  short: string; // "stall of 405 ms"
  words: string;
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
  notKnown: string; // what it shows although it is not known to be work
  loops: string[]; // how the time of event loops divides, and which pools have no worker to spare
  stalls: Stall[]; // of event loops, the longest first
  requests: SlowRequest[]; // the slowest first; of servers that run a task for each
  // count: how many samples found; time: ns for which threads worked for one, of so many; leftOut: times without room
  traces: { count: number; time: number; of: number; leftOut: number; longest: TraceRow[] };
  incidents: Incident[]; // the one that began it first; most recordings are none of an incident
  weight: Weight; // what the page begins with
  events: { name: string; unit: "ns" | "count" | "bytes"; awaits?: boolean }[]; // what is counted besides time and samples; awaits: what tasks of event loops awaited
  show: Show;
  by: By;
  inherited?: boolean; // whether the page begins with the frames that forked children inherited
  gridFirst: number; // ns: what the starts of intervals count from, and in steps of
  gridUnit: number;
  sources?: { files: number; missing: number; leftOut: number; bytes: number }; // of the program; missing: not requested
  merged?: Merged;
  columns: ColumnEntry[];
}
