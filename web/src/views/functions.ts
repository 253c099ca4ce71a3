// Functions or lines, as a table with self and total time.
import { button, choice, element } from "../page/dom";
import { functionOf } from "../model/catalogue";
import { By, isAwait, unitOf } from "../model/head";
import { beneath } from "../model/questions/beneath";
import { intervals } from "../model/questions/intervals";
import { Table } from "../model/questions/table";
import { Kind, Label, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, nativeWords, rangeWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./parts/row_table";
import { Key, Page, Showing, View } from "./view";

const name = "functions";

type Side = "self" | "total";

// An answer, and the question it answers.
interface Answered<T> {
  key: string;
  answer: T;
}

class Functions implements Showing {
  readonly element: HTMLElement;
  private readonly asked = { table: new Latest<Table>(), certain: new Latest<ReturnType<typeof intervals>>(),
    under: new Latest<ReturnType<typeof beneath>>() };
  private table: Answered<Table> | null = null;
  private certain: Answered<ReturnType<typeof intervals>> | null = null;
  private under: Answered<ReturnType<typeof beneath>> | null = null;
  private by: By = "function"; // of the table
  private labels: Label[] = [];

  private readonly rows = new RowTable("Functions", this.columns(), {
    sort: (text) => this.set("sort", text),
    menu: (row, x, y) => this.page.menu(this.page.frameItems(this.by, [row]), x, y),
    choose: (row) => this.page.frameItems(this.by, [row])[0]?.run(),
    mark: (row) =>
      this.page.matches !== null && this.page.matches.functions[functionOf(this.page.catalogue, this.by, row)] === 1,
  });
  // The page's own choice, repeated where a user looks for a table of lines.
  private readonly rowsAre = choice<By>("A row is", [["function", "Functions"], ["line", "Lines"]],
    (value) => this.page.change({ by: value }));
  // Off: native code beneath a Python function is a column of that function's row.
  private readonly callees = choice<"" | "1">("Native code", [["", "Python"], ["1", "Python and native"]],
    (value) => this.set("native", value), {
    "": "Native code that Python calls is a column of the Python function's row",
    "1": "Native functions that Python calls are rows as well: their time is in two rows",
  });
  private readonly words = element("span", "status");

  constructor(private readonly page: Page) {
    const { rows, rowsAre, callees, words } = this;
    callees.element.hidden = !page.catalogue.functions.kind.some((kind) => kind === Kind.native);
    const copy = button("Copy table", () => page.copy(rows.asText()), { title: "All rows, as text for a spreadsheet" });
    this.element = element("section", { class: "functions", "aria-label": "Functions" },
      element("div", "toolbar", rowsAre.element, callees.element, words, copy), rows.element);
  }

  readonly keys: Key[] = [
    ...tableKeys("only stacks through it"),
    { on: "n", shown: "n", meaning: "next match", run: () => this.rows.step(1) },
    { on: "N", shown: "N", meaning: "previous match", run: () => this.rows.step(-1) },
    { on: "t", shown: "t", meaning: "copy the table", run: () => this.page.copy(this.rows.asText()) },
  ];

  show(): void {
    const { page, asked, natives, key, weightKey } = this;
    const { by, weight } = page.state;
    this.rowsAre.show(by);
    this.callees.show(natives ? "1" : "");
    asked.table.ask(key, () => page.ask("table", { by, natives }), (answer) => {
      this.table = { key, answer };
      this.by = by;
      this.labels = page.labels(by);
      this.draw();
    });
    asked.certain.ask(weightKey, () => page.ask("intervals", { by, weight, natives }), (answer) => {
      this.certain = { key: weightKey, answer };
      this.draw();
    });
    asked.under.ask(weightKey, () => page.ask("beneath", { by, weight }), (answer) => {
      this.under = { key: weightKey, answer };
      this.draw();
    });
    if (this.table?.key === key) this.draw();
  }

  private draw(): void {
    if (!this.table) return;
    const { labels, weightKey, under } = this;
    const there: number[] = [];
    for (let row = 1; row < labels.length; ++row)
      if (this.amount("total", row) > 0 && labels[row].kind !== Kind.marker) there.push(row);
    this.rows.show(there, own(this.page.state, name, "sort"));
    const inLibraries = under?.key === weightKey && under.answer.library.some((name) => name);
    const count = `${countWords(there.length)} ${this.by === "line" ? "lines" : "functions"}`;
    const shares = this.isAwait ? "shares are" : "shares and their 99 % intervals are";
    const more = inLibraries ? "; what C code does that time is in, --native shows" : "";
    this.words.textContent = `${count}, ${shares} of what is shown${more}`;
    this.page.drawn();
  }

  private set(key: string, value: string): void {
    this.page.change(withOwn(this.page.state, name, key, value), "aside");
  }

  private get natives(): boolean {
    return own(this.page.state, name, "native") === "1";
  }

  private get key(): string {
    const { filters, show, by } = this.page.state;
    return JSON.stringify([filters, show, by, this.natives]);
  }

  // Of the questions that depend on the weight as well.
  private get weightKey(): string {
    return JSON.stringify([this.key, this.page.state.weight]);
  }

  private get isAwait(): boolean {
    return isAwait(this.page.catalogue.head, this.page.state.weight);
  }

  // ---- the columns ----------------------------------------------------------------------------------------------
  private get totals(): Table {
    return (this.table as Answered<Table>).answer;
  }

  private amount(side: Side, row: number): number {
    return this.totals[side][this.page.state.weight][row];
  }

  private intervalWords(side: Side, row: number): string {
    if (this.isAwait) return "-"; // how far chance moves it is not known
    if (this.certain?.key !== this.weightKey) return "…";
    return rangeWords(this.certain.answer[side].low[row], this.certain.answer[side].high[row]);
  }

  // As in `phlox report`: nativeWords.
  private beneathWords(row: number): string {
    if (this.under?.key !== this.weightKey) return "";
    const { library, native, share } = this.under.answer;
    if (library[row]) return `${library[row]} ${shareWords(share[row], 1)} of CPU`;
    return native[row] ? nativeWords(this.page.labels("function")[native[row]], share[row]) : "";
  }

  private pair(side: Side, title: string, about: string): TableColumn[] {
    const amount = (row: number) => this.amount(side, row);
    const whole = () => this.amount("total", 0);
    const time = (row: number) => weightWords(amount(row), unitOf(this.page.catalogue.head, this.page.state.weight));
    return [
      {
        ...numberColumn(side, title, about, amount, (row) => shareWords(amount(row), whole())),
        bar: (row) => (whole() > 0 ? amount(row) / whole() : 0),
      },
      numberColumn(`${side}-time`, `${title} time`, about, amount, time),
      numberColumn(`${side}-interval`, `${title} 99 %`,
        `99 % interval of the share: the sampling error of this recording. ${about}`,
        (row) => this.certain?.answer[side].low[row] ?? 0, (row) => this.intervalWords(side, row)),
    ];
  }

  private columns(): TableColumn[] {
    const samples = (row: number) => this.totals.total.samples[row];
    return [
      ...this.pair("self", "Self", "Spent in its own code, and in native code beneath a Python function"),
      ...this.pair("total", "Total", "With everything that it calls; a function that calls itself counts once"),
      numberColumn("samples", "Samples", "Samples with it on the stack", samples,
        (row) => (this.isAwait ? "-" : countWords(samples(row)))),
      textColumn("name", "Function", "By name", (row) => this.labels[row].full),
      textColumn("module", "Module", "Top package or module; native: the library", (row) => this.labels[row].module),
      textColumn("place", "Place", "File and line", (row) => placeOf(this.labels[row])),
      textColumn("beneath", "Most native time in",
        "The native function beneath it with most of its own time, and that part of it. Recorded without --native: the library in whose C code most of its CPU time is; --native shows its functions",
        (row) => this.beneathWords(row)),
    ];
  }
}

export const functions: View = { name, title: "Functions and lines", place: "main",
  create: (page) => new Functions(page) };
