// What filters leave of a recording, added up by stack. Everything that is shown is made of one of these. No DOM.
import { CallTree, sumUp } from "./call_tree";
import { labelsOf } from "./catalogue";
import { Query } from "./filters";
import { By, Weight } from "./head";
import { InTime } from "./in_time";
import { findPassing, Passes, passesOf, Passing, samplesOf } from "./passing";
import { Recording } from "./recording";
import { Column, Label } from "./tree";

// Always a set: what is shown as time also says how many samples it rests on.
export interface Amount {
  wall: number; // ns
  cpu: number;
  samples: number; // looks
}

export type Amounts = Record<Weight, Float64Array>;

function addUp(recording: Recording, passing: Passing): Amounts {
  const { wall, cpu, samples, node } = recording.stretches;
  const count = recording.lines.parent.length;
  const sums: Amounts = { wall: new Float64Array(count), cpu: new Float64Array(count), samples: new Float64Array(count) };
  const { wall: wallSum, cpu: cpuSum, samples: sampleSum } = sums;
  const { stretch, part: parts } = passing;
  for (let k = 0; k < stretch.length; ++k) {
    const i = stretch[k];
    const at = node[i];
    if (parts && parts[k] < wall[i]) {
      const share = parts[k] / wall[i];
      wallSum[at] += parts[k];
      cpuSum[at] += Math.round(cpu[i] * share);
      sampleSum[at] += samplesOf(samples[i], share);
      continue;
    }
    wallSum[at] += wall[i];
    cpuSum[at] += cpu[i];
    sampleSum[at] += samples[i];
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
  private found: Passing | null = null; // who only asks what passes does not wait for these
  private sums: Amounts | null = null;
  private whole: Amount | null = null;
  private byFunction: Amounts | null = null;
  private readonly totals = new Map<string, Float64Array>();

  constructor(readonly recording: Recording, query: Query, private readonly inTime: () => InTime) {
    this.passes = passesOf(recording, query);
  }

  get passing(): Passing {
    return (this.found ??= findPassing(this.recording, this.passes, this.inTime));
  }

  private get byLine(): Amounts {
    return (this.sums ??= addUp(this.recording, this.passing));
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
  private readonly worked = new Map<string, unknown>();
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

  // What a question works out but once for the whole recording.
  once<T>(what: string, work: () => T): T {
    if (!this.worked.has(what)) this.worked.set(what, work());
    return this.worked.get(what) as T;
  }

  select(query: Query): Selection {
    const key = JSON.stringify([query.filters, query.show]);
    const selection = this.known.get(key) ?? new Selection(this.recording, query, () => this.inTime);
    this.known.delete(key);
    this.known.set(key, selection); // the last of the map is the one used last
    for (const oldest of this.known.keys()) {
      if (this.known.size <= kept) break;
      this.known.delete(oldest);
    }
    return selection;
  }
}
