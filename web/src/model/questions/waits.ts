// Where threads wait: the function in which a thread was blocked longest, one of the program itself if the stack has
// one.
import { Query } from "../filters";
import { Model } from "../selection";
import { Activity } from "../states";
import { Kind } from "../tree";

export interface Waits {
  function: Uint32Array; // by requested thread; 0: it never waited
  wall: Float64Array; // ns there
}

// The standard library, which appears in every wait.
const library = /^<frozen |\/python3\.\d+t?\/(?!(site|dist)-packages\/)/;

// By node of the tree by function: the function reported as waiting when a stack ends there.
function waiting(model: Model): Uint32Array {
  const { catalogue, functions } = model.recording;
  const { kind, file } = catalogue.functions;
  const own = Uint8Array.from(kind, (k, f) => (k === Kind.python && !library.test(file[f]) ? 1 : 0));
  const out = new Uint32Array(functions.parent.length);
  const innermost = new Uint32Array(functions.parent.length); // Python, of the program or not
  const isOwn = new Uint8Array(functions.parent.length);
  for (let n = 1; n < out.length; ++n) {
    const f = functions.label[n];
    const above = functions.parent[n];
    innermost[n] = kind[f] === Kind.python ? f : innermost[above];
    isOwn[n] = own[f] | isOwn[above];
    out[n] = own[f] ? f : isOwn[above] ? out[above] : innermost[n] || f;
  }
  return out;
}

export function waits(model: Model, query: Query, { threads }: { threads: number[] }): Waits {
  const { first, interval, part } = model.select(query).passing;
  const { wall, node, activity } = model.recording.intervals;
  const { functionNode } = model.recording;
  const where = model.once("waiting", () => waiting(model));
  const out: Waits = { function: new Uint32Array(threads.length), wall: new Float64Array(threads.length) };
  const sums = new Float64Array(model.recording.catalogue.functions.name.length);
  threads.forEach((thread, row) => {
    const met: number[] = [];
    for (let k = first[thread]; k < first[thread + 1]; ++k) {
      const i = interval[k];
      if (activity[i] !== Activity.blocked) continue;
      const f = where[functionNode[node[i]]];
      if (sums[f] === 0) met.push(f);
      sums[f] += part ? part[k] : wall[i];
    }
    for (const f of met) {
      if (sums[f] > out.wall[row]) [out.function[row], out.wall[row]] = [f, sums[f]];
      sums[f] = 0;
    }
  });
  return out;
}
