// Native code beneath Python, as in view/stack_places.cpp. No DOM.
import { Recording } from "./recording";
import { Kind } from "./tree";

// By node of the tree by line: the innermost native function beneath the innermost Python function; 0: none.
export function nativesBeneath({ catalogue, lines }: Recording): Uint32Array {
  const { kind } = catalogue.functions;
  const out = new Uint32Array(lines.parent.length);
  const python = new Uint8Array(out.length); // 1: has a Python frame
  for (let node = 1; node < out.length; ++node) {
    const f = catalogue.places.function[lines.label[node]];
    const above = lines.parent[node];
    python[node] = kind[f] === Kind.python || python[above] ? 1 : 0;
    if (kind[f] !== Kind.python) out[node] = kind[f] === Kind.native && python[above] ? f : out[above];
  }
  return out;
}
