// A small tree that is made for one answer: callers, callees, bottom-up. Children are found by label while it grows. No DOM.
import { CallTree, callTree } from "./call_tree";
import { Column } from "./tree";

export interface SmallTree extends CallTree, Column {}

export class GrowingTree {
  readonly parent: number[] = [0];
  readonly label: number[];
  readonly self: number[] = [0];
  readonly total: number[] = [0];
  readonly samples: number[] = [0];
  private readonly children = new Map<number, number>();

  // `labels`: how many there are.
  constructor(private readonly labels: number, rootLabel = 0) {
    this.label = [rootLabel];
  }

  child(parent: number, label: number): number {
    const key = parent * this.labels + label;
    let node = this.children.get(key);
    if (node === undefined) {
      node = this.parent.push(parent) - 1;
      this.children.set(key, node);
      this.label.push(label);
      this.self.push(0);
      this.total.push(0);
      this.samples.push(0);
    }
    return node;
  }

  // Depth first, the heaviest sibling first.
  finish(): SmallTree {
    const count = this.parent.length;
    const children: number[][] = Array.from({ length: count }, () => []);
    for (let node = 1; node < count; ++node) children[this.parent[node]].push(node);
    const order: number[] = [];
    const depth: number[] = [];
    const open: [number, number][] = [[0, 0]];
    for (let next = open.pop(); next; next = open.pop()) {
      const [node, level] = next;
      order.push(node);
      depth.push(level);
      children[node].sort((a, b) => this.total[a] - this.total[b] || this.label[b] - this.label[a]);
      for (const child of children[node]) open.push([child, level + 1]);
    }
    const column = (values: number[]) => Float64Array.from(order, (node) => values[node]);
    return {
      ...callTree(Uint32Array.from(depth), Uint32Array.from(order, (node) => this.label[node])),
      self: column(this.self),
      total: column(this.total),
      samples: column(this.samples),
    };
  }
}

interface Front {
  node: number; // of the growing tree
  at: number[]; // nodes of the call tree that it stands for
  weights: number[];
  looks: number[];
}

// Grows callers outward from `node`, which stands for the nodes `at` with their weights. What weighs less than `least` is not
// grown further: it is too narrow to be seen, and a million stacks have many of those. `path`: labels to go along first.
export function growCallers(growing: GrowingTree, tree: CallTree, from: Front, least: number, path: readonly number[] = []): void {
  const fronts = [{ ...from, step: 0 }];
  for (let front = fronts.pop(); front; front = fronts.pop()) {
    const groups = new Map<number, Map<number, [number, number]>>(); // by label, then by node of the call tree
    const { node } = front;
    for (let i = 0; i < front.at.length; ++i) {
      const above = tree.parent[front.at[i]];
      if (above === 0) {
        growing.self[node] += front.weights[i];
        continue;
      }
      const label = tree.label[above];
      let group = groups.get(label);
      if (!group) groups.set(label, (group = new Map()));
      const entry = group.get(above);
      if (entry) {
        entry[0] += front.weights[i];
        entry[1] += front.looks[i];
      } else {
        group.set(above, [front.weights[i], front.looks[i]]);
      }
    }
    const wanted = path[front.step];
    for (const [label, group] of groups) {
      if (wanted !== undefined && label !== wanted) continue;
      const child = growing.child(node, label);
      const next = { node: child, at: [] as number[], weights: [] as number[], looks: [] as number[], step: front.step + 1 };
      for (const [at, [weight, looks]] of group) {
        next.at.push(at);
        next.weights.push(weight);
        next.looks.push(looks);
        growing.total[child] += weight;
        growing.samples[child] += looks;
      }
      if (wanted !== undefined || growing.total[child] >= least) fronts.push(next);
    }
  }
}
