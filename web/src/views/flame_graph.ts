// The merged flame graph: stacks with the same outer frames share boxes.
import { button, element, setContent, setDisabled, setText } from "../page/dom";
import { CallTree, nodeOfText, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { By, isAwait, unitOf } from "../model/head";
import { Column, isWithin, Label } from "../model/tree";
import { Layout } from "../layout/flame";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { arrowKeys } from "./parts/arrow_keys";
import { colourBar, fills } from "./parts/colours";
import { Flame, FlameCanvas, leftOutWords } from "./parts/flame_canvas";
import { frameTip } from "./parts/frame_tip";
import { Latest } from "./parts/latest";
import { HoverWaits } from "./parts/hover_waits";
import { Key, MenuItem, Page, Picture, Showing, View } from "./view";

const name = "flame";

interface Drawn {
  by: By;
  tree: CallTree;
  column: Column;
  labels: Label[];
  flame: Flame;
  key: string; // the question
}

class FlameGraph implements Showing {
  readonly element: HTMLElement;
  private readonly latest = new Latest<[CallTree, Column]>();
  private readonly turn = button("", () => this.flip(), { class: "turn" });
  private readonly back = button("Back", () => this.stepBack(), { title: "One zoom back (Esc)" });
  private readonly reset = button("Reset zoom", () => this.zoomTo(0), { title: "Home" });
  private readonly only = button("Only this", () => this.itemsOf(this.canvas.zoom)[0]?.run(), {
    title: "Only stacks through the zoomed function",
  });
  private readonly without = button("Without this", () => this.itemsOf(this.canvas.zoom)[1]?.run(), {
    title: "Without stacks through the zoomed function",
  });
  private readonly zoomWords = element("span", { class: "zoomed", "aria-live": "polite" });
  private readonly notes = element("span", "notes");
  private readonly colours = colourBar(this.page);
  private readonly canvas = new FlameCanvas(this.page, "Flame graph", {
    zoom: (node) => this.zoomTo(node),
    menu: (node, x, y) => this.openMenu(node, x, y),
    upward: () => this.isFlame,
    shown: (done) => this.drawWords(done),
  });
  private readonly waits = new HoverWaits(this.page);
  private drawn: Drawn | null = null;
  private hitsOf: Page["matches"] = null;
  private trail: string[] = []; // previous zooms, as in the address

  constructor(private readonly page: Page) {
    const { turn, back, reset, only, without, colours, zoomWords, notes, canvas } = this;
    this.element = element("section", { class: "flame", "aria-label": "Flame graph" },
      element("div", "toolbar", turn, back, reset, only, without, colours.element, zoomWords, notes), canvas.element);
  }

  readonly keys: Key[] = [
    ...arrowKeys("move from frame to frame", (key) => this.canvas.move(key)),
    { on: "Enter", shown: "Enter", meaning: "zoom into the frame",
      run: () => this.canvas.cursor >= 0 && this.zoomTo(this.canvas.cursor) },
    { on: "Escape", shown: "Esc", meaning: "one step back", run: () => this.stepBack() },
    { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => this.zoomTo(0) },
    { on: "m", shown: "m", meaning: "menu of the frame", run: () => this.canvas.openMenu() },
    { on: "n", shown: "n  N", meaning: "next, previous match", run: () => this.canvas.step(1) },
    { on: "N", shown: "", meaning: "", run: () => this.canvas.step(-1) },
    { on: "i", shown: "i", meaning: "root on top or at the bottom", run: () => this.flip() },
    { on: "c", shown: "c", meaning: "copy the frame's name", run: () => this.copyName() },
  ];

  show(): void {
    const { page, drawn, key } = this;
    const { by, weight } = page.state;
    if (drawn && drawn.by !== by) this.canvas.cursor = -1;
    this.latest.ask(key, () => Promise.all([page.shape(by), page.ask("column", { by, weight })]),
      ([tree, column]) => this.use(by, tree, column));
    // Otherwise an answer is pending: until it is drawn, picture and texts stay as they are.
    if (this.drawn?.key === key) this.refresh(false);
  }

  pictures(): Picture[] {
    const words = [this.zoomWords.textContent, this.notes.textContent].filter((text) => text).join(". ");
    return this.canvas.pictures("flame graph", words, this.colours.legend());
  }

  private get isFlame(): boolean {
    return own(this.page.state, name, "turn") === "flame";
  }

  private get key(): string {
    const { filters, show, by, weight } = this.page.state;
    return JSON.stringify([filters, show, by, weight]);
  }

  private amount(value: number): string {
    return weightWords(value, unitOf(this.page.catalogue.head, this.page.state.weight));
  }

  private get isAwait(): boolean {
    return isAwait(this.page.catalogue.head, this.page.state.weight);
  }

  // ---- an answer ------------------------------------------------------------------------------------------------
  private use(by: By, tree: CallTree, column: Column): void {
    const { page } = this;
    const labels = page.labels(by);
    const flame: Flame = {
      tree,
      total: column.total,
      labels,
      hits: new Uint8Array(labels.length),
      fill: fills(page, tree, labels, column.self),
      tip: (node) => this.tipOf(node),
      spoken: (node) =>
        [labels[tree.label[node]].name, shareWords(column.total[node], column.total[0]),
          this.amount(column.total[node])].join(", "),
    };
    this.drawn = { by, tree, column, labels, flame, key: this.key };
    this.refresh(true);
    page.drawn();
  }

  // After any change: the tree is the same, the selection may not be.
  private refresh(fresh: boolean): void {
    if (!this.drawn) return;
    const { page: { matches, catalogue } } = this;
    const { tree, column, by, flame, labels } = this.drawn;
    let zoom = nodeOfText(tree, own(this.page.state, name, "zoom"));
    // A frame that the filters leave without weight has no width.
    while (zoom !== 0 && column.total[zoom] <= 0) zoom = tree.parent[zoom];
    if (fresh || matches !== this.hitsOf) {
      for (let id = 1; id < flame.hits.length; ++id)
        flame.hits[id] = matches ? matches.functions[functionOf(catalogue, by, id)] : 0;
      this.hitsOf = matches;
    }
    flame.fill = fills(this.page, tree, labels, column.self);
    this.colours.show();
    this.canvas.show(flame, zoom, fresh);
  }

  private drawWords(done: Layout): void {
    const { tree, column: { total, samples }, labels } = this.drawn as Drawn;
    const { zoom } = this.canvas;
    setText(this.turn, this.isFlame ? "Root on top" : "Root at the bottom");
    setDisabled([this.reset, this.back, this.only, this.without], zoom === 0);
    const called = labels[tree.label[zoom]].name;
    const counted = this.isAwait ? "" : `, ${countWords(samples[zoom])} samples`;
    const words = `: ${shareWords(total[zoom], total[0])} of what is shown, ${this.amount(total[zoom])}${counted}`;
    setContent(this.zoomWords, zoom ? called + words : "",
      () => (zoom ? ["Zoomed into ", element("b", {}, called), words] : []));
    setText(this.notes, leftOutWords(done, (weight) => shareWords(weight, total[0])));
  }

  private tipOf(node: number): Node {
    const { tree, column: { total, self, samples }, labels, key } = this.drawn as Drawn;
    const { zoom } = this.canvas;
    const facts: [string, ...string[]][] = [["share of what is shown", shareWords(total[node], total[0])]];
    if (zoom && isWithin(tree, node, zoom))
      facts.push(["share of the zoomed frame", shareWords(total[node], total[zoom])]);
    facts.push(["time", this.amount(total[node])], ["of it in its own code", this.amount(self[node])]);
    if (!this.isAwait) facts.push(["samples", countWords(samples[node])]);
    const tip = frameTip(labels[tree.label[node]], facts);
    if (key === this.key)
      tip.append(...this.waits.of(key, { by: this.page.state.by, node }, () => this.canvas.hover.again()));
    return tip;
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  private zoomText(node: number): string {
    return pathTo((this.drawn as Drawn).tree, node).join(".");
  }

  private zoomTo(node: number): void {
    const { page, canvas } = this;
    if (!this.drawn || node === canvas.zoom) return;
    this.trail = node === 0 ? [] : [...this.trail, this.zoomText(canvas.zoom)];
    canvas.cursor = node;
    canvas.hover.away();
    page.change(withOwn(page.state, name, "zoom", this.zoomText(node)));
  }

  private stepBack(): void {
    const { page, canvas } = this;
    if (page.state.search) return page.change({ search: "" }, "aside");
    if (!canvas.zoom) return canvas.leave();
    page.change(withOwn(page.state, name, "zoom", this.trail.pop() ?? ""));
  }

  private flip(): void {
    this.page.change(withOwn(this.page.state, name, "turn", this.isFlame ? "" : "flame"));
    this.canvas.scrollToRoot();
  }

  private itemsOf(node: number): MenuItem[] {
    return this.drawn ? this.page.frameItems(this.drawn.by, pathTo(this.drawn.tree, node)) : [];
  }

  private openMenu(node: number, x: number, y: number): void {
    if (!this.drawn || node <= 0) return;
    this.page.menu([{ text: "Zoom into it", run: () => this.zoomTo(node) }, ...this.itemsOf(node)], x, y);
  }

  private copyName(): void {
    const { drawn, canvas: { cursor } } = this;
    if (drawn && cursor > 0) this.page.copy(drawn.labels[drawn.tree.label[cursor]].full);
  }
}

export const flameGraph: View = { name, title: "Flame graph", place: "main", create: (page) => new FlameGraph(page) };
