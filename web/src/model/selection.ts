// What filters leave of a recording, added up by stack. Everything that is shown is made of one of these. No DOM.
import { CallTree, sumUp } from "./call_tree";
import { labelsOf } from "./catalogue";
import { Filter, Query, spansOf } from "./filters";
import { By, Weight } from "./head";
import { InTime } from "./in_time";
import { Recording } from "./recording";
import { holds } from "./states";
import { Column, Doing, Label, shown } from "./tree";

// Always a set: what is shown as time also says how many samples it rests on.
export interface Amount {
  wall: number; // ns
  cpu: number;
  samples: number; // looks
}

export type Amounts = Record<Weight, Float64Array>;

export interface Passes {
  node: Uint8Array; // by node of the tree by line: 1, a stack that ends there passes
  state: Uint8Array; // by state
  thread: Uint8Array; // by thread
  doing: Uint8Array; // by what was done: computing, waiting, waiting for work
  spans: [number, number][] | null; // times that pass; null: all
}

// How much of a stretch lies in the spans.
export function overlap(spans: [number, number][], start: number, wall: number): number {
  let part = 0;
  for (const [from, to] of spans) part += Math.max(0, Math.min(start + wall, to) - Math.max(start, from));
  return part;
}

// A stretch without length passes when it begins within.
export function touches(spans: [number, number][], start: number, part: number, wall: number): boolean {
  return wall > 0 ? part > 0 : spans.some(([from, to]) => start >= from && start < to);
}

// As SampleFilter::part in profile/view.cpp has it: looks are whole, and none that passes has less than one.
export function samplesOf(samples: number, share: number): number {
  return share >= 1 ? samples : Math.min(samples, Math.max(1, Math.round(samples * share)));
}

const allDoings: Doing[] = ["computing", "waiting", "waiting_for_work"]; // as the exporter numbers them

function passesOf(recording: Recording, { filters, show }: Query): Passes {
  const { catalogue, lines } = recording;
  const node = new Uint8Array(lines.parent.length).fill(1);
  const state = new Uint8Array(catalogue.states.length).fill(1);
  const thread = new Uint8Array(catalogue.threads.length).fill(1);
  const { module, language } = catalogue.functions;
  const functions = module.length;
  const places = catalogue.places.function;
  const keep = (rows: Uint8Array, filter: Filter, within: (row: number) => boolean) => {
    for (let i = 0; i < rows.length; ++i) if (within(i) !== (filter.mode === "in")) rows[i] = 0;
  };
  // Stacks with one of these functions in them.
  const through = (filter: Filter, wanted: Uint8Array) => {
    const has = new Uint8Array(node.length);
    for (let i = 1; i < has.length; ++i) has[i] = has[lines.parent[i]] | wanted[places[lines.label[i]]];
    keep(node, filter, (i) => has[i] === 1);
  };
  for (const filter of filters) {
    switch (filter.field) {
      case "process":
        keep(thread, filter, (i) => filter.values.includes(catalogue.threads[i].process));
        break;
      case "recording":
        keep(thread, filter, (i) => filter.values.includes(catalogue.threads[i].recording));
        break;
      case "thread":
        keep(thread, filter, (i) => filter.values.includes(i));
        break;
      case "state":
        keep(state, filter, (i) => filter.values.some((word) => holds(catalogue.states[i], word)));
        break;
      case "function":
        through(filter, Uint8Array.from({ length: functions }, (_, f) => (filter.values.includes(f) ? 1 : 0)));
        break;
      case "module":
        through(filter, Uint8Array.from({ length: functions }, (_, f) => (f !== 0 && filter.values.includes(module[f]) ? 1 : 0)));
        break;
      case "language": {
        const wanted = Uint8Array.from({ length: functions }, (_, f) => (filter.values.includes(language[f]) ? 1 : 0));
        keep(node, filter, (i) => wanted[places[lines.label[i]]] === 1);
        break;
      }
      case "time":
        break;
    }
  }
  const doing = Uint8Array.from(allDoings, (word) => (shown[show].includes(word) ? 1 : 0));
  return { node, state, thread, doing, spans: spansOf(filters) };
}

function addUp(recording: Recording, passes: Passes): Amounts {
  const { first, start, wall, cpu, samples, node, state, doing } = recording.stretches;
  const count = recording.lines.parent.length;
  const sums: Amounts = { wall: new Float64Array(count), cpu: new Float64Array(count), samples: new Float64Array(count) };
  const { wall: wallSum, cpu: cpuSum, samples: sampleSum } = sums;
  const { node: nodePasses, state: statePasses, doing: doingPasses, spans } = passes;
  for (let t = 0; t + 1 < first.length; ++t) {
    if (!passes.thread[t]) continue;
    const end = first[t + 1];
    for (let i = first[t]; i < end; ++i) {
      const at = node[i];
      if ((nodePasses[at] & statePasses[state[i]] & doingPasses[doing[i]]) === 0) continue;
      if (spans) {
        const part = overlap(spans, start[i], wall[i]);
        if (!touches(spans, start[i], part, wall[i])) continue;
        if (part < wall[i]) {
          const share = part / wall[i];
          wallSum[at] += part;
          cpuSum[at] += Math.round(cpu[i] * share);
          sampleSum[at] += samplesOf(samples[i], share);
          continue;
        }
      }
      wallSum[at] += wall[i];
      cpuSum[at] += cpu[i];
      sampleSum[at] += samples[i];
    }
  }
  return sums;
}

const sum = (values: Float64Array) => {
  let all = 0;
  for (let i = 0; i < values.length; ++i) all += values[i];
  return all;
};

export class Selection {
  readonly passes: Passes;
  private sums: Amounts | null = null; // what only asks what passes does not wait for them
  private whole: Amount | null = null;
  private byFunction: Amounts | null = null;
  private readonly totals = new Map<string, Float64Array>();

  constructor(readonly recording: Recording, query: Query) {
    this.passes = passesOf(recording, query);
  }

  private get byLine(): Amounts {
    return (this.sums ??= addUp(this.recording, this.passes));
  }

  get all(): Amount {
    return (this.whole ??= { wall: sum(this.byLine.wall), cpu: sum(this.byLine.cpu), samples: sum(this.byLine.samples) });
  }

  tree(by: By): CallTree {
    return by === "line" ? this.recording.lines : this.recording.functions;
  }

  // What ends at each node of that tree. Not to be written to.
  self(by: By, weight: Weight): Float64Array {
    if (by === "line") return this.byLine[weight];
    if (!this.byFunction) {
      const { functionNode, functions } = this.recording;
      const folded = (from: Float64Array) => {
        const into = new Float64Array(functions.parent.length);
        for (let i = 0; i < from.length; ++i) into[functionNode[i]] += from[i];
        return into;
      };
      this.byFunction = { wall: folded(this.byLine.wall), cpu: folded(this.byLine.cpu), samples: folded(this.byLine.samples) };
    }
    return this.byFunction[weight];
  }

  // With everything beneath. Not to be written to.
  total(by: By, weight: Weight): Float64Array {
    const key = `${by} ${weight}`;
    let total = this.totals.get(key);
    if (!total) this.totals.set(key, (total = sumUp(this.tree(by), this.self(by, weight))));
    return total;
  }

  column(by: By, weight: Weight): Column {
    return { self: this.self(by, weight), total: this.total(by, weight), samples: this.total(by, "samples") };
  }
}

// Views of one page ask about the same few selections again and again.
const kept = 6;

export class Model {
  private readonly known = new Map<string, Selection>();

  private names: Label[] | null = null;
  private time: InTime | null = null;
  private numbers: Uint32Array | null = null;

  constructor(readonly recording: Recording) {}

  // Of functions.
  labels(): Label[] {
    return (this.names ??= labelsOf(this.recording.catalogue, "function"));
  }

  get inTime(): InTime {
    return (this.time ??= new InTime(this.recording.stretches));
  }

  // Of the CPUs on which threads were seen.
  get cpuNumbers(): Uint32Array {
    return (this.numbers ??= Uint32Array.from(new Set(this.recording.stretches.cpuNumber)).filter((n) => n > 0).map((n) => n - 1).sort());
  }

  select(query: Query): Selection {
    const key = JSON.stringify([query.filters, query.show]);
    const selection = this.known.get(key) ?? new Selection(this.recording, query);
    this.known.delete(key);
    this.known.set(key, selection); // the last of the map is the one used last
    for (const oldest of this.known.keys()) {
      if (this.known.size <= kept) break;
      this.known.delete(oldest);
    }
    return selection;
  }
}
