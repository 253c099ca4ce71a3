// Recordings by hand or at random, packed as the exporter packs them, so that reading them is tested along.
import { ColumnEntry } from "../src/model/columns";
import { Head } from "../src/model/head";
import { readRecording, Recording } from "../src/model/recording";
import { ThreadState } from "../src/model/states";
import { Kind } from "../src/model/tree";
import { randomNumbers } from "./trees";

export interface Stretch {
  thread: number;
  start: number; // ns, multiples of 1000
  wall: number;
  cpu: number;
  samples: number;
  stack: [string, number][]; // function and line, root first
  state: number;
  doing: number; // 0 computing, 1 waiting, 2 waiting for work
  wait?: Wait;
  endpoint?: number; // of endpoints
  event?: number; // which of the events counted, from 1
  value?: number;
}

// Who ended it: a thread, in a function and line; or another program.
export interface Wait {
  words: string;
  which?: string;
  place?: [string, number];
  by?: number;
  byPlace?: [string, number];
  other?: string;
}

export const states: ThreadState[] = [
  { cpu: 1, gil: 2, collecting: false, call: "", quality: 0 },
  { cpu: 3, gil: 1, collecting: false, call: "futex", quality: 0 },
  { cpu: 3, gil: 3, collecting: false, call: "futex", quality: 0 },
  { cpu: 2, gil: 2, collecting: false, call: "", quality: 0 },
  { cpu: 1, gil: 2, collecting: true, call: "", quality: 0 },
];

export const endpoints = ["(no endpoint)", "read_item (app.py:12)", "(stack not read)", "index (app.py:3)"];

const zigzag = (value: number) => (value >= 0 ? 2 * value : -2 * value - 1);

class Packer {
  readonly entries: ColumnEntry[] = [];
  readonly bytes: number[] = [];

  numbers(name: string, layout: "planes" | "words", values: number[]): void {
    let width = 1;
    while (values.some((value) => value >= 256 ** width)) ++width;
    if (layout === "words") { while (![1, 2, 4, 8].includes(width)) ++width; }
    const byte = (value: number, i: number) => Math.floor(value / 256 ** i) % 256;
    if (layout === "planes") {
      for (let i = 0; i < width; ++i) for (const value of values) this.bytes.push(byte(value, i));
    } else for (const value of values) for (let i = 0; i < width; ++i) this.bytes.push(byte(value, i));
    this.entries.push([name, layout, width, values.length]);
  }

  text(name: string, text: string): void {
    const bytes = new TextEncoder().encode(text);
    bytes.forEach((byte) => this.bytes.push(byte));
    this.entries.push([name, "text", 1, bytes.length]);
  }
}

const moduleOf = (name: string) => `m${name.length % 3}`;
const kindOf = (name: string) => (name.startsWith("n") ? Kind.native : Kind.python);

// A time in which a thread worked for a trace; in the order of thread and start.
export interface Traced {
  thread: number;
  start: number; // ns, multiples of 1000
  end: number;
  id: string;
}

function packTraces(packer: Packer, traces: Traced[], first: number): void {
  if (!traces.length) return;
  const ids = Array.from(new Set(traces.map(({ id }) => id)));
  packer.text("traces", ids.join("\n") + "\n");
  packer.numbers("thread.traceTimes", "planes",
    [0, 1, 2, 3].map((thread) => traces.filter((one) => one.thread === thread).length));
  packer.numbers("traceTime.start", "planes",
    traces.map(({ thread, start }, i) =>
      zigzag((start - (i && traces[i - 1].thread === thread ? traces[i - 1].end : first)) / 1000)
    ));
  packer.numbers("traceTime.length", "planes", traces.map(({ start, end }) => (end - start) / 1000));
  packer.numbers("traceTime.trace", "planes",
    traces.map(({ id }, i) => zigzag(ids.indexOf(id) - (i ? ids.indexOf(traces[i - 1].id) : 0))));
}

// Threads 0 to 3; threads 2 and 3 are of process 1.
export function recordingOf(intervals: Stretch[], events: Head["events"] = [], traces: Traced[] = []): Recording {
  const packer = new Packer();
  const waits = Array.from(
    new Map(intervals.filter(({ wait }) => wait).map(({ wait }) => [JSON.stringify(wait), wait as Wait])).values(),
  );
  const frames = [...intervals.flatMap(({ stack }) => stack),
    ...waits.flatMap(({ place, byPlace }) => [place, byPlace]).filter((frame): frame is [string, number] =>
      frame !== undefined
    )];
  const names = ["all", ...Array.from(new Set(frames.map(([name]) => name))).sort()];
  const strings = ["", ...names, ...waits.flatMap(({ words, which, other }) => [words, which ?? "", other ?? ""]), ...[
    "m0",
    "m1",
    "m2",
    "/app.py",
    "/app.cc",
  ]];
  const at = (text: string) => strings.indexOf(text);
  const functions = names.map((name, i) => ({ name, module: i ? moduleOf(name) : "",
    kind: i ? kindOf(name) : Kind.marker })
  );
  const put = (name: string, value: (f: typeof functions[0]) => number) =>
    packer.numbers(`function.${name}`, "planes", functions.map(value));
  put("name", (f) => at(f.name));
  put("full", () => 0);
  put("file", (f) => (f.kind === Kind.marker ? 0 : at(f.kind === Kind.native ? "/app.cc" : "/app.py")));
  put("module", (f) => at(f.module));
  put("binary", () => 0);
  put("line", (f) => (f.kind === Kind.marker ? 0 : 1));
  put("kind", (f) => f.kind);
  put("owner", (f) => (f.name.startsWith("npython") ? 1 : f.name.startsWith("nlibc") ? 2 : 0));

  const placeKey = (name: string, line: number) => names.indexOf(name) * 1000 + line;
  const places = [0, ...Array.from(new Set(frames.map(([name, line]) => placeKey(name, line)))).sort((a, b) => a - b)];
  packer.numbers("place.function", "planes",
    places.map((key, i) => Math.floor(key / 1000) - (i ? Math.floor(places[i - 1] / 1000) : 0)));
  packer.numbers("place.line", "planes", places.map((key) => key % 1000));
  packer.numbers("place.file", "planes", places.map(() => 0));

  const putWait = (name: string, value: (wait: Wait) => number) =>
    packer.numbers(`wait.${name}`, "planes", [0, ...waits.map(value)]);
  const placeAt = (frame?: [string, number]) => (frame ? places.indexOf(placeKey(...frame)) : 0);
  putWait("words", ({ words }) => at(words));
  putWait("which", ({ which }) => at(which ?? ""));
  putWait("place", ({ place }) => placeAt(place));
  putWait("by", ({ by }) => (by ?? -1) + 1);
  putWait("byPlace", ({ byPlace }) => placeAt(byPlace));
  putWait("other", ({ other }) => at(other ?? ""));

  // Stacks in depth-first order are stacks in the order of their places.
  const paths = new Map<string, number[]>([["", []]]);
  for (const { stack } of intervals) {
    const path = stack.map(([name, line]) => places.indexOf(placeKey(name, line)));
    for (let i = 1; i <= path.length; ++i) paths.set(path.slice(0, i).join(), path.slice(0, i));
  }
  const compare = (a: number[], b: number[]) => {
    const i = a.findIndex((value, i) => value !== b[i]);
    return i < 0 ? a.length - b.length : i >= b.length ? 1 : a[i] - b[i];
  };
  const nodes = Array.from(paths.values()).sort(compare);
  const numbers = new Map(nodes.map((path, i) => [path.join(), i]));
  packer.numbers("node.depth", "planes", nodes.map((path) => path.length));
  packer.numbers("node.place", "planes", nodes.map((path) => (path.length ? path[path.length - 1] : 0)));

  const rows = intervals.slice().sort((a, b) => a.thread - b.thread || a.start - b.start);
  const first = Math.min(...rows.map((row) => row.start));
  packer.numbers("thread.stretches", "planes",
    [0, 1, 2, 3].map((thread) => rows.filter((row) => row.thread === thread).length));
  let thread = -1;
  let expected = 0;
  packer.numbers("stretch.start", "planes", rows.map((row) => {
    if (row.thread !== thread) expected = 0;
    thread = row.thread;
    const start = (row.start - first) / 1000;
    const difference = start - expected;
    expected = Math.floor((start * 1000 + row.wall) / 1000);
    return zigzag(difference);
  }));
  packer.numbers("stretch.wall", "planes", rows.map((row) => row.wall));
  packer.numbers("stretch.cpu", "planes", rows.map((row) => (row.cpu === 0 ? 0 : zigzag(row.wall - row.cpu) + 1)));
  packer.numbers("stretch.samples", "planes", rows.map((row) => row.samples));
  if (events.length) {
    packer.numbers("stretch.event", "planes", rows.map((row) => row.event ?? 0));
    packer.numbers("stretch.value", "planes", rows.map((row) => row.value ?? 0));
  }
  packer.numbers("stretch.node", "words",
    rows.map((row) =>
      numbers.get(row.stack.map(([name, line]) => places.indexOf(placeKey(name, line))).join()) as number
    ));
  packer.numbers("stretch.state", "planes", rows.map((row) => row.state));
  packer.numbers("stretch.doing", "planes", rows.map((row) => row.doing));
  packer.numbers("stretch.wait", "planes", rows.map((
    { wait },
  ) => (wait ? 1 + waits.findIndex((other) => JSON.stringify(other) === JSON.stringify(wait)) : 0)));
  packer.numbers("stretch.cpuNumber", "planes", rows.map(() => 1));
  if (rows.some(({ endpoint }) => endpoint))
    packer.numbers("stretch.endpoint", "planes", rows.map(({ endpoint }) => endpoint ?? 0));
  packTraces(packer, traces, first);
  packer.text("strings", strings.join("\n") + "\n");
  const threads = [0, 1, 2, 3].map((i) => ({ label: `Thread t${i}`, name: `t${i}`, process: i < 2 ? 0 : 1, recording: 0,
    tid: i, interpreter: 0, python: true, start: 0, end: -1 })
  );
  packer.text("catalogue",
    JSON.stringify({ recordings: [{ name: "", title: "test", exactWaits: true, wholeRun: true }], processes: [],
      threads, states, endpoints, events: [], meta: {}, tallies: [] }));
  const head: Head = {
    format: 1,
    phlox: "test",
    title: "test",
    subtitle: "",
    quality: [],
    warning: "",
    leftOut: "",
    notKnown: "",
    loops: [],
    stalls: [],
    requests: [],
    traces: { count: 0, time: 0, of: 0, leftOut: 0, longest: [] },
    incidents: [],
    unfinished: false,
    weight: "wall",
    show: "everything",
    by: "function",
    events,
    gridFirst: first,
    gridUnit: 1000,
    columns: packer.entries,
  };
  return readRecording(head, Uint8Array.from(packer.bytes));
}

export function randomStretches(seed: number, count = 60): Stretch[] {
  const random = randomNumbers(seed);
  const ends = [random(5000), random(5000), random(5000), random(5000)].map((start) => start * 1000);
  return Array.from({ length: count }, () => {
    const thread = random(4);
    const wall = random(10) === 0 ? 0 : 1 + random(9_000_000_000);
    const start = ends[thread] + (random(3) === 0 ? random(1000) * 1000 : 0);
    ends[thread] = Math.ceil((start + wall) / 1000) * 1000;
    const state = random(states.length);
    const stack = Array.from({ length: random(7) },
      (): [string, number] =>
        ["main", "load", "nparse", "f", "g"].map((name): [string, number] => [name, 1 + random(3)])[random(5)]);
    return { thread, start, wall, cpu: states[state].cpu === 1 ? random(wall + 1) : 0, samples: random(6), stack, state,
      doing: states[state].cpu === 3 ? 1 + random(2) : 0, endpoint: (wall + stack.length) % endpoints.length };
  });
}

export const byName = (recording: Recording, name: string) => recording.catalogue.functions.name.indexOf(name);
