// What filters leave of a recording, summed by stack. Everything shown is computed from one of these. No DOM.
import { CallTree, sumUp } from "./call_tree";
import { labelsOf } from "./catalogue";
import { Query } from "./filters";
import { By, Weight, weightsOf } from "./head";
import { InTime, lowest } from "./in_time";
import { findPassing, Passes, passesOf, Passing, samplesOf } from "./passing";
import { Recording } from "./recording";
import { Column, Label } from "./tree";

// Always a full set: what is shown as time also says how many samples it rests on.
export type Amount = Record<Weight, number>; // ns, samples, event counts

export type Amounts = Record<Weight, Float64Array>;

// One value per weight.
export function eachWeight<T>(weights: Weight[], make: (weight: Weight, i: number) => T): Record<Weight, T> {
  const out = {} as Record<Weight, T>;
  weights.forEach((weight, i) => (out[weight] = make(weight, i)));
  return out;
}

const timeWeights = 3; // wall, cpu and samples come first, then events

function addUp(recording: Recording, passing: Passing): Amounts {
  const { wall, cpu, samples, node, event, value } = recording.intervals;
  const count = recording.lines.parent.length;
  const weights = weightsOf(recording.catalogue.head);
  const width = weights.length;
  // Weights of a node side by side: intervals visit nodes in any order, and each is then one place in memory.
  const sums = new Float64Array(count * width);
  const { interval, part: parts } = passing;
  const counts = width > timeWeights;
  for (let k = 0; k < interval.length; ++k) {
    const i = interval[k];
    const at = node[i] * width;
    if (parts && parts[k] < wall[i]) {
      const share = parts[k] / wall[i];
      sums[at] += parts[k];
      sums[at + 1] += Math.round(cpu[i] * share);
      sums[at + 2] += samplesOf(samples[i], share);
      if (counts && event[i]) sums[at + timeWeights - 1 + event[i]] += Math.round(value[i] * share);
      continue;
    }
    sums[at] += wall[i];
    sums[at + 1] += cpu[i];
    sums[at + 2] += samples[i];
    if (counts && event[i]) sums[at + timeWeights - 1 + event[i]] += value[i];
  }
  const column = (which: number) => {
    const out = new Float64Array(count);
    for (let at = 0; at < count; ++at) out[at] = sums[at * width + which];
    return out;
  };
  return eachWeight(weights, (_, i) => column(i));
}

const sum = (values: Float64Array) => {
  let all = 0;
  for (let i = 0; i < values.length; ++i) all += values[i];
  return all;
};

export class Selection {
  readonly passes: Passes;
  private found: Passing | null = null; // found lazily: some questions need only `passes`
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

  // The first and past-last index in `passing` of the thread's intervals that overlap the range or begin in it; some in
  // between may not.
  passingIn(thread: number, from: number, to: number): [number, number] {
    const { first, interval } = this.passing;
    const [begin, end] = this.inTime().of(thread, from, to);
    const [low, high] = [first[thread], first[thread + 1]];
    return [lowest(low, high, (k) => interval[k] >= begin), lowest(low, high, (k) => interval[k] >= end)];
  }

  get weights(): Weight[] {
    return weightsOf(this.recording.catalogue.head);
  }

  private get byLine(): Amounts {
    return (this.sums ??= addUp(this.recording, this.passing));
  }

  get all(): Amount {
    return (this.whole ??= eachWeight(this.weights, (weight) => sum(this.byLine[weight])));
  }

  tree(by: By): CallTree {
    return by === "line" ? this.recording.lines : this.recording.functions;
  }

  // Weight that ends at each node of that tree. Do not write to it.
  self(by: By, weight: Weight): Float64Array {
    if (by === "line") return this.byLine[weight];
    if (!this.byFunction) {
      const { functionNode, functions } = this.recording;
      const folded = (from: Float64Array) => {
        const into = new Float64Array(functions.parent.length);
        for (let i = 0; i < from.length; ++i) into[functionNode[i]] += from[i];
        return into;
      };
      this.byFunction = eachWeight(this.weights, (of) => folded(this.byLine[of]));
    }
    return this.byFunction[weight];
  }

  // Including descendants. Do not write to it.
  total(by: By, weight: Weight): Float64Array {
    const key = `${by} ${weight}`;
    let total = this.totals.get(key);
    if (!total) this.totals.set(key, total = sumUp(this.tree(by), this.self(by, weight)));
    return total;
  }

  column(by: By, weight: Weight): Column {
    return { self: this.self(by, weight), total: this.total(by, weight), samples: this.total(by, "samples") };
  }
}

// Views of one page keep asking about the same few selections.
const kept = 6;

export class Model {
  private readonly known = new Map<string, Selection>();
  private readonly worked = new Map<string, unknown>();
  private names: Label[] | null = null;
  private time: InTime | null = null;
  private numbers: Uint32Array | null = null;

  constructor(readonly recording: Recording) {}

  // By function.
  labels(): Label[] {
    return (this.names ??= labelsOf(this.recording.catalogue, "function"));
  }

  get inTime(): InTime {
    return (this.time ??= new InTime(this.recording.intervals));
  }

  // The CPUs on which threads were seen.
  get cpuNumbers(): Uint32Array {
    const known = new Set(this.recording.intervals.cpuNumber);
    return (this.numbers ??= Uint32Array.from(known).filter((n) => n > 0).map((n) => n - 1).sort());
  }

  // Caches what a question computes once for the whole recording.
  once<T>(what: string, work: () => T): T {
    if (!this.worked.has(what)) this.worked.set(what, work());
    return this.worked.get(what) as T;
  }

  select(query: Query): Selection {
    const key = JSON.stringify([query.filters, query.show]);
    const selection = this.known.get(key) ?? new Selection(this.recording, query, () => this.inTime);
    this.known.delete(key);
    this.known.set(key, selection); // the last in the map is the most recently used
    for (const oldest of this.known.keys()) {
      if (this.known.size <= kept) break;
      this.known.delete(oldest);
    }
    return selection;
  }
}
