// What threads or CPUs did, in equal bins of time: the timeline's rows.
import { Query } from "../filters";
import { eachPart } from "../passing";
import { Model, Selection } from "../selection";
import { activities, Activity } from "../states";

export interface Densities {
  bins: number;
  // ns in each state: (row * bins + bin) * activities + Activity. A row of one thread sums to at most a bin's length.
  time: Float32Array;
}

interface Range {
  from: number; // ns
  to: number;
  bins: number;
}

// Where an interval's time is added: bin 0 of its row is at `row`, or at `rowOfCpu` (negative: nowhere); states from
// `below` on are omitted.
interface Into {
  time: Float32Array;
  row: number;
  below: Activity;
  rowOfCpu: Int32Array | null; // by CPU plus one
}

// Adds the time from a to b (ns since the range's start) to each bin that it overlaps; bin 0 is at `at`.
function addLong(time: Float32Array, at: number, a: number, b: number, length: number, bins: number): void {
  for (let bin = Math.floor(a / length); bin < bins && bin * length < b; ++bin) {
    const part = Math.min(b, (bin + 1) * length) - Math.max(a, bin * length);
    if (part > 0) time[at + bin * activities] += part;
  }
}

// Adds every selected interval of a thread in the range to its bins.
function addParts(model: Model, selection: Selection, thread: number, { from, to, bins }: Range,
  { time, row, below, rowOfCpu }: Into): void
{
  const { passing: { interval }, passes } = selection;
  const spans = passes.spans?.(thread);
  const { start, wall, activity, cpuNumber } = model.recording.intervals;
  const length = (to - from) / bins;
  const perLength = 1 / length;
  const [begin, end] = selection.passingIn(thread, from, to);
  for (let k = begin; k < end; ++k) {
    const i = interval[k];
    const did = activity[i];
    if (did >= below) continue;
    const at = (rowOfCpu ? rowOfCpu[cpuNumber[i]] : row) + did;
    if (at < 0) continue;
    const [a, b] = [Math.max(start[i], from) - from, Math.min(start[i] + wall[i], to) - from];
    if (b <= a) continue;
    if (spans) {
      eachPart(spans, a + from, b - a, (c, d) => addLong(time, at, c - from, d - from, length, bins));
      continue;
    }
    const bin = Math.floor(a * perLength);
    // Nearly all lie within one bin.
    if (bin < bins && b <= (bin + 1) * length) time[at + bin * activities] += b - a;
    else addLong(time, at, a, b, length, bins);
  }
}

// A row is a list of threads whose times are summed. `busy`: only the time in which they ran, or waited for a CPU or
// the GIL.
export function densities(model: Model, query: Query,
  { rows, busy, ...range }: { rows: number[][]; busy?: boolean } & Range): Densities
{
  const { bins } = range;
  const selection = model.select(query);
  const time = new Float32Array(rows.length * bins * activities);
  const below = busy ? Activity.blocked : activities;
  rows.forEach((threads, row) => {
    for (const thread of threads)
      addParts(model, selection, thread, range, { time, row: row * bins * activities, below, rowOfCpu: null });
  });
  return { bins, time };
}

// The CPUs that threads ran on, and a row for each: only running time, since that is all a CPU sees. Between two
// samples a thread may have run on two CPUs; its time counts for the one on which it was last seen.
export function cpus(model: Model, query: Query, range: Range): Densities & { numbers: Uint32Array } {
  const numbers = model.cpuNumbers;
  const { bins } = range;
  const selection = model.select(query);
  const time = new Float32Array(numbers.length * bins * activities);
  const rowOfCpu = new Int32Array(numbers.reduce((most, number) => Math.max(most, number + 2), 1)).fill(-activities);
  numbers.forEach((number, row) => (rowOfCpu[number + 1] = row * bins * activities));
  for (let thread = 0; thread < model.recording.catalogue.threads.length; ++thread)
    addParts(model, selection, thread, range, { time, row: 0, below: Activity.runnable, rowOfCpu });
  return { bins, time, numbers: numbers.slice() };
}
