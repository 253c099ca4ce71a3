// A main view that is a table of moments, such as stalls: a row leads to its time in the timeline.
import { button, element } from "../../page/dom";
import { Filter } from "../../model/filters";
import { own, withFilter, withOwn } from "../../state/state";
import { timeWords } from "../../words";
import { Key, Page, Showing } from "../view";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./row_table";
import { InSight } from "./sight";
import { shortName } from "./thread_names";

export interface TimedRow {
  thread: number; // index; -1: not known
  start: number; // ns since the recording's start
  wall: number; // ns
}

// What else a row does.
export interface More<Row> {
  filters?(row: Row): Filter[]; // when it is chosen
  mark?(row: Row): boolean; // highlighted
}

const air = 0.2; // of a moment's length, shown on either side

// Columns of a table with these rows.
export const columnsFor = <Row>(rows: Row[]) => ({
  text: (name: string, title: string, about: string, words: (row: Row) => string): TableColumn =>
    textColumn(name, title, about, (row) => words(rows[row])),
  number: (name: string, title: string, about: string, value: (row: Row) => number,
    words: (row: Row) => string): TableColumn =>
    numberColumn(name, title, about, (row) => value(rows[row]), (row) => words(rows[row])),
});

export class MomentTable<Row extends TimedRow> implements Showing {
  readonly element: HTMLElement;
  private readonly inSight = new InSight(this.page);
  private readonly table = new RowTable(this.title, this.columns, {
    sort: (sort) => this.page.change(withOwn(this.page.state, this.name, "sort", sort), "aside"),
    menu: (row, x, y) => this.menu(this.rows[row], x, y),
    pick: (row) => this.see(this.rows[row]),
    choose: (row) => this.see(this.rows[row]),
    mark: (row) => this.more.mark?.(this.rows[row]) ?? false,
  });

  // `first`: how the table is sorted at first. `words`: beside its button.
  constructor(private readonly page: Page, private readonly name: string, private readonly title: string,
    private readonly rows: Row[], private readonly columns: TableColumn[], private readonly first: string,
    words: string, note = "", private readonly more: More<Row> = {})
  {
    const copy = button("Copy table", () => this.copy(), { title: "All rows, as text for a spreadsheet" });
    this.element = element("section", { class: name, "aria-label": title },
      element("div", "toolbar", element("span", "status", words), copy, element("span", "notes", note)),
      this.table.element);
  }

  readonly keys: Key[] = [
    ...tableKeys("that time in the timeline"),
    { on: "t", shown: "t", meaning: "copy the table", run: () => this.copy() },
  ];

  show(): void {
    this.table.show(Array.from(this.rows.keys()), own(this.page.state, this.name, "sort") || this.first);
    this.page.drawn();
  }

  private copy(): void {
    this.page.copy(this.table.asText());
  }

  private see(row: Row): void {
    const { start, wall } = row;
    this.inSight.see({ from: start - wall * air, to: start + wall * (1 + air) }, true, this.more.filters?.(row));
    this.page.say(`the timeline shows ${timeWords(start, wall / 10)}`);
  }

  private menu(row: Row, x: number, y: number): void {
    const { page } = this;
    const { start, wall, thread } = row;
    const only = (filter: Filter) => () => page.change(withFilter(page.state, filter));
    const items = [
      { text: "Show in the timeline", run: () => this.see(row) },
      { text: "Only this time",
        run: only({ field: "time", mode: "in", from: Math.round(start), to: Math.round(start + wall) }) },
    ];
    if (thread >= 0)
      items.push({ text: `Only thread ${shortName(page.catalogue, thread)}`,
        run: only({ field: "thread", mode: "in", values: [thread] }) });
    page.menu(items, x, y);
  }
}
