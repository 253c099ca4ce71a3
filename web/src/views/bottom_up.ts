// The call tree turned round, as a table: functions by what they spend themselves, beneath each who called it, and on whose behalf.
import { isAwait, unitOf } from "../model/head";
import { button, element } from "../page/dom";
import { nodeAlong, pathTo } from "../model/call_tree";
import { SmallTree } from "../model/growing_tree";
import { Kind, Label, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { Key, MenuItem, Page, Showing, View } from "./view";

const name = "bottom-up";
const leastShare = 0.001; // of the whole: what is below is asked for when it is opened
const mostOpen = 200; // in the address

// A row: a function, or its caller, by the labels that lead to it, the function that spends first.
interface Row {
  path: number[];
  label: number;
  total: number;
  samples: number;
  beneath: Row[] | null; // null: not asked for yet
}

// The rows beneath a node of an answer. One that was too light to be grown has no children and nothing of its own.
function rowsOf(tree: SmallTree, node: number, path: number[]): Row[] {
  const rows: Row[] = [];
  for (let child = tree.firstChild[node]; child; child = tree.nextSibling[child]) {
    const here = [...path, tree.label[child]];
    const grown = tree.firstChild[child] !== 0 || tree.self[child] > 0;
    rows.push({ path: here, label: tree.label[child], total: tree.total[child], samples: tree.samples[child],
      beneath: grown ? rowsOf(tree, child, here) : null });
  }
  return rows;
}

const text = (row: Row) => row.path.join("."); // as in the address

class BottomUp implements Showing {
  readonly element: HTMLElement;
  private readonly latest = new Latest<SmallTree>();
  private roots: Row[] = [];
  private list: Row[] = []; // in sight
  private whole = 0;
  private drawnKey = "";
  private labels: Label[] = [];
  private readonly asked = new Set<Row>();
  private readonly words = element("span", "status");
  private readonly rows = new RowTable("Bottom-up", this.columns(), {
    sort: () => undefined,
    menu: (row, x, y) =>
      this.page.menu([...this.page.frameItems("function", [this.list[row].label]), this.pathItem(row)], x, y),
    choose: (row) => this.turn(row),
    mark: (row) => this.page.matches !== null && this.page.matches.functions[this.list[row].label] === 1,
  }, {
    level: (row) => this.list[row].path.length - 1,
    open: (row) => (this.list[row].beneath?.length === 0 ? undefined : this.open.has(text(this.list[row]))),
    turn: (row) => this.turn(row),
  });

  constructor(private readonly page: Page) {
    const open = button("Open the heaviest path", () => this.openHeaviest(), {
      title: "From the first row along its heaviest caller, as far as one caller has more than half",
    });
    const close = button("Close all", () => this.setOpen(new Set()));
    const copy = button("Copy table", () => this.copy(), { title: "All rows in sight, as text for a spreadsheet" });
    this.element = element("section", { class: "bottom-up", "aria-label": "Bottom-up" },
      element("div", "toolbar", this.words, open, close, copy), this.rows.element);
  }

  readonly keys: Key[] = [
    ...tableKeys("open or close the row, as → and ← do"),
    { on: "n", shown: "n  N", meaning: "next, previous match", run: () => this.rows.step(1) },
    { on: "N", shown: "", meaning: "", run: () => this.rows.step(-1) },
    { on: "x", shown: "x", meaning: "open the heaviest path", run: () => this.openHeaviest() },
    { on: "t", shown: "t", meaning: "copy the table", run: () => this.copy() },
  ];

  show(): void {
    const { page, key } = this;
    this.latest.ask(key, () => page.ask("bottomUp", { weight: page.state.weight, leastShare, path: [] }), (tree) => {
      this.labels = page.labels("function");
      this.whole = tree.total[0];
      this.roots = rowsOf(tree, 0, []).filter((row) => row.total > 0 && this.labels[row.label].kind !== Kind.marker);
      this.drawnKey = key;
      this.asked.clear();
      this.draw();
    });
    if (this.drawnKey === key) this.draw();
  }

  private draw(): void {
    const { open } = this;
    this.list = [];
    const add = (all: Row[]) => {
      for (const row of all) {
        this.list.push(row);
        if (!open.has(text(row))) continue;
        if (row.beneath) add(row.beneath);
        else this.ask(row);
      }
    };
    add(this.roots);
    this.rows.show(this.list.map((_, i) => i), "");
    const count = countWords(this.roots.length);
    this.words.textContent = `${count} functions by what they spend themselves, shares of what is shown`;
    this.page.drawn();
  }

  // What is open but was too light to come with the first answer.
  private ask(row: Row): void {
    if (this.asked.has(row)) return;
    this.asked.add(row);
    const { page, drawnKey: wanted } = this;
    void page.ask("bottomUp", { weight: page.state.weight, leastShare: 2, path: row.path }).then((tree) => {
      if (wanted !== this.drawnKey) return;
      const node = nodeAlong(tree, row.path);
      row.beneath = pathTo(tree, node).length === row.path.length ? rowsOf(tree, node, row.path) : [];
      this.draw();
    });
  }

  private get key(): string {
    const { filters, show, weight } = this.page.state;
    return JSON.stringify([filters, show, weight]);
  }

  private copy(): void {
    this.page.copy(this.rows.asText());
  }

  // ---- what is open ---------------------------------------------------------------------------------------------
  private get open(): Set<string> {
    return new Set(own(this.page.state, name, "open").split("_").filter((path) => path));
  }

  private setOpen(paths: Set<string>): void {
    this.page.change(withOwn(this.page.state, name, "open", Array.from(paths).slice(-mostOpen).join("_")), "aside");
  }

  private turn(row: number): void {
    const { open } = this;
    const path = text(this.list[row]);
    if (this.list[row].beneath?.length === 0) return;
    if (!open.delete(path)) open.add(path);
    this.setOpen(open);
  }

  private openHeaviest(): void {
    const { open } = this;
    let row: Row | undefined = this.roots[0];
    for (let depth = 0; row && depth < mostOpen; ++depth) {
      if (row.beneath?.length === 0) break;
      open.add(text(row));
      const next: Row | undefined = row.beneath?.[0];
      if (!next || next.total * 2 < row.total) break;
      row = next;
    }
    this.setOpen(open);
  }

  // ---- rows -----------------------------------------------------------------------------------------------------
  // The total of the row that this one stands beneath.
  private above(row: number): number {
    let at = row;
    while (at > 0 && this.list[at].path.length >= this.list[row].path.length) --at;
    return this.list[at].total;
  }

  private pathItem(row: number): MenuItem {
    const lines = this.list[row].path.slice().reverse().map((f) => this.labels[f])
      .map((label) => `${label.full}${label.file ? ` (${placeOf(label)})` : ""}`);
    return { text: "Copy this path, outermost first", run: () => this.page.copy(lines.join("\n")) };
  }

  private columns(): TableColumn[] {
    const { page } = this;
    const column = (name: string, title: string, about: string, number: boolean,
      words: (row: Row, at: number) => string): TableColumn => ({ name, title, about, number, ascending: false,
        text: (at) => words(this.list[at], at), compare: () => 0 });
    const label = (row: Row) => this.labels[row.label];
    const { head } = page.catalogue;
    return [
      {
        ...column("share", "Self",
          "Of what is shown: spent in the outermost row's own code, when called along this path", true,
          ({ total }) => shareWords(total, this.whole)),
        bar: (row) => (this.whole > 0 ? this.list[row].total / this.whole : 0),
      },
      column("of-parent", "Of the row above", "Which part of the row that it stands beneath came through this caller",
        true, ({ path, total }, at) => (path.length > 1 ? shareWords(total, this.above(at)) : "")),
      column("time", "Time", "In what the switch above says", true,
        ({ total }) => weightWords(total, unitOf(head, page.state.weight))),
      column("samples", "Samples", "Samples that this row counts", true,
        ({ samples }) => (isAwait(head, page.state.weight) ? "-" : countWords(samples))),
      column("name", "Function, and beneath it its callers", "Open a row to see who called it", false,
        (row) => label(row).full),
      column("module", "Module", "Top package or module; native: the library", false, (row) => label(row).module),
      column("place", "Place", "File and line", false, (row) => placeOf(label(row))),
    ];
  }
}

export const bottomUp: View = { name, title: "Bottom-up", place: "main", create: (page) => new BottomUp(page) };
