// The difference as flame graphs, merged or side by side: the colour of a frame is how it changed.
import { element } from "../page/dom";
import { CallTree, nodeOfText, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { By } from "../model/head";
import { ChangedTree } from "../model/questions/difference";
import { Label } from "../model/tree";
import { pointsWords, shareWords } from "../words";
import { DifferenceWords } from "./difference_words";
import { Flame, FlameCanvas, leftOutWords } from "./parts/flame_canvas";
import { frameTip } from "./parts/frame_tip";
import { Chosen } from "./parts/sides";
import { Page, Picture } from "./view";

type Side = "before" | "after";

// What is shown.
export interface Flames {
  by: By;
  labels: Label[];
  tree: CallTree;
  changed: ChangedTree;
  chosen: Chosen;
  zoom: string; // a path of labels, as in the address
  widths: Side | "both"; // both: side by side
}

const steps: [number, string][] = [[5, "more time"], [-5, "less"], [0, "not seen to differ"]];

export class DifferenceFlames {
  readonly notes = element("span", "notes");
  private readonly left = this.makeCanvas("Flame graph of the first side");
  private readonly right = this.makeCanvas("Flame graph of the second side");
  active = this.right; // has the keys
  private readonly heads = [element("p", "side-head"), element("p", "side-head")];
  private now: Flames | null = null;
  private zoom = 0; // the node
  private hits = new Uint8Array(0); // by label

  // `zoomed`: called with the path of a node.
  constructor(private readonly page: Page, private readonly words: DifferenceWords,
    private readonly zoomed: (path: string) => void)
  {}

  get isZoomed(): boolean {
    return this.zoom !== 0;
  }

  show(room: HTMLElement, now: Flames): void {
    const { catalogue, matches } = this.page;
    const { tree, labels, by, zoom: path, widths, chosen } = now;
    const fresh = this.now?.changed !== now.changed || this.now.widths !== widths;
    this.now = now;
    this.zoom = nodeOfText(tree, path);
    this.hits = Uint8Array.from(labels,
      (_, label) => (label && matches ? matches.functions[functionOf(catalogue, by, label)] : 0));
    const canvases = widths === "both" ? [this.left, this.right] : [this.right];
    const heads = this.heads.slice(-canvases.length);
    if (widths !== "both") this.active = this.right;
    if (room.childElementCount !== canvases.length || room.firstElementChild?.contains(canvases[0].element) !== true)
      room.replaceChildren(...canvases.map((canvas, i) => element("div", "side", heads[i], canvas.element)));
    canvases.forEach((canvas, i) => {
      heads[i].textContent = widths === "both" ? chosen.names[i] : "";
      heads[i].hidden = widths !== "both";
      const side = widths === "both" ? (i ? "after" : "before") : widths;
      canvas.show(this.flameOf(now, side), this.visible(now, side), fresh);
    });
  }

  // The zoomed node, or its innermost caller that this side has.
  private visible({ tree, changed }: Flames, side: Side): number {
    let at = this.zoom;
    while (at !== 0 && changed[side][at] <= 0) at = tree.parent[at];
    return at;
  }

  zoomTo(node: number): void {
    this.left.hover.away();
    this.right.hover.away();
    this.left.cursor = this.right.cursor = node;
    if (this.now) this.zoomed(pathTo(this.now.tree, node).join("."));
  }

  // The name of the frame under the keyboard; "": none.
  get activeName(): string {
    const { cursor } = this.active;
    return this.now && cursor > 0 ? this.now.labels[this.now.tree.label[cursor]].full : "";
  }

  legend(): Node[] {
    return steps.map(([step, text]) => {
      const box = element("i", "swatch");
      box.style.background = this.page.changeFill(step);
      return element("span", {}, box, text);
    });
  }

  pictures(names: [string, string], widths: Flames["widths"]): Picture[] {
    const entries = steps.map(([step, text]): [string, string] => [this.page.changeFill(step), text]);
    const words = `${names[0]} against ${names[1]}`;
    if (widths !== "both")
      return this.right.pictures("difference", `${words}; widths of the ${widths === "after" ? "second" : "first"}`,
        entries);
    return [...this.left.pictures("difference, first side", words, entries),
      ...this.right.pictures("difference, second side", words, entries)];
  }

  private makeCanvas(label: string): FlameCanvas {
    const { page } = this;
    const share = (weight: number) => shareWords(weight, canvas.flame ? canvas.flame.total[0] : 0);
    const canvas: FlameCanvas = new FlameCanvas(page, label, {
      zoom: (node) => this.zoomTo(node),
      menu: (node, x, y) => {
        if (!this.now || node <= 0) return;
        const { by, tree } = this.now;
        page.menu([{ text: "Zoom into it", run: () => this.zoomTo(node) }, ...page.frameItems(by, pathTo(tree, node))],
          x, y);
      },
      upward: () => false,
      shown: (done) => {
        this.notes.textContent = leftOutWords(done, share);
      },
    });
    canvas.element.addEventListener("focus", () => (this.active = canvas));
    return canvas;
  }

  private flameOf(now: Flames, side: Side): Flame {
    const { page, words, hits } = this;
    const { tree, labels, changed } = now;
    const { steps, before, after, difference, per } = changed;
    const change = (
      node: number,
    ) => (steps[node] || !node ? words.change(difference[node], per) : "not seen to differ");
    return {
      tree,
      total: changed[side],
      labels,
      hits,
      tip: (node) => this.tip(now, node),
      fill: (node) => (node === 0 ? page.fill(labels[0]) : page.changeFill(steps[node])),
      spoken: (node) =>
        [labels[tree.label[node]].name, shareWords(before[node], before[0]),
          `then ${shareWords(after[node], after[0])}`, change(node)].join(", "),
    };
  }

  private tip({ tree, labels, changed, chosen: { words: [first, second] } }: Flames, node: number): Node {
    const { words } = this;
    const { before, after, beforeSamples, afterSamples, difference, steps, per } = changed;
    const label = labels[tree.label[node]];
    const line = (word: string, part: Float64Array,
      samples: Float64Array): [string, ...string[]] => [word, shareWords(part[node], part[0]), words.time(part[node]),
      words.samples(samples[node])];
    const tip = frameTip(label, [
      line(first, before, beforeSamples),
      line(second, after, afterSamples),
      ["change", words.change(difference[node], per)],
      ["change of the share",
        pointsWords(before[0] && after[0] ? after[node] / after[0] - before[node] / before[0] : 0)],
    ]);
    const verdict = !steps[node] ?
      "Not seen to differ."
      : before[node] === 0 ?
      `New: nothing of it in ${first}.`
      : after[node] === 0
      ? `Vanished: nothing of it in ${second}.`
      : "";
    if (node && verdict) tip.append(element("div", "place", verdict));
    return tip;
  }
}
