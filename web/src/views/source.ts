// Where the time goes line by line, in the program's own text: files by what is spent in them, and one of them with its heat. Without
// the text (it is put in by --source) the lines that were seen, with their functions.
import { isAwait, unitOf } from "../model/head";
import { element } from "../page/dom";
import { functionOf } from "../model/catalogue";
import { filesOf, FileTime, linesOf, LineTime } from "../model/source_times";
import { Table } from "../model/questions/table";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./parts/row_table";
import { Key, Page, Showing, View } from "./view";

const name = "source";

const withFile = (page: Page, file: string, line: number) => {
  const chosen = { ...page.state, ...withOwn(page.state, name, "file", file) };
  return withOwn(chosen, name, "line", line > 0 ? String(line) : "");
};

class SourceView implements Showing {
  readonly element: HTMLElement;
  private readonly asked = { table: new Latest<Table>(), text: new Latest<{ text: string | null }>() };
  private readonly embedded = new Set(this.page.catalogue.sourceFiles);
  private table: Table | null = null;
  private tableKey = "";
  private files: FileTime[] = [];
  private lines: LineTime[] = []; // by line
  private text: string[] | null = null;
  private textOf = "";
  private shownAt = ""; // file and line that were scrolled to
  private hottest = 0;

  private readonly list = new RowTable("Files", this.fileColumns(), {
    sort: (sort) => this.page.change(withOwn(this.page.state, name, "sort", sort), "aside"),
    menu: () => undefined,
    choose: (row) => this.page.change(withFile(this.page, this.files[row].file, 0)),
    pick: (row) => this.page.change(withFile(this.page, this.files[row].file, 0)),
    mark: () => false,
    dim: (row) => this.embedded.size > 0 && !this.embedded.has(this.files[row].file),
  });
  private readonly rows = new RowTable("Lines", this.lineColumns(), {
    sort: (sort) => this.page.change(withOwn(this.page.state, name, "lines", sort), "aside"),
    menu: (line, x, y) =>
      this.lines[line] && this.page.menu(this.page.frameItems("line", this.placesOn(line).slice(0, 1)), x, y),
    choose: (line) => this.page.change(withFile(this.page, this.chosen, line), "aside"),
    mark: (line) => this.placesOn(line).some((place) => this.page.matches?.functions[this.functionOf(place)] === 1),
  });
  private readonly head = element("p", { class: "chosen", "aria-live": "polite" });

  constructor(private readonly page: Page) {
    this.element = element("section", { class: "source", "aria-label": "Source" },
      element("div", "choose", this.list.element), element("div", "text", this.head, this.rows.element));
  }

  readonly keys: Key[] = [
    ...tableKeys("open the file, or mark the line"),
    { on: "n", shown: "n  N", meaning: "next, previous line of a match", run: () => this.rows.step(1) },
    { on: "N", shown: "", meaning: "", run: () => this.rows.step(-1) },
    { on: "t", shown: "t", meaning: "copy the lines with their times", run: () => this.page.copy(this.rows.asText()) },
  ];

  show(): void {
    const { key } = this;
    this.asked.table.ask(key, () => this.page.ask("table", { by: "line", natives: true }), (answer) => {
      [this.table, this.tableKey] = [answer, key];
      this.showTable();
    });
    if (this.tableKey === key) this.showTable();
  }

  private showTable(): void {
    this.draw();
    const file = this.chosen;
    if (!file) return;
    this.asked.text.ask(file, () => this.page.ask("source", { file }), ({ text }) => {
      this.text = text === null ? null : text.split("\n");
      this.textOf = file;
      this.draw();
    });
  }

  private draw(): void {
    if (!this.table || this.tableKey !== this.key) return;
    this.addUp(this.table);
    const file = this.chosen;
    if (!file) {
      this.head.textContent = "No line of a file is shown.";
      return this.rows.show([], "");
    }
    if (this.textOf !== file) return;
    this.drawHead(file);
    const { text, lines, rows, page: { state } } = this;
    const all = text
      ? Array.from({ length: Math.max(text.length, lines.length - 1) }, (_, i) => i + 1)
      : lines.flatMap((line, i) => (line ? [i] : []));
    rows.show(all, own(state, name, "lines") || "line");
    const line = Number(own(state, name, "line")) ||
      lines.reduce((best, one, i) => (one && one.self > (lines[best]?.self ?? -1) ? i : best), 0);
    if (this.shownAt !== `${file}:${line}`) {
      this.shownAt = `${file}:${line}`;
      rows.goTo(line);
    }
    this.page.drawn();
  }

  private drawHead(file: string): void {
    const self = this.files.find((one) => one.file === file)?.self ?? 0;
    const words = element("b", {}, file);
    this.head.replaceChildren(words,
      `: ${shareWords(self, this.whole)} of what is shown, ${this.time(self)} on its own lines. `);
    if (this.text) return;
    this.head.append(this.page.catalogue.head.sources
      ? "Its source could not be read when the page was written: the lines that were seen, with their functions."
      : "The source is not in this page (phlox view --source puts it in): the lines that were seen, with their functions.");
  }

  private addUp(table: Table): void {
    const { page, list } = this;
    const { weight } = page.state;
    this.files = filesOf(page.catalogue, table, weight);
    list.show(this.files.map((_, i) => i), own(page.state, name, "sort") || "-self");
    const { chosen } = this;
    list.light(this.files.findIndex((one) => one.file === chosen));
    this.lines = linesOf(page.catalogue, table, weight, chosen);
    this.hottest = this.lines.reduce((most, { self }) => Math.max(most, self), 0);
  }

  private get key(): string {
    return JSON.stringify([this.page.state.filters, this.page.state.show]);
  }

  private get whole(): number {
    return this.table ? this.table.total[this.page.state.weight][0] : 0;
  }

  private time(value: number): string {
    return weightWords(value, unitOf(this.page.catalogue.head, this.page.state.weight));
  }

  // The file that was asked for, or the first one with its text.
  private get chosen(): string {
    const { files, embedded } = this;
    const file = own(this.page.state, name, "file");
    return files.some((one) => one.file === file) || embedded.has(file)
      ? file
      : (files.find((one) => embedded.has(one.file)) ?? files[0])?.file ?? "";
  }

  private placesOn(line: number): number[] {
    return this.lines[line]?.places ?? [];
  }

  private functionOf(place: number): number {
    return this.page.catalogue.places.function[place];
  }

  private fileColumns(): TableColumn[] {
    const self = (row: number) => this.files[row].self;
    // Where the name begins.
    const slash = (row: number) => this.files[row].file.lastIndexOf("/") + 1;
    return [
      {
        ...numberColumn("self", "Self", "Spent on lines of the file themselves, of what is shown", self,
          (row) => shareWords(self(row), this.whole)),
        bar: (row) => (this.whole > 0 ? self(row) / this.whole : 0),
      },
      textColumn("name", "File", "By name", (row) => this.files[row].file.slice(slash(row))),
      textColumn("place", "Folder", "Where it lies",
        (row) => this.files[row].file.slice(0, Math.max(0, slash(row) - 1))),
    ];
  }

  private lineColumns(): TableColumn[] {
    const of = (part: "self" | "total" | "samples") => (line: number) => this.lines[line]?.[part] ?? 0;
    const [self, total, samples] = [of("self"), of("total"), of("samples")];
    const spent = (value: number) => (value > 0 ? shareWords(value, this.whole) : "");
    const isCounted = (line: number) => this.lines[line] && !isAwait(this.page.catalogue.head, this.page.state.weight);
    const functions = (line: number) =>
      this.placesOn(line).map((place) => this.page.catalogue.functions.full[this.functionOf(place)]);
    const byLine = (a: number, b: number) => a - b;
    return [
      { name: "line", title: "Line", about: "Its number", number: true, ascending: true, text: String,
        compare: byLine },
      {
        ...numberColumn("self", "Self", "Spent on the line itself, of what is shown; the darker, the more", self,
          (line) => spent(self(line))),
        heat: (line) => (this.hottest > 0 ? self(line) / this.hottest : 0),
      },
      numberColumn("total", "Total", "With what it calls", total, (line) => spent(total(line))),
      numberColumn("time", "Self time", "Spent on the line itself", self,
        (line) => (self(line) > 0 ? this.time(self(line)) : "")),
      numberColumn("samples", "Samples", "Samples with this line on the stack", samples,
        (line) => (isCounted(line) ? countWords(samples(line)) : "")),
      { name: "name", title: "Source", about: "As it was when the page was written", number: false, ascending: true,
        text: (line) => (this.text ? this.text[line - 1] ?? "" : functions(line).join(", ")), compare: byLine },
    ];
  }
}

export const source: View = {
  name,
  title: "Source",
  place: "main",
  create: (page) => new SourceView(page),
  items: (page, by, path) => {
    const last = path[path.length - 1];
    const f = functionOf(page.catalogue, by, last);
    const label = page.labels(by)[last];
    if (!label.file || !label.line) return [];
    const line = by === "line" ? page.catalogue.places.line[last] : label.line;
    return [{ text: `Source of ${page.labels("function")[f].name.slice(0, 60)}`,
      run: () => page.change({ view: name, ...withFile(page, label.file, line) }) }];
  },
};
