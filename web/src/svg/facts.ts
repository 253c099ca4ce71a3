// Properties of a picture and its frames: the column that makes the widths, colours, texts of the tip and of what is
// omitted. All text that the script draws is from here. No DOM.
import { colourClass, differenceClass } from "../colours";
import { defaultOptions, Layout, LeftOut } from "../layout/flame";
import { Column, isWithin, Kind, labelOf, Show, Tree, TreeData } from "../model/tree";
import { countWords, pointsWords, shareWords, Unit, weightWords } from "../words";
import { State } from "./fragment";

// Written into the file by exporters/svg.cpp.
export interface Picture {
  title: string;
  subtitle: string;
  quality: string[];
  warning: string;
  unit: Unit;
  show?: Show; // where the tree has parts: the choice made
  leftOut?: string; // text: what that omits
  pruned: { frames: number; weight: number };
  tree: TreeData;
}

export interface FactRow {
  cells: string[]; // the name, then the values
  className?: string;
}

const several = (count: number) => `${countWords(count)} ${count === 1 ? "frame" : "frames"}`;
const shareOf = (columns: Column, node: number) => (columns.total[0] > 0 ? columns.total[node] / columns.total[0] : 0);

// Frames of `before` that `after` does not have; weight: of the outermost.
function vanishedOf(tree: Tree): LeftOut {
  const vanished = { frames: 0, weight: 0 };
  for (let node = 1; tree.before && node < tree.label.length; ++node) {
    if (tree.weights.total[node] > 0 || tree.before.total[node] <= 0) continue;
    ++vanished.frames;
    if (tree.weights.total[tree.parent[node]] > 0) vanished.weight += tree.before.total[node];
  }
  return vanished;
}

export class Facts {
  readonly difference: boolean;
  readonly vanished: LeftOut;

  constructor(readonly picture: Picture, readonly tree: Tree) {
    this.difference = tree.before !== null;
    this.vanished = vanishedOf(tree);
  }

  showing(state: State): Show {
    return state.show || this.picture.show || "everything";
  }

  // The column that makes the widths.
  column(state: State): Column {
    const { before, shows, weights } = this.tree;
    return state.widths === "before" && before ? before : shows ? shows[this.showing(state)] : weights;
  }

  // For a difference; -5 (shrank) to 5 (grew).
  step(node: number): number {
    return this.tree.changes ? this.tree.changes[node] : 0;
  }

  classOf(node: number): string {
    if (node === 0) return "m";
    return this.difference ? differenceClass(this.step(node)) : colourClass(labelOf(this.tree, node));
  }

  weightOf(columns: Column, node: number): string {
    return weightWords(columns.total[node], this.picture.unit);
  }

  // The modules with most self time, greatest first, with their colours.
  greatestModules(columns: Column, most: number): { module: string; self: number; className: string }[] {
    const modules = new Map<string, { self: number; className: string }>();
    for (let node = 1; node < this.tree.label.length; ++node) {
      const label = labelOf(this.tree, node);
      if (!label.module || (label.kind !== Kind.python && label.kind !== Kind.native)) continue;
      const entry = modules.get(label.module) || { self: 0, className: colourClass(label).slice(0, -1) + "a" };
      entry.self += columns.self[node];
      modules.set(label.module, entry);
    }
    const greatest = Array.from(modules).filter(([, entry]) => entry.self > 0).sort((a, b) => b[1].self - a[1].self);
    return greatest.slice(0, most).map(([module, entry]) => ({ module, ...entry }));
  }

  // The numbers of one frame, as table rows.
  rowsOf(state: State, node: number): FactRow[] {
    return this.tree.before ? this.rowsOfDifference(this.tree.before, node) : this.rowsOfOne(state, node);
  }

  private rowsOfDifference(before: Column, node: number): FactRow[] {
    const after = this.tree.weights;
    const step = this.step(node);
    const rows: FactRow[] = [
      { cells: ["", "before", "after"] },
      {
        cells: ["share of all", shareWords(before.total[node], before.total[0]),
          shareWords(after.total[node], after.total[0])],
      },
      { cells: [this.weightName(), this.weightOf(before, node), this.weightOf(after, node)] },
      { cells: ["samples", countWords(before.samples[node]), countWords(after.samples[node])] },
      { cells: ["change", "", pointsWords(shareOf(after, node) - shareOf(before, node))],
        className: step > 0 ? "up" : step < 0 ? "down" : "" },
    ];
    if (node !== 0 && step === 0) rows.push({ cells: ["", "", "not seen to differ"] });
    return rows;
  }

  private rowsOfOne(state: State, node: number): FactRow[] {
    const columns = this.column(state);
    const total = columns.total;
    const rows: FactRow[] = [{ cells: ["share of all", shareWords(total[node], total[0])] }];
    if (state.zoom && isWithin(this.tree, node, state.zoom))
      rows.push({ cells: ["share of the zoomed frame", shareWords(total[node], total[state.zoom])] });
    rows.push({ cells: [this.weightName(), this.weightOf(columns, node)] });
    if (node !== 0) rows.push({ cells: ["of it in its own code", weightWords(columns.self[node], this.picture.unit)] });
    rows.push({ cells: ["samples", countWords(columns.samples[node])] });
    return rows;
  }

  private weightName(): string {
    return this.picture.unit === "ns" ? "time" : "weight";
  }

  // Text: what the picture omits; "": nothing.
  leftOut(state: State, drawn: Layout): string {
    const total = this.column(state).total;
    const { narrow, deep } = drawn;
    const notes: string[] = [];
    if (narrow.frames)
      notes.push(
        `${several(narrow.frames)} narrower than ${drawn.minWidth} px (${shareWords(narrow.weight, total[0])})`,
      );
    if (deep.frames)
      notes.push(
        `${several(deep.frames)} deeper than ${defaultOptions.maxDepth} rows (${shareWords(deep.weight, total[0])})`,
      );
    let text = "";
    if (this.picture.leftOut && this.showing(state) === "work")
      text += `Not shown: ${this.picture.leftOut}; “Everything” has it. `;
    if (notes.length) text += `Left out of the picture: ${notes.join(" and ")}. Zoom in to see them.`;
    const { vanished, tree } = this;
    if (tree.before && vanished.frames && state.widths === "after")
      text += ` Vanished since: ${several(vanished.frames)} (${
        shareWords(vanished.weight, tree.before.total[0])
      } of before); press “Widths: after” to see them.`;
    const { pruned } = this.picture;
    if (pruned.frames)
      text += ` Not in this file: the ${countWords(pruned.frames)} smallest frames (${
        shareWords(pruned.weight, tree.weights.total[0])
      }).`;
    return text;
  }
}
