// One function between who calls it and what it calls: every path into it, and where its time goes. Chosen from the list beside
// it, or from the menu of a frame in any view.
import { isAwait, unitOf } from "../model/head";
import { button, element } from "../page/dom";
import { functionOf } from "../model/catalogue";
import { nodeOfText, pathTo } from "../model/call_tree";
import { SmallTree } from "../model/growing_tree";
import { Sandwich } from "../model/questions/sandwich";
import { Table } from "../model/questions/table";
import { isWithin, Kind, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { arrowKeys } from "./parts/arrow_keys";
import { colourBar, fills } from "./parts/colours";
import { FlameCanvas, leftOutWords } from "./parts/flame_canvas";
import { frameTip } from "./parts/frame_tip";
import { Latest } from "./parts/latest";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./parts/row_table";
import { Key, Page, Picture, Showing, View } from "./view";

const name = "sandwich";
const title = "Callers and callees";
const leastShare = 0.0005; // of the function's total: a pixel of two thousand

// Zooms were of another function's trees.
function choice(page: Page, f: number): ReturnType<typeof withOwn> {
  const unzoomed = { ...page.state, ...withOwn(page.state, name, "callers", "") };
  return withOwn({ ...unzoomed, ...withOwn(unzoomed, name, "callees", "") }, name, "of", String(f));
}

type Side = "callers" | "callees";

// What both halves show.
interface Drawn {
  sandwich: Sandwich;
  whole: number; // of what is shown
}

// One of the two flame graphs.
class Half {
  readonly element: HTMLElement;
  readonly canvas: FlameCanvas;
  private readonly notes = element("span", "notes");
  private readonly back = button("Reset zoom", () => this.zoomTo(0), { title: "Home" });
  private drawn: Drawn | null = null;
  private readonly labels = this.page.labels("function");
  private readonly hits = new Uint8Array(this.labels.length);

  constructor(private readonly page: Page, private readonly side: Side, label: string, focused: () => void) {
    this.canvas = new FlameCanvas(page, label, {
      zoom: (node) => this.zoomTo(node),
      upward: () => side === "callers",
      menu: (node, x, y) =>
        page.menu([{ text: "Zoom into it", run: () => this.zoomTo(node) },
          ...page.frameItems("function", this.stackTo(node))], x, y),
      shown: (done) => {
        this.back.disabled = this.canvas.zoom === 0;
        this.notes.textContent = leftOutWords(done, (weight) => shareWords(weight, this.tree.total[0]));
      },
    });
    this.canvas.element.addEventListener("focus", focused);
    const heading = element("div", "toolbar", element("b", {}, label), this.back, this.notes);
    this.element = element("div", `half ${side}`, heading, this.canvas.element);
  }

  show(drawn: Drawn, fresh: boolean): void {
    this.drawn = drawn;
    const { page, tree, labels, hits, side } = this;
    for (let f = 1; f < labels.length; ++f) hits[f] = page.matches ? page.matches.functions[f] : 0;
    this.canvas.show({
      tree,
      total: tree.total,
      labels,
      hits,
      fill: fills(page, tree, labels, tree.self),
      tip: (node) => this.tipOf(node),
      spoken: (node) => `${this.nameOf(node)}, ${shareWords(tree.total[node], tree.total[0])} of ${this.nameOf(0)}`,
    }, nodeOfText(tree, own(page.state, name, side)), fresh);
    if (fresh) this.canvas.scrollToRoot();
  }

  zoomTo(node: number): void {
    const { page, canvas, side } = this;
    canvas.hover.away();
    canvas.cursor = node;
    if (this.drawn) page.change(withOwn(page.state, name, side, pathTo(this.tree, node).join(".")));
  }

  copyName(): void {
    const { cursor } = this.canvas;
    if (this.drawn && cursor >= 0) this.page.copy(this.labels[this.tree.label[cursor]].full);
  }

  private get tree(): SmallTree {
    return (this.drawn as Drawn).sandwich[this.side];
  }

  private nameOf(node: number): string {
    return this.labels[this.tree.label[node]].name;
  }

  // What is known of the stack that leads to a frame: of a caller nothing.
  private stackTo(node: number): number[] {
    const { label } = this.tree;
    return this.side === "callers" ? [label[node]] : [label[0], ...pathTo(this.tree, node)];
  }

  private tipOf(node: number): Node {
    const { tree, canvas: { zoom }, page: { state, catalogue } } = this;
    const { total, samples } = tree;
    const facts: [string, string][] = [[`share of ${this.nameOf(0)}`, shareWords(total[node], total[0])]];
    if (zoom && isWithin(tree, node, zoom))
      facts.push(["share of the zoomed frame", shareWords(total[node], total[zoom])]);
    facts.push(["share of what is shown", shareWords(total[node], (this.drawn as Drawn).whole)], ["time",
      weightWords(total[node], unitOf(catalogue.head, state.weight))]);
    if (!isAwait(catalogue.head, state.weight)) facts.push(["samples", countWords(samples[node])]);
    return frameTip(this.labels[tree.label[node]], facts);
  }
}

class SandwichView implements Showing {
  readonly element: HTMLElement;
  private readonly asked = { table: new Latest<Table>(), sandwich: new Latest<Sandwich>() };
  private readonly labels = this.page.labels("function");
  private table: Table | null = null;
  private tableKey = "";
  private drawn: Sandwich | null = null;
  private drawnKey = "";
  private readonly list = new RowTable("Functions to choose from", this.columns(), {
    sort: (text) => this.page.change(withOwn(this.page.state, name, "sort", text), "aside"),
    menu: (row, x, y) => this.page.menu(this.page.frameItems("function", [row]), x, y),
    choose: (row) => this.page.change(choice(this.page, row)),
    pick: (row) => this.page.change(choice(this.page, row)),
    mark: (row) => this.page.matches !== null && this.page.matches.functions[row] === 1,
  });
  private readonly colours = colourBar(this.page);
  private readonly head = element("p", { class: "chosen", "aria-live": "polite" });
  private readonly callers: Half = new Half(this.page, "callers", "Callers, outward",
    () => (this.active = this.callers));
  private readonly callees: Half = new Half(this.page, "callees", "Callees, inward",
    () => (this.active = this.callees));
  private active = this.callees; // has the keys

  constructor(private readonly page: Page) {
    const { list, head, colours, callers, callees } = this;
    this.element = element("section", { class: "sandwich", "aria-label": title },
      element("div", "choose", list.element),
      element("div", "halves", head, element("div", "toolbar", colours.element), callers.element, callees.element));
  }

  readonly keys: Key[] = [
    ...tableKeys("look at the function"),
    ...arrowKeys("move from frame to frame of the half in focus", (key) => this.active.canvas.move(key)),
    { on: "o", shown: "o", meaning: "the other half: callers or callees", run: () => this.toOther() },
    { on: "Enter", shown: "Enter", meaning: "zoom into the frame",
      run: () => this.active.canvas.cursor >= 0 && this.active.zoomTo(this.active.canvas.cursor) },
    { on: "Escape", shown: "Esc", meaning: "reset the zoom, or the search",
      run: () => (this.page.state.search ? this.page.change({ search: "" }, "aside") : this.active.zoomTo(0)) },
    { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => this.active.zoomTo(0) },
    { on: "m", shown: "m", meaning: "menu of the frame", run: () => this.active.canvas.openMenu() },
    { on: "c", shown: "c", meaning: "copy the frame's name", run: () => this.active.copyName() },
    { on: "n", shown: "n  N", meaning: "next, previous match in the list", run: () => this.list.step(1) },
    { on: "N", shown: "", meaning: "", run: () => this.list.step(-1) },
  ];

  show(): void {
    const key = this.queryKey;
    this.asked.table.ask(key, () => this.page.ask("table", { by: "function", natives: true }), (answer) => {
      this.table = answer;
      this.tableKey = key;
      this.showTable();
    });
    if (this.tableKey === key) this.showTable();
  }

  pictures(): Picture[] {
    const words = this.head.textContent ?? "";
    return (["callers", "callees"] as const).flatMap((side) =>
      this[side].canvas.pictures(side, words, this.colours.legend())
    );
  }

  private showTable(): void {
    const { page, labels, list } = this;
    const there: number[] = [];
    for (let f = 1; f < labels.length; ++f)
      if (this.amount("total", f) > 0 && labels[f].kind !== Kind.marker) there.push(f);
    list.show(there, own(page.state, name, "sort"));
    const f = this.chosen;
    list.light(f);
    if (!f) return this.head.replaceChildren("Nothing is shown.");
    const { weight } = page.state;
    const key = JSON.stringify([this.queryKey, weight, f]);
    this.asked.sandwich.ask(key, () => page.ask("sandwich", { function: f, weight, leastShare }), (answer) => {
      this.drawn = answer;
      this.drawnKey = key;
      this.draw(true);
    });
    if (this.drawnKey === key) this.draw(false);
  }

  private draw(fresh: boolean): void {
    this.colours.show();
    const { drawn: sandwich, chosen: f } = this;
    if (!sandwich || !this.table) return;
    const { catalogue: { head }, state: { weight } } = this.page;
    const { total, samples } = sandwich.callees;
    const { full } = this.labels[f];
    const whole = this.amount("total", 0);
    const time = (value: number) => weightWords(value, unitOf(head, weight));
    const counted = isAwait(head, weight) ? "" : `, ${countWords(samples[0])} samples`;
    this.head.replaceChildren(element("b", {}, full), ` ${placeOf(this.labels[f])}: `,
      element("b", {}, shareWords(total[0], whole)),
      ` of what is shown, ${time(total[0])}; ${time(this.amount("self", f))} of it in its own code${counted}`);
    this.callers.show({ sandwich, whole }, fresh);
    this.callees.show({ sandwich, whole }, fresh);
    this.page.drawn();
  }

  private toOther(): void {
    this.active = this.active === this.callers ? this.callees : this.callers;
    this.active.canvas.element.focus();
  }

  private get queryKey(): string {
    return JSON.stringify([this.page.state.filters, this.page.state.show]);
  }

  // What was asked for, or what the list begins with.
  private get chosen(): number {
    const text = own(this.page.state, name, "of");
    const f = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    return f > 0 && f < this.labels.length ? f : this.list.rows[0] ?? 0;
  }

  private amount(side: "self" | "total", row: number): number {
    return this.table ? this.table[side][this.page.state.weight][row] : 0;
  }

  private columns(): TableColumn[] {
    const share = (side: "self" | "total", title: string, about: string): TableColumn => {
      const amount = (row: number) => this.amount(side, row);
      const whole = () => this.amount("total", 0);
      return {
        ...numberColumn(side, title, about, amount, (row) => shareWords(amount(row), whole())),
        bar: (row) => (whole() > 0 ? amount(row) / whole() : 0),
      };
    };
    return [
      share("self", "Self", "Spent in its own code"),
      share("total", "Total", "With everything that it calls"),
      textColumn("name", "Function", "By name", (row) => this.labels[row].full),
    ];
  }
}

export const sandwich: View = {
  name,
  title,
  place: "main",
  create: (page) => new SandwichView(page),
  items: (page, by, path) => {
    const f = functionOf(page.catalogue, by, path[path.length - 1]);
    const { name: short } = page.labels("function")[f];
    return [{ text: `${title} of ${short.length > 60 ? `${short.slice(0, 59)}…` : short}`,
      run: () => page.change({ view: name, ...choice(page, f) }) }];
  },
};
