// The whole recording in columns of numbers, for the model. No DOM.
import { CallTree, callTree, findOwners, relabelled } from "./call_tree";
import { Catalogue, readCatalogue } from "./catalogue";
import { Columns, Numbers, unpack, unzigzag } from "./columns";
import { Head } from "./head";
import { activityOf } from "./states";
import { Kind } from "./tree";
import { readWaitTable, WaitTable } from "./wait_table";

// One thread over one interval, sorted by thread, then start: those of thread t are first[t] to first[t + 1].
export interface Intervals {
  first: Uint32Array;
  start: Float64Array; // ns since the recording's start
  wall: Float64Array; // ns
  cpu: Float64Array;
  samples: Numbers;
  event: Numbers; // which of head.events counted here, from 1; 0: none
  value: Numbers; // its count
  node: Uint32Array; // of the tree by line
  state: Numbers; // index into catalogue.states
  activity: Uint8Array; // states.ts
  // state * doings + what the thread did: index into allDoings in passing.ts, which `show` refers to.
  kind: Uint16Array;
  wait: Numbers; // row of the recording's waits; 0: none
  cpuNumber: Numbers; // plus one; 0: unknown
  endpoint: Numbers; // index into catalogue.endpoints
}

export const doings = 5;

export interface Recording {
  catalogue: Catalogue;
  lines: CallTree; // labels are places
  functions: CallTree; // labels are functions
  functionNode: Uint32Array; // by node of `lines`
  intervals: Intervals;
  waits: WaitTable;
  sources: ReadonlyMap<string, string>; // text by file
}

// `nodeOf`: node of `lines` by node as written; null: the same.
function readIntervals(head: Head, columns: Columns, catalogue: Catalogue, lines: CallTree,
  nodeOf: Uint32Array | null): Intervals
{
  const counts = columns.numbers("thread.stretches");
  const first = new Uint32Array(counts.length + 1);
  for (let t = 0; t < counts.length; ++t) first[t + 1] = first[t] + counts[t];
  const starts = columns.numbers("stretch.start");
  const walls = columns.numbers("stretch.wall");
  const used = columns.numbers("stretch.cpu");
  const count = first[counts.length];
  if (starts.length !== count) throw new Error("the page's data is damaged: intervals without a thread");
  const start = new Float64Array(count);
  const wall = new Float64Array(count);
  const cpu = new Float64Array(count);
  const unit = head.gridUnit;
  for (let t = 0; t < counts.length; ++t) {
    let expected = 0;
    for (let i = first[t]; i < first[t + 1]; ++i) {
      const at = expected + unzigzag(starts[i]);
      start[i] = head.gridFirst + at * unit;
      wall[i] = walls[i];
      cpu[i] = used[i] === 0 ? 0 : walls[i] - unzigzag(used[i] - 1);
      expected = Math.floor((at * unit + walls[i]) / unit);
    }
  }
  const node = Uint32Array.from(columns.numbers("stretch.node"), (written) => (nodeOf ? nodeOf[written] : written));
  const state = columns.numbers("stretch.state");
  const states = catalogue.states.length;
  // By state and kind of the innermost frame.
  const words = Uint8Array.from({ length: states * 4 }, (_, i) => activityOf(catalogue.states[i >> 2], i & 3));
  const leaf = runs(catalogue, lines);
  const activity = new Uint8Array(count);
  for (let i = 0; i < count; ++i) activity[i] = words[(state[i] << 2) | leaf[node[i]]];
  const doing = columns.numbers("stretch.doing");
  const kind = new Uint16Array(count);
  for (let i = 0; i < count; ++i) kind[i] = state[i] * doings + doing[i];
  const counted = (name: string) => (columns.has(name) ? columns.numbers(name) : new Uint8Array(count));
  const [event, value] = [counted("stretch.event"), counted("stretch.value")];
  return { first, start, wall, cpu, event, value, samples: columns.numbers("stretch.samples"), node, state, activity,
    kind, wait: columns.numbers("stretch.wait"), cpuNumber: columns.numbers("stretch.cpuNumber"),
    endpoint: counted("stretch.endpoint") };
}

// By node of the tree by line: what runs there. The interpreter's own C counts as Python, the C library as its caller.
export function runs({ functions: { kind, owner }, places }: Catalogue, lines: CallTree): Uint8Array {
  const out = new Uint8Array(lines.parent.length).fill(Kind.marker);
  for (let node = 1; node < out.length; ++node) {
    const f = places.function[lines.label[node]];
    const above = out[lines.parent[node]];
    out[node] = kind[f] !== Kind.native || owner[f] === 0
      ? kind[f]
      : owner[f] === 1
      ? Kind.python
      : above === Kind.python
      ? Kind.python
      : Kind.native;
  }
  return out;
}

// By function: a marker in the place of Python functions that were not read.
export const isUnread = ({ kind, owner }: Catalogue["functions"], f: number): boolean =>
  kind[f] === Kind.marker && owner[f] === 1;

// The marker from view/forks.h: the child has the frames above it from its parent.
const forkedHere = "(forked here)";

// The tree without frames that forked children inherited: stacks begin at the marker, as without --inherited-frames.
// null: nothing inherited.
export function withoutInherited(lines: CallTree, isFork: (label: number) => boolean):
  | ReturnType<typeof relabelled>
  | null
{
  const parent = lines.parent.map((above, node) => (node > 0 && isFork(lines.label[node]) ? 0 : above));
  if (parent.every((above, node) => above === lines.parent[node])) return null;
  const same = Uint32Array.from({ length: lines.label.reduce((most, label) => Math.max(most, label), 0) + 1 },
    (_, label) => label);
  return relabelled({ ...lines, parent }, same);
}

// `inherited`: keep the frames that forked children have from their parents.
export function readRecording(head: Head, bytes: Uint8Array, inherited = false): Recording {
  const columns = new Columns(head.columns, bytes);
  const strings = columns.text("strings").split("\n");
  const catalogue = readCatalogue(head, columns, strings);
  const written = callTree(columns.numbers("node.depth"), columns.numbers("node.place"));
  const cut = withoutInherited(written,
    (place) =>
      catalogue.functions.name[catalogue.places.function[place]] === forkedHere &&
      catalogue.functions.kind[catalogue.places.function[place]] === Kind.marker);
  catalogue.inherits = cut !== null;
  const lines = cut && !inherited ? cut.tree : written;
  const { tree: functions, nodeOf: functionNode } = relabelled(lines, catalogue.places.function);
  const { kind } = catalogue.functions;
  const unread = (f: number) => isUnread(catalogue.functions, f);
  findOwners(functions, (f) => kind[f] === Kind.python, unread);
  findOwners(lines, (place) => kind[catalogue.places.function[place]] === Kind.python,
    (place) => unread(catalogue.places.function[place]));
  const intervals = readIntervals(head, columns, catalogue, lines, cut && !inherited ? cut.nodeOf : null);
  const waits = readWaitTable(columns, strings, catalogue);
  catalogue.nodes = functions.parent.length;
  catalogue.intervals = intervals.start.length;
  catalogue.start = intervals.start.length ? Infinity : 0;
  let lastStart = -Infinity;
  for (let i = 0; i < intervals.start.length; ++i) {
    catalogue.start = Math.min(catalogue.start, intervals.start[i]);
    lastStart = Math.max(lastStart, intervals.start[i]);
    catalogue.end = Math.max(catalogue.end, intervals.start[i] + intervals.wall[i]);
  }
  catalogue.timed = lastStart > catalogue.start || "start_monotonic_ns" in catalogue.meta;
  const sources = new Map(columns.has("sources") ? (JSON.parse(columns.text("sources")) as [string, string][]) : []);
  catalogue.sourceFiles = Array.from(sources.keys());
  return { catalogue, lines, functions, functionNode, intervals, waits, sources };
}

export async function openRecording(head: Head, packed: string, inherited = false): Promise<Recording> {
  return readRecording(head, await unpack(packed), inherited);
}
