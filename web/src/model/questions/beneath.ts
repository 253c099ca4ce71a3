// For each Python function or line: the native function beneath it with most self time, and its share; without native
// frames, the library found by most samples on a CPU. report/analysis.cpp (put_native) and report/code_beneath.cpp
// compute the same.
import { Query } from "../filters";
import { By, Weight } from "../head";
import { nativesBeneath } from "../natives";
import { samplesOf } from "../passing";
import { Model } from "../selection";

export interface Beneath {
  native: Uint32Array; // by row: a function; 0: unknown
  library: string[]; // "": none
  share: Float64Array; // of the row's self time; for a library: of its samples on a CPU
}

// Wilson's 99 % interval: whether `some` of the samples are certainly more than half.
export function areMost(some: number, counts: number): boolean {
  if (counts === 0) return false;
  const z = 2.576;
  const p = some / counts;
  const low = p + (z * z) / (2 * counts) - z * Math.sqrt((p * (1 - p)) / counts + (z * z) / (4 * counts * counts));
  return low > 0.5 * (1 + (z * z) / counts);
}

export function beneath(model: Model, query: Query, { by, weight }: { by: By; weight: Weight }): Beneath {
  const { functions, places } = model.recording.catalogue;
  const rows = by === "line" ? places.line.length : functions.name.length;
  const answer: Beneath = { native: new Uint32Array(rows), library: new Array<string>(rows).fill(""),
    share: new Float64Array(rows) };
  const rowOf = (place: number) => (by === "line" ? place : places.function[place]);
  putNatives(model, query, weight, rowOf, answer);
  putLibraries(model, query, rowOf, answer);
  return answer;
}

function putNatives(model: Model, query: Query, weight: Weight, rowOf: (place: number) => number,
  { native, share }: Beneath): void
{
  const { recording } = model;
  const natives = model.once("natives beneath", () => nativesBeneath(recording));
  const self = model.select(query).self("line", weight);
  const { label, owner } = recording.lines;
  const own = new Float64Array(native.length);
  const sums = new Map<number, number>(); // row * functions + native function
  const functions = recording.catalogue.functions.name.length;
  for (let node = 1; node < self.length; ++node) {
    const row = rowOf(label[owner[node]]);
    own[row] += self[node];
    if (natives[node])
      sums.set(row * functions + natives[node], (sums.get(row * functions + natives[node]) ?? 0) + self[node]);
  }
  const most = new Float64Array(native.length);
  for (const [key, sum] of Array.from(sums)) {
    const row = Math.floor(key / functions);
    if (sum <= most[row]) continue;
    most[row] = sum;
    native[row] = key % functions;
    share[row] = own[row] > 0 ? sum / own[row] : 0;
  }
}

function putLibraries(model: Model, query: Query, rowOf: (place: number) => number, { library, share }: Beneath): void {
  const { catalogue, lines, intervals } = model.recording;
  if (catalogue.states.every((state) => !state.library)) return;
  const counts = new Float64Array(library.length);
  const found = new Map<string, Float64Array>();
  const { interval, part } = model.select(query).passing;
  for (let k = 0; k < interval.length; ++k) {
    const i = interval[k];
    const state = catalogue.states[intervals.state[i]];
    if (state.cpu !== 1 || intervals.node[i] === 0 || intervals.samples[i] === 0) continue;
    const samples = part && part[k] < intervals.wall[i]
      ? samplesOf(intervals.samples[i], part[k] / intervals.wall[i])
      : intervals.samples[i];
    const row = rowOf(lines.label[intervals.node[i]]);
    counts[row] += samples;
    if (!state.library) continue;
    if (!found.has(state.library)) found.set(state.library, new Float64Array(library.length));
    (found.get(state.library) as Float64Array)[row] += samples;
  }
  const names = Array.from(found).sort(([a], [b]) => (a < b ? -1 : 1));
  for (let row = 1; row < library.length; ++row) {
    let most = 0;
    for (const [name, sums] of names) {
      if (sums[row] > most) [library[row], most] = [name, sums[row]];
    }
    if (!areMost(most, counts[row])) library[row] = "";
    else share[row] = most / counts[row];
  }
}
