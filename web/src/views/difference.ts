// Compares two parts of the recording, or two recordings: as a table and as flame graphs, merged or side by side. The
// unit is seconds, for time ranges seconds per second; grey means no certain difference.
import { button, choice, element } from "../page/dom";
import { CallTree } from "../model/call_tree";
import { DifferenceRows, Part, Which } from "../model/difference_rows";
import { everything } from "../model/filters";
import { By } from "../model/head";
import { ChangedTree, Difference } from "../model/questions/difference";
import { ThreadTotals } from "../model/questions/threads";
import { own, withOwn } from "../state/state";
import { DifferenceFlames, Flames } from "./difference_flames";
import { DifferenceTable } from "./difference_table";
import { DifferenceWords } from "./difference_words";
import { arrowKeys } from "./parts/arrow_keys";
import { Latest } from "./parts/latest";
import { tableKeys } from "./parts/row_table";
import { Busiest, busiestTwo, Chosen, chosenSides, SidesBar } from "./parts/sides";
import { Key, Page, Picture, Showing, View } from "./view";

const name = "difference";

type As = "table" | "merged" | "beside";
type Widths = "after" | "before";

const asTitles: [As, string][] = [["table", "Table"], ["merged", "Flame graph"], ["beside", "Side by side"]];
const partTitles: [Part, string][] = [["total", "With what it calls"], ["self", "Its own code"]];
const whichTitles: [Which, string][] = [
  ["all", "All"],
  ["changed", "What changed"],
  ["new", "New"],
  ["vanished", "Vanished"],
];
const widthTitles: [Widths, string][] = [["after", ""], ["before", ""]]; // their texts name the sides

class DifferenceView implements Showing {
  readonly element: HTMLElement;
  private readonly asked = { table: new Latest<Difference>(), tree: new Latest<[CallTree, ChangedTree]>(),
    busiest: new Latest<ThreadTotals>() };
  private busiest: Busiest | null = null; // nothing to show until then
  private found: { key: string; by: By; rows: DifferenceRows } | null = null;
  private trees: { key: string; tree: CallTree; changed: ChangedTree } | null = null;

  private readonly say = new DifferenceWords(this.page);
  private readonly table = new DifferenceTable(this.page, this.say, (sort) => this.set("sort", sort, "aside"));
  private readonly flames = new DifferenceFlames(this.page, this.say, (path) => this.set("zoom", path));
  private readonly bar = new SidesBar(this.page, () => this.busiest as Busiest,
    (a, b) => this.page.change({ own: { ...this.page.state.own, [`${name}.a`]: a, [`${name}.b`]: b } }));
  private readonly choices = {
    as: choice<As>("Shown as", asTitles, (value) => this.set("as", value)),
    part: choice<Part>("Which time of a function", partTitles, (value) => this.set("part", value)),
    which: choice<Which>("Which rows", whichTitles, (value) => this.set("rows", value)),
    widths: choice<Widths>("Widths", widthTitles, (value) => this.set("widths", value)),
  };
  private readonly reset = button("Reset zoom", () => this.flames.zoomTo(0), { title: "Home" });
  private readonly copy = button("Copy table", () => this.page.copy(this.table.table.asText()), {
    title: "All rows, as text for a spreadsheet",
  });
  private readonly words = element("p", { class: "counts", "aria-live": "polite" });
  private readonly legend = element("span", "legend");
  private readonly room = element("div", "room");

  constructor(private readonly page: Page) {
    const { bar, choices: { as, part, which, widths }, copy, reset, legend, flames, words, room } = this;
    this.element = element("section", { class: "difference", "aria-label": "Difference" }, bar.element,
      element("div", "toolbar", as.element, part.element, which.element, copy, widths.element, reset, legend,
        flames.notes), words, room);
  }

  // ---- the user's choices ---------------------------------------------------------------------------------------
  private option<T extends string>(key: string, all: readonly (readonly [T, string])[]): T {
    return all.find(([value]) => value === own(this.page.state, name, key))?.[0] ?? all[0][0];
  }

  private set(key: string, value: string, how?: "step" | "aside"): void {
    this.page.change(withOwn(this.page.state, name, key, value), how);
  }

  private get as(): As {
    return this.option("as", asTitles);
  }

  private get isTable(): boolean {
    return this.as === "table";
  }

  private get widths(): Widths {
    return this.option("widths", widthTitles);
  }

  private get chosen(): Chosen {
    const { page } = this;
    return chosenSides(page, [own(page.state, name, "a"), own(page.state, name, "b")], this.busiest as Busiest);
  }

  private get key(): string {
    const { filters, show, by, weight } = this.page.state;
    return JSON.stringify([filters, show, by, weight, this.chosen.sides]);
  }

  // ---- showing --------------------------------------------------------------------------------------------------
  show(): void {
    if (!this.busiest) {
      this.asked.busiest.ask("whole", () => this.page.ask("threads", {}, everything), (totals) => {
        this.busiest = busiestTwo(this.page.catalogue, totals);
        this.show();
      });
      return;
    }
    this.arrange();
    this.ask();
    this.draw();
  }

  private arrange(): void {
    const { choices, isTable, chosen } = this;
    this.bar.show(chosen);
    choices.as.show(this.as);
    choices.part.show(this.option("part", partTitles));
    choices.which.show(this.option("rows", whichTitles));
    choices.widths.show(this.widths);
    choices.widths.element.querySelectorAll("button").forEach((one,
      i) => (one.textContent = `Widths of ${chosen.words[i ? 0 : 1]}`)
    );
    for (const one of [choices.part.element, choices.which.element, this.copy]) one.hidden = !isTable;
    for (const one of [this.reset, this.legend, this.flames.notes]) one.hidden = isTable;
    choices.widths.element.hidden = this.as !== "merged";
    if (!isTable) this.legend.replaceChildren(...this.flames.legend());
  }

  private ask(): void {
    const { page, key, chosen: { sides } } = this;
    const { by, weight } = page.state;
    this.asked.table.ask(key, () => page.ask("difference", { sides, by, weight }), (answer) => {
      this.found = { key, by, rows: new DifferenceRows(answer, page.labels(by), this.say.inTime) };
      this.draw();
    });
    if (this.isTable) return;
    const question = () => Promise.all([page.shape(by), page.ask("changedTree", { sides, by, weight })]);
    this.asked.tree.ask(key, question, ([tree, changed]) => {
      this.trees = { key, tree, changed };
      this.draw();
    });
  }

  private draw(): void {
    const { page, found, trees, key, chosen, room } = this;
    if (found?.key !== key) return;
    const { rows, by } = found;
    const labels = page.labels(by);
    this.words.replaceChildren(...this.say.summary(rows, chosen, by));
    if (this.isTable) {
      const tabled = { rows, labels, by, part: this.option("part", partTitles) };
      this.table.show(room, tabled, this.option("rows", whichTitles), chosen.words, own(page.state, name, "sort"));
    } else if (trees?.key === key) {
      const { tree, changed } = trees;
      const zoom = own(page.state, name, "zoom");
      this.flames.show(room, { by, labels, tree, changed, chosen, zoom, widths: this.flameWidths });
      this.reset.disabled = !this.flames.isZoomed;
    }
    page.drawn();
  }

  private get flameWidths(): Flames["widths"] {
    return this.as === "beside" ? "both" : this.widths;
  }

  pictures(): Picture[] {
    return this.isTable || !this.busiest ? [] : this.flames.pictures(this.chosen.names, this.flameWidths);
  }

  // ---- keys -----------------------------------------------------------------------------------------------------
  private step(direction: 1 | -1): void {
    if (this.isTable) this.table.table.step(direction);
    else this.flames.active.step(direction);
  }

  private zoomBack(): void {
    if (this.page.state.search) this.page.change({ search: "" }, "aside");
    else this.flames.zoomTo(0);
  }

  private nextAs(): void {
    this.set("as", asTitles[(asTitles.findIndex(([value]) => value === this.as) + 1) % asTitles.length][0]);
  }

  readonly keys: Key[] = [
    ...tableKeys("only stacks through it"),
    ...arrowKeys("move from frame to frame", (key) => this.isTable || this.flames.active.move(key)),
    { on: "Enter", shown: "Enter", meaning: "zoom into the frame",
      run: () => !this.isTable && this.flames.active.cursor >= 0 && this.flames.zoomTo(this.flames.active.cursor) },
    { on: "Escape", shown: "Esc", meaning: "reset the search, or the zoom", run: () => this.zoomBack() },
    { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => this.flames.zoomTo(0) },
    { on: "m", shown: "m", meaning: "menu of the frame", run: () => this.flames.active.openMenu() },
    { on: "n", shown: "n  N", meaning: "next, previous match", run: () => this.step(1) },
    { on: "N", shown: "", meaning: "", run: () => this.step(-1) },
    { on: "v", shown: "v", meaning: "table, flame graph, side by side", run: () => this.nextAs() },
    { on: "b", shown: "b", meaning: "widths of the one side or the other",
      run: () => this.set("widths", this.widths === "after" ? "before" : "after") },
    { on: "c", shown: "c", meaning: "copy the frame's name",
      run: () => !this.isTable && this.flames.activeName && this.page.copy(this.flames.activeName) },
    { on: "t", shown: "t", meaning: "copy the table",
      run: () => this.isTable && this.page.copy(this.table.table.asText()) },
  ];
}

export const difference: View = { name, title: "Difference", place: "main",
  create: (page) => new DifferenceView(page) };
