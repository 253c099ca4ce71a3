// Exports what is shown to files for other tools, from the page's columns, as exporters/collapsed.cpp and
// exporters/speedscope.cpp do from a recording. The text comes in pieces, since a file may exceed the maximum length of
// a string.
import { Catalogue, fileOf } from "../catalogue";
import { Query } from "../filters";
import { By, eventOf, unitOf, Weight } from "../head";
import { Passing, samplesOf } from "../passing";
import { Recording } from "../recording";
import { Model } from "../selection";
import { Kind, Label } from "../tree";
import { Unit } from "../../words";

interface Choice {
  by: By;
  weight: Weight;
}

const pieceLength = 4_000_000; // characters

class Pieces {
  private readonly done: string[] = [];
  private parts: string[] = [];
  private length = 0;

  add(text: string): void {
    this.parts.push(text);
    this.length += text.length;
    if (this.length < pieceLength) return;
    this.done.push(this.parts.join(""));
    this.parts = [];
    this.length = 0;
  }

  all(): string[] {
    return [...this.done, this.parts.join("")];
  }
}

// A tree label as written to files, without the line number that labels by line end with.
function frameOf(catalogue: Catalogue, by: By, label: number): Label {
  const { functions, places } = catalogue;
  const f = by === "line" ? places.function[label] : label;
  return { name: functions.name[f], full: functions.full[f],
    file: by === "line" ? fileOf(catalogue, label) : functions.file[f], module: functions.module[f],
    kind: functions.kind[f], line: by === "line" ? places.line[label] : functions.line[f] };
}

// "libfoo: src/run.rs": the library of a native function.
const inLibrary = ({ kind, module }: Label,
  place: string) => (kind === Kind.native && module ? (place ? `${module}: ${place}` : module) : place);

// ---- collapsed ----------------------------------------------------------------------------------------------------

export function collapsedFrame(label: Label, by: By): string {
  const place = inLibrary(label,
    by === "line" && label.line && label.file ? `${label.file}:${label.line}` : label.file);
  return place ? `${label.full} (${place})` : label.full;
}

export function escapedFrame(name: string): string {
  return name.replace(/[\\;\x00-\x1f\x7f]/g,
    (c) => (c === "\\" ? "\\\\" : c === "\n" ? "\\n" : `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`));
}

// Some readers take "a;b 12 34" for a pair of counts.
const keptApart = (leaf: string) => leaf.replace(/ (?=[\d.]+$)/, "\\x20");

export function collapsed(model: Model, query: Query, { by, weight }: Choice): string[] {
  const selection = model.select(query);
  const { parent, label } = selection.tree(by);
  const self = selection.self(by, weight);
  const { catalogue } = model.recording;
  const names = new Map<number, string>();
  const nameOf = (id: number) => {
    let name = names.get(id);
    if (name === undefined) names.set(id, name = escapedFrame(collapsedFrame(frameOf(catalogue, by, id), by)));
    return name;
  };
  const out = new Pieces();
  // The root's own weight is written under its name.
  for (let node = 0; node < parent.length; ++node) {
    if (self[node] === 0) continue;
    const path = [keptApart(nameOf(label[node]))];
    for (let above = parent[node]; above !== 0; above = parent[above]) path.push(nameOf(label[above]));
    out.add(`${path.reverse().join(";")} ${self[node]}\n`);
  }
  return out.all();
}

// ---- speedscope ---------------------------------------------------------------------------------------------------

// For an empty stack; this format has room for those too.
const noStack = "(no Python frames)";

class Frames {
  readonly list: string[] = []; // as JSON
  private readonly known = new Map<string, number>();
  private readonly numbers = new Map<number, number>(); // by label
  private readonly stacks = new Map<number, string>(); // by node, as JSON

  constructor(private readonly recording: Recording, private readonly by: By) {}

  // Equal frames share one entry.
  private number(label: number): number {
    let at = this.numbers.get(label);
    if (at !== undefined) return at;
    const frame = frameOf(this.recording.catalogue, this.by, label);
    const { full: name, file, line, kind, module } = frame;
    const key = JSON.stringify([kind, name, file || module, line]);
    at = this.known.get(key);
    if (at === undefined) {
      this.known.set(key, at = this.list.length);
      const where = file || kind === Kind.native ? { file: inLibrary(frame, file) } : {};
      this.list.push(JSON.stringify({ name, ...where, ...(line > 0 ? { line } : {}) }));
    }
    this.numbers.set(label, at);
    return at;
  }

  // `node`: of the tree by line.
  stack(node: number): string {
    const { lines, functions, functionNode, catalogue } = this.recording;
    const [tree, at] = this.by === "line" ? [lines, node] : [functions, functionNode[node]];
    let stack = this.stacks.get(at);
    if (stack !== undefined) return stack;
    const path: number[] = [];
    const leaf = frameOf(catalogue, this.by, tree.label[at]);
    const isEmpty = tree.parent[at] === 0 && leaf.kind === Kind.marker && leaf.name === noStack;
    for (let n = isEmpty ? 0 : at; n !== 0; n = tree.parent[n]) path.push(this.number(tree.label[n]));
    this.stacks.set(at, stack = `[${path.reverse().join()}]`);
    return stack;
  }
}

const speedscopeUnits: Record<Unit, string> = { ns: "nanoseconds", samples: "none", count: "none", bytes: "bytes" };

interface ThreadStacks {
  samples: Pieces;
  weights: Pieces;
  count: number;
  total: number;
  computing: number; // ns
}

// As SampleFilter::part: an interval partly within the selected times counts in proportion.
function stacksOf(recording: Recording, { first, interval, part: parts }: Passing, frames: Frames, thread: number,
  weight: Weight): ThreadStacks
{
  const { wall, cpu, samples, node, state, event, value } = recording.intervals;
  const counting = eventOf(weight);
  const { states } = recording.catalogue;
  const out: ThreadStacks = { samples: new Pieces(), weights: new Pieces(), count: 0, total: 0, computing: 0 };
  for (let k = first[thread]; k < first[thread + 1]; ++k) {
    const i = interval[k];
    const part = parts ? parts[k] : wall[i];
    const share = part < wall[i] ? part / wall[i] : 1;
    const amount = counting ? (event[i] === counting ? value[i] : 0) : cpu[i];
    const weighs = weight === "wall"
      ? part
      : weight === "samples"
      ? samplesOf(samples[i], share)
      : share < 1
      ? Math.round(amount * share)
      : amount;
    if (weighs <= 0) continue;
    const comma = out.count++ ? "," : "";
    out.samples.add(comma + frames.stack(node[i]));
    out.weights.add(comma + weighs);
    out.total += weighs;
    const { cpu: cpuState, gil } = states[state[i]];
    if (cpuState !== 3 || gil === 3) out.computing += part;
  }
  return out;
}

// "before: Thread worker-1 (17)"; with its process where the recording has several.
function threadTitle({ threads, processes, recordings }: Catalogue, thread: number): string {
  const { label, process, recording } = threads[thread];
  const mine = threads.filter((other) => other.recording === recording).map((other) => other.process);
  const several = recordings.length > 1 ? new Set(mine).size > 1 : processes.length > 1;
  if (!several || !processes[process]) return label;
  const side = recordings.length > 1 ? `${recordings[recording].name}: ` : "";
  return `${processes[process].label}: ${label.startsWith(side) ? label.slice(side.length) : label}`;
}

export function speedscope(model: Model, query: Query, { by, weight, title }: Choice & { title: string }): string[] {
  const { recording } = model;
  const { passing } = model.select(query);
  const frames = new Frames(recording, by);
  const profiles: { name: string; stacks: ThreadStacks }[] = [];
  for (let thread = 0; thread < recording.catalogue.threads.length; ++thread) {
    const stacks = stacksOf(recording, passing, frames, thread, weight);
    if (stacks.count) profiles.push({ name: threadTitle(recording.catalogue, thread), stacks });
  }
  // speedscope does not open a file without profiles.
  if (!profiles.length)
    profiles.push({ name: "no samples",
      stacks: { samples: new Pieces(), weights: new Pieces(), count: 0, total: 0, computing: 0 } });
  // Open the file at the thread that computes most.
  const active = profiles.reduce((best, one, i) => (one.stacks.computing > profiles[best].stacks.computing ? i : best),
    0);
  const head = {
    $schema: "https://www.speedscope.app/file-format-schema.json",
    name: title,
    exporter: `phlox ${recording.catalogue.head.phlox}`,
    ...(active ? { activeProfileIndex: active } : {}),
  };
  const out = [`${JSON.stringify(head).slice(0, -1)},"shared":{"frames":[${frames.list.join()}]},"profiles":[`];
  profiles.forEach(({ name, stacks }, i) => {
    const facts = { type: "sampled", name, unit: speedscopeUnits[unitOf(recording.catalogue.head, weight)],
      startValue: 0, endValue: stacks.total };
    out.push(`${i ? "," : ""}${JSON.stringify(facts).slice(0, -1)},"samples":[`, ...stacks.samples.all(),
      "],\"weights\":[", ...stacks.weights.all(), "]}");
  });
  out.push("]}");
  return out;
}
