// A small tree built for one answer: callers, callees, bottom-up. Finds children by label while it grows. No DOM.
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

  // `labels`: their number.
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

  // Depth first, heaviest sibling first.
  finish(): SmallTree {
    const children: number[][] = []; // by node, for those with children
    for (let node = 1; node < this.parent.length; ++node) (children[this.parent[node]] ??= []).push(node);
    const order: number[] = [];
    const depth: number[] = [];
    const open: [number, number][] = [[0, 0]];
    for (let next = open.pop(); next; next = open.pop()) {
      const [node, level] = next;
      order.push(node);
      depth.push(level);
      const beneath = children[node] ?? [];
      if (beneath.length > 1) beneath.sort((a, b) => this.total[a] - this.total[b] || this.label[b] - this.label[a]);
      for (const child of beneath) open.push([child, level + 1]);
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
  at: ArrayLike<number>; // the call tree nodes it represents
  weights: ArrayLike<number>;
  counts: ArrayLike<number>;
}

// Grows callers outward from a node. A node below `least` is not grown further: it is too narrow to see, and a million
// stacks have many of those. The arrays are allocated once, not for each step.
export class CallerGrowth {
  private readonly weight: Float64Array; // by node of the call tree, in the current step
  private readonly counts: Float64Array;
  private readonly next: Int32Array; // another node with the same label; -1: the last; -2: not met in this step
  private readonly firstOf: Int32Array; // by label: one of its nodes; -1: none in this step

  constructor(private readonly growing: GrowingTree, private readonly tree: CallTree, labels: number) {
    const nodes = tree.parent.length;
    [this.weight, this.counts, this.next] = [new Float64Array(nodes), new Float64Array(nodes),
      new Int32Array(nodes).fill(-2)];
    this.firstOf = new Int32Array(labels).fill(-1);
  }

  // `from.node` represents the nodes `from.at` with their weights. `path`: labels to follow first.
  grow(from: Front, least: number, path: readonly number[] = []): void {
    const { growing } = this;
    const fronts = [{ ...from, step: 0 }];
    for (let front = fronts.pop(); front; front = fronts.pop()) {
      const wanted = path[front.step];
      for (const label of this.callersOf(front)) {
        const child = wanted === undefined || label === wanted ? growing.child(front.node, label) : -1;
        const next = this.taken(label, child, front.step + 1);
        if (child >= 0 && (wanted !== undefined || growing.total[child] >= least)) fronts.push(next);
      }
    }
  }

  // Adds up each caller's weight by node; returns the callers' labels.
  private callersOf({ node, at, weights, counts }: Front): number[] {
    const { parent, label } = this.tree;
    const met: number[] = [];
    for (let i = 0; i < at.length; ++i) {
      const above = parent[at[i]];
      if (above === 0) {
        this.growing.self[node] += weights[i];
        continue;
      }
      if (this.next[above] === -2) {
        const name = label[above];
        if (this.firstOf[name] === -1) met.push(name);
        this.next[above] = this.firstOf[name];
        this.firstOf[name] = above;
      }
      this.weight[above] += weights[i];
      this.counts[above] += counts[i];
    }
    return met;
  }

  // Moves the nodes of one label into a new front, added to node `child` of the growing tree (none if negative).
  private taken(label: number, child: number, step: number): Front & { step: number } {
    const { growing, weight, counts, next } = this;
    const front = { node: child, at: [] as number[], weights: [] as number[], counts: [] as number[], step };
    for (let node = this.firstOf[label], after = 0; node >= 0; node = after) {
      if (child >= 0) {
        front.at.push(node);
        front.weights.push(weight[node]);
        front.counts.push(counts[node]);
        growing.total[child] += weight[node];
        growing.samples[child] += counts[node];
      }
      after = next[node];
      weight[node] = counts[node] = 0;
      next[node] = -2;
    }
    this.firstOf[label] = -1;
    return front;
  }
}
