// The call tree as the page uses it: columns of numbers indexed by node. Parents come before children, node 0 is "all",
// children keep the exporter's order (by name). No DOM.

export const enum Kind {
  python = 0,
  native = 1,
  kernel = 2,
  marker = 3,
}

// Whether a native function's module is a Python interpreter, whose own C counts as Python: exporters/flame_colours.cpp
// has the same rule.
export const isInterpreter = (module: string) => /^(?:lib)?python(?:\d|$)/.test(module);

export interface Label {
  name: string;
  full: string; // with namespaces and template arguments; equal to name if there are none
  file: string;
  line: number;
  module: string;
  kind: Kind;
}

// Written by exporters/flame_picture.cpp. `labels` rows are [name, index into files, line, index into modules, kind],
// and the full name if it differs.
export interface TreeData {
  files: string[];
  modules: string[];
  labels: [string, number, number, number, number, string?][];
  parent: number[];
  label: number[];
  self: number[];
  samples: number[];
  // The same by what threads did: for the other widths that a user can choose.
  parts?: Record<Doing, { self: number[]; samples: number[] }>;
  // The other recording of a difference; changes: -5 (shrank) to 5 (grew), 0 for no certain difference.
  before?: { self: number[]; samples: number[]; changes: number[] };
}

export type Doing = "computing" | "waiting" | "waiting_for_work" | "waiting_for_others" | "waiting_unknown";
export type Show = "work" | "computing" | "waiting" | "everything";

// Which time is shown, in the words of --show.
export const shown: Record<Show, Doing[]> = {
  work: ["computing", "waiting", "waiting_unknown"],
  computing: ["computing"],
  waiting: ["waiting", "waiting_for_work", "waiting_for_others", "waiting_unknown"],
  everything: ["computing", "waiting", "waiting_for_work", "waiting_for_others", "waiting_unknown"],
};

export interface Column {
  self: Float64Array;
  total: Float64Array;
  samples: Float64Array; // including descendants
}

// What geometry and search need of any tree.
export interface Shape {
  parent: Uint32Array;
  label: Uint32Array;
  depth: Uint32Array;
  firstChild: Uint32Array; // 0: none, since the root is never a child
  nextSibling: Uint32Array;
}

export interface Tree extends Shape {
  labels: Label[];
  weights: Column;
  shows: Record<Show, Column> | null; // null: no choice
  before: Column | null; // the other recording of a difference
  changes: Int8Array | null;
}

function column(parent: Uint32Array, self: number[], samples: number[]): Column {
  const total = Float64Array.from(self);
  for (let node = total.length - 1; node > 0; --node) total[parent[node]] += total[node];
  return { self: Float64Array.from(self), total, samples: Float64Array.from(samples) };
}

function showColumns(parent: Uint32Array, parts: TreeData["parts"]): Tree["shows"] {
  if (!parts) return null;
  const sum = (show: Show): Column => {
    const add = (key: "self" | "samples") =>
      Array.from(parent, (_, node) => shown[show].reduce((all, doing) => all + parts[doing][key][node], 0));
    return column(parent, add("self"), add("samples"));
  };
  return { work: sum("work"), computing: sum("computing"), waiting: sum("waiting"), everything: sum("everything") };
}

export function decodeTree(data: TreeData): Tree {
  const count = data.parent.length;
  const parent = Uint32Array.from(data.parent);
  const depth = new Uint32Array(count);
  const firstChild = new Uint32Array(count);
  const nextSibling = new Uint32Array(count);
  const lastChild = new Uint32Array(count);
  for (let node = 1; node < count; ++node) {
    const above = parent[node];
    depth[node] = depth[above] + 1;
    if (lastChild[above]) nextSibling[lastChild[above]] = node;
    else firstChild[above] = node;
    lastChild[above] = node;
  }
  return {
    labels: data.labels.map(([name, file, line, module, kind, full]) => ({
      name,
      full: full || name,
      file: data.files[file],
      line,
      module: data.modules[module],
      kind,
    })),
    parent,
    label: Uint32Array.from(data.label),
    depth,
    firstChild,
    nextSibling,
    weights: column(parent, data.self, data.samples),
    shows: showColumns(parent, data.parts),
    before: data.before ? column(parent, data.before.self, data.before.samples) : null,
    changes: data.before ? Int8Array.from(data.before.changes) : null,
  };
}

export function labelOf(tree: Tree, node: number): Label {
  return tree.labels[tree.label[node]];
}

// "/app/main.py:12", or "" where there is no file.
export function placeOf(label: Label): string {
  return label.file && label.line ? `${label.file}:${label.line}` : label.file;
}

export function isWithin(tree: Shape, node: number, above: number): boolean {
  while (tree.depth[node] > tree.depth[above]) node = tree.parent[node];
  return node === above;
}
