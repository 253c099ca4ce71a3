// Call trees of a whole recording: their shape is made once, a filter is a new column over it. Nodes are in depth-first order,
// so that what lies beneath a node is the range node + 1 to end[node]. Siblings are in the order of their labels. No DOM.
import { Numbers } from "./columns";
import { Column, Shape } from "./tree";

export interface CallTree extends Shape {
  end: Uint32Array;
  outermost: Uint8Array; // 1: no node above has the same label
  owner: Uint32Array; // the node of the innermost Python frame; of a stack without one the node itself
}

// From the depths of nodes in depth-first order.
export function callTree(depths: Numbers, labels: Numbers): CallTree {
  const count = depths.length;
  const tree: CallTree = {
    parent: new Uint32Array(count),
    label: Uint32Array.from(labels),
    depth: Uint32Array.from(depths),
    firstChild: new Uint32Array(count),
    nextSibling: new Uint32Array(count),
    end: new Uint32Array(count),
    outermost: new Uint8Array(count),
    owner: Uint32Array.from({ length: count }, (_, node) => node),
  };
  const { parent, label, depth, firstChild, nextSibling, end, outermost } = tree;
  let highest = 0;
  for (let i = 0; i < count; ++i) highest = Math.max(highest, label[i]);
  const open = new Uint32Array(highest + 1); // nodes above with that label
  const path: number[] = []; // nodes from the root to the one before, by depth
  const close = (until: number, at: number) => {
    while (path.length > until) {
      const node = path.pop() as number;
      end[node] = at;
      --open[label[node]];
    }
  };
  for (let node = 0; node < count; ++node) {
    const level = depth[node];
    if (level > path.length || (level === 0) !== (node === 0)) throw new Error("the page's data is damaged: a node without a parent");
    const before = level < path.length ? path[level] : 0; // the sibling before
    close(level, node);
    if (node > 0) {
      parent[node] = path[level - 1];
      if (before) nextSibling[before] = node;
      else firstChild[parent[node]] = node;
    }
    outermost[node] = open[label[node]] === 0 ? 1 : 0;
    ++open[label[node]];
    path.push(node);
  }
  close(0, count);
  return tree;
}

// `isPython`: by label. Time in native code is that of the Python function that it is beneath, when somebody asks where it is.
export function findOwners({ parent, label, owner }: CallTree, isPython: (label: number) => boolean): void {
  const inPython = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; ++node) {
    const above = parent[node];
    const python = isPython(label[node]);
    inPython[node] = python || inPython[above] ? 1 : 0;
    owner[node] = python || !inPython[above] ? node : owner[above];
  }
}

// The same tree with other labels, of which siblings may share one: those become one node. `of`: the new label of an old one,
// never falling. Gives for each node of the old tree the one of the new.
export function relabelled(tree: CallTree, of: ArrayLike<number>): { tree: CallTree; nodeOf: Uint32Array } {
  const count = tree.parent.length;
  const met = new Uint32Array(count); // by node of the old tree: the new one, numbered as met
  const parent = new Uint32Array(count);
  const label = new Uint32Array(count);
  let made = 1;
  // Open addressing over (parent, label), at most half full.
  let size = 16;
  while (size < 2 * count) size *= 2;
  const table = new Uint32Array(size);
  for (let node = 1; node < count; ++node) {
    const above = met[tree.parent[node]];
    const name = of[tree.label[node]];
    let slot = Math.imul(Math.imul(above, 0x9e3779b1) ^ name, 0x85ebca6b) >>> 0;
    for (slot = (slot ^ (slot >>> 15)) & (size - 1); ; slot = (slot + 1) & (size - 1)) {
      const known = table[slot];
      if (known === 0) {
        table[slot] = made;
        parent[made] = above;
        label[made] = name;
        met[node] = made++;
        break;
      }
      if (parent[known] === above && label[known] === name) {
        met[node] = known;
        break;
      }
    }
  }
  const { order, depth } = depthFirst(parent.subarray(0, made), label.subarray(0, made));
  const place = new Uint32Array(made);
  for (let i = 0; i < made; ++i) place[order[i]] = i;
  const nodeOf = met.map((node) => place[node]);
  return { tree: callTree(depth, Uint32Array.from(order, (node) => label[node])), nodeOf };
}

// Nodes of any numbering (parents before children), depth first, siblings by label.
function depthFirst(parent: Uint32Array, label: Uint32Array): { order: Uint32Array; depth: Uint32Array } {
  const count = parent.length;
  const byLabel = sorted(Uint32Array.from(parent.keys()), label);
  const head = new Uint32Array(count); // first child and next sibling; 0: none
  const next = new Uint32Array(count);
  for (let i = count - 1; i >= 0; --i) {
    const node = byLabel[i];
    if (node === 0) continue;
    next[node] = head[parent[node]];
    head[parent[node]] = node;
  }
  const order = new Uint32Array(count);
  const depth = new Uint32Array(count);
  let node = 0;
  let level = 0;
  for (let i = 0; i < count; ++i) {
    order[i] = node;
    depth[i] = level;
    if (head[node]) {
      node = head[node];
      ++level;
      continue;
    }
    while (node !== 0 && !next[node]) {
      node = parent[node];
      --level;
    }
    node = next[node];
  }
  return { order, depth };
}

// By key, equal keys in their order: a counting sort.
function sorted(items: Uint32Array, key: Uint32Array): Uint32Array {
  let highest = 0;
  for (let i = 0; i < items.length; ++i) highest = Math.max(highest, key[items[i]]);
  const start = new Uint32Array(highest + 2);
  for (let i = 0; i < items.length; ++i) ++start[key[items[i]] + 1];
  for (let i = 0; i <= highest; ++i) start[i + 1] += start[i];
  const out = new Uint32Array(items.length);
  for (let i = 0; i < items.length; ++i) out[start[key[items[i]]]++] = items[i];
  return out;
}

// Parents come before children: one pass from the end adds everything up.
export function sumUp(tree: Shape, self: Float64Array): Float64Array {
  const total = Float64Array.from(self);
  const { parent } = tree;
  for (let node = total.length - 1; node > 0; --node) total[parent[node]] += total[node];
  return total;
}

export function columnOf(tree: Shape, self: Float64Array, looks: Float64Array): Column {
  return { self, total: sumUp(tree, self), samples: sumUp(tree, looks) };
}

// Frames of addresses: a node as the labels that lead to it, the root left out.
export function pathTo(tree: Shape, node: number): number[] {
  const path: number[] = [];
  for (; node !== 0; node = tree.parent[node]) path.unshift(tree.label[node]);
  return path;
}

// As far as the tree goes along. 0: not even the first.
export function nodeAlong(tree: Shape, path: readonly number[]): number {
  let node = 0;
  for (const label of path) {
    let child = tree.firstChild[node];
    while (child && tree.label[child] !== label) child = tree.nextSibling[child];
    if (!child) break;
    node = child;
  }
  return node;
}
