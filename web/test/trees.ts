// Trees by hand: "main;work 3", root first, children in the order of their names as the exporter promises.
import { decodeTree, Kind, Tree, TreeData } from "../src/model/tree";

interface Branch {
  self: number;
  before: number;
  children: Map<string, Branch>;
}

// A second number is the weight in the other recording.
export function treeData(lines: string[]): TreeData {
  const branch = (): Branch => ({ self: 0, before: 0, children: new Map() });
  const root = branch();
  let difference = false;
  for (const line of lines) {
    const [, path, first, second] = /^(?:(.*?) )?(\d+)(?: (\d+))?$/.exec(line) as RegExpExecArray;
    let at = root;
    for (const name of path ? path.split(";") : []) {
      if (!at.children.has(name)) at.children.set(name, branch());
      at = at.children.get(name) as Branch;
    }
    at.self += Number(first);
    if (second !== undefined) {
      difference = true;
      at.before += Number(second);
    }
  }
  const names = ["all"];
  const data: TreeData = { files: ["", "/app.py"], modules: ["", "app"], labels: [["all", 0, 0, 0, Kind.marker]],
    parent: [], label: [], self: [], samples: [] };
  const before: number[] = [];
  const open: [string, Branch, number][] = [["all", root, 0]];
  while (open.length) {
    const [name, at, parent] = open.shift() as [string, Branch, number];
    let label = names.indexOf(name);
    if (label < 0) {
      label = names.push(name) - 1;
      data.labels.push([name, 1, label, 1, Kind.python]);
    }
    const node = data.parent.push(parent) - 1;
    data.label.push(label);
    data.self.push(at.self);
    before.push(at.before);
    data.samples.push(at.self);
    for (const child of Array.from(at.children.keys()).sort())
      open.push([child, at.children.get(child) as Branch, node]);
  }
  if (difference) data.before = { self: before, samples: before, changes: before.map(() => 0) };
  return data;
}

export const treeOf = (...lines: string[]): Tree => decodeTree(treeData(lines));

// The first node with that name.
export function nodeNamed(tree: Tree, name: string): number {
  const node = Array.from(tree.label).findIndex((label) => tree.labels[label].name === name);
  if (node < 0) throw new Error(`no node ${name}`);
  return node;
}

// Small numbers that are the same in every run.
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 4294967296) * below);
  };
}

export function randomTree(seed: number): Tree {
  const random = randomNumbers(seed);
  const lines: string[] = [];
  for (let i = random(40) + 1; i > 0; --i) {
    const path = Array.from({ length: random(8) }, () => `f${random(4)}`).join(";");
    lines.push(`${path} ${random(1000) + 1}`.trim());
  }
  return treeOf(...lines);
}
