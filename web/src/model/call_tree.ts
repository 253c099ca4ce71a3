// Call trees of a whole recording. The shape is built once; a filter is a new column over it. Nodes are in depth-first
// order, so the descendants of a node are the range node + 1 to end[node]. Siblings are ordered by label. No DOM.
import { Numbers } from "./columns";
import { Column, Shape } from "./tree";

export interface CallTree extends Shape {
  end: Uint32Array;
  outermost: Uint8Array; // 1: no ancestor has the same label
  owner: Uint32Array; // the innermost Python frame's node; in a stack without one the node itself
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
  const open = new Uint32Array(highest + 1); // by label: ancestors that have it
  const path: number[] = []; // by depth: nodes from the root to the previous one
  const close = (until: number, at: number) => {
    while (path.length > until) {
      const node = path.pop() as number;
      end[node] = at;
      --open[label[node]];
    }
  };
  for (let node = 0; node < count; ++node) {
    const level = depth[node];
    if (level > path.length || (level === 0) !== (node === 0))
      throw new Error("the page's data is damaged: a node without a parent");
    const before = level < path.length ? path[level] : 0; // the previous sibling
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

// `isPython`, `hidesPython`: by label. Time in native code also belongs to the Python function that it is beneath. Time in a
// Python function that was not read belongs to no other one.
export function findOwners({ parent, label, owner }: CallTree, isPython: (label: number) => boolean,
  hidesPython: (label: number) => boolean = () => false): void
{
  const inPython = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; ++node) {
    const above = parent[node];
    const python = isPython(label[node]);
    const unread = !python && hidesPython(label[node]);
    inPython[node] = python || (inPython[above] && !unread) ? 1 : 0;
    owner[node] = python || unread || !inPython[above] ? node : owner[above];
  }
}

// The same tree with other labels; siblings whose labels become equal are merged. `of`: the new label of an old one,
// never decreasing. `nodeOf`: the new node of each old one.
export function relabelled(tree: CallTree, of: ArrayLike<number>): { tree: CallTree; nodeOf: Uint32Array } {
  const count = tree.parent.length;
  const met = new Uint32Array(count); // by old node: the new one, numbered as encountered
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
    for (slot = (slot ^ (slot >>> 15)) & (size - 1);; slot = (slot + 1) & (size - 1)) {
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

// By key, stable: a counting sort.
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

// Parents come before children, so one pass from the end sums everything up.
export function sumUp(tree: Shape, self: Float64Array): Float64Array {
  const total = Float64Array.from(self);
  const { parent } = tree;
  for (let node = total.length - 1; node > 0; --node) total[parent[node]] += total[node];
  return total;
}

export function columnOf(tree: Shape, self: Float64Array, counts: Float64Array): Column {
  return { self, total: sumUp(tree, self), samples: sumUp(tree, counts) };
}

// A node as the address has it: the labels that lead to it, without the root.
export function pathTo(tree: Shape, node: number): number[] {
  const path: number[] = [];
  for (; node !== 0; node = tree.parent[node]) path.unshift(tree.label[node]);
  return path;
}

// Follows the path as far as the tree has it. 0: not even its first label.
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

// The same for a path as text, as in the address: "3.17.4"; the root for any other text.
export const nodeOfText = (tree: Shape, path: string) =>
  nodeAlong(tree, /^\d+(\.\d+)*$/.test(path) ? path.split(".").map(Number) : []);
