// A table of any length: only the visible rows are in the document. A click on a column's head sorts; the arrow keys
// move between rows. Knows nothing of what its rows mean.
import { button, element } from "../../page/dom";
import { Key } from "../view";

export interface TableColumn {
  name: string; // in the address, and in data-column
  title: string;
  about: string; // a sentence for the tooltip
  number: boolean; // right-aligned
  ascending: boolean; // the order after a first click
  text(row: number): string;
  bar?(row: number): number; // 0 to 1, drawn behind
  heat?(row: number): number; // 0 to 1: strength of the cell's colour
  compare(a: number, b: number): number; // ascending
}

// Sorted by its text.
export const textColumn = (name: string, title: string, about: string, text: (row: number) => string): TableColumn => ({
  name,
  title,
  about,
  number: false,
  ascending: true,
  text,
  compare: (a, b) => {
    const [x, y] = [text(a), text(b)];
    return x < y ? -1 : x > y ? 1 : 0;
  },
});

// Sorted by a value, the greatest first.
export const numberColumn = (name: string, title: string, about: string, value: (row: number) => number,
  text: (row: number) => string): TableColumn => ({
    name,
    title,
    about,
    number: true,
    ascending: false,
    text,
    compare: (a, b) => value(a) - value(b),
  });

interface Actions {
  sort(text: string): void; // "name" or "-name" (descending): pass it to show()
  menu(row: number, x: number, y: number): void;
  choose(row: number): void; // Enter, double click
  pick?(row: number): void; // click
  mark(row: number): boolean; // highlighted: matches the search
  dim?(row: number): boolean; // grey
}

// Rows that are nested: they keep their given order.
export interface Levels {
  level(row: number): number; // 0: outermost
  open(row: number): boolean | undefined; // undefined: nothing beneath
  turn(row: number): void; // opens or closes it
}

const rowHeight = 24; // as in row_table.css
const spare = 8; // rows above and below the visible ones

// Keys of a focused table, for the list of keys. `choose`: what Enter does.
export const tableKeys = (choose: string): Key[] => [
  { on: "", shown: "Tab", meaning: "to the table; there ↑ ↓, PgUp, PgDn, Home and End go from row to row",
    run: () => undefined },
  { on: "", shown: "Enter  m", meaning: `${choose}; menu of the row: filters, search, copy`, run: () => undefined },
];

export class RowTable {
  readonly element: HTMLElement;
  rows: number[] = []; // sorted
  private readonly head: HTMLElement;
  private readonly body = element("div", { class: "rows", role: "rowgroup" });
  private readonly scroller: HTMLElement;
  private sorted = "";
  private cursor = 0;
  private chosen = -1;

  constructor(label: string, private readonly columns: TableColumn[], private readonly actions: Actions,
    private readonly levels: Levels | null = null)
  {
    this.head = element("div", { class: "row heads", role: "row" });
    for (const column of columns) {
      const sort = () =>
        actions.sort(
          this.sorted === this.sortText(column, false) ? this.sortText(column, true) : this.sortText(column, false),
        );
      this.head.append(
        element("div", { class: `cell ${column.name}${column.number ? " number" : ""}`, role: "columnheader",
          "data-column": column.name }, levels
          ? element("span", { title: column.about }, column.title)
          : button(column.title, sort, { title: column.about })),
      );
    }
    this.scroller = element("div", { class: "table", role: levels ? "treegrid" : "table", tabindex: 0,
      "aria-label": label }, element("div", { role: "rowgroup", class: "headgroup" }, this.head), this.body);
    this.element = this.scroller;
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      this.at(event.target, (row) => actions.menu(row, event.clientX, event.clientY));
    });
    this.body.addEventListener("click", (event) => {
      const turn = event.target instanceof Element && event.target.closest(".turn") !== null;
      this.at(event.target, (row) => {
        if (turn) levels?.turn(row);
        else if (actions.pick) actions.pick(row);
        this.draw();
      });
    });
    this.body.addEventListener("dblclick", (event) => this.at(event.target, (row) => actions.choose(row)));
  }

  private sortText(column: TableColumn, turned: boolean): string {
    return (column.ascending !== turned ? "" : "-") + column.name;
  }

  // Moves the keyboard cursor to the row under the pointer.
  private at(target: EventTarget | null, run: (row: number) => void): void {
    const row = target instanceof Element ? target.closest<HTMLElement>("[aria-rowindex]") : null;
    if (!row) return;
    this.cursor = Number(row.getAttribute("aria-rowindex")) - 2;
    run(this.rows[this.cursor]);
  }

  // `rows`: in any order. `sort`: as passed to sort(); an unknown value means the first column.
  show(rows: number[], sort: string): void {
    const falling = sort.startsWith("-");
    if (this.levels) return this.showInOrder(rows);
    const known = this.columns.find((one) => one.name === sort.replace(/^-/, ""));
    const column = known ?? this.columns[0];
    this.sorted = known ? sort : this.sortText(column, false);
    const turn = (known ? falling : !column.ascending) ? -1 : 1;
    this.rows = rows.slice().sort((a, b) => turn * column.compare(a, b) || a - b);
    for (const head of Array.from(this.head.children)) {
      const mine = head.getAttribute("data-column") === column.name;
      head.setAttribute("aria-sort", mine ? (turn < 0 ? "descending" : "ascending") : "none");
    }
    this.showInOrder(this.rows);
  }

  private showInOrder(rows: number[]): void {
    this.rows = rows;
    this.cursor = Math.min(this.cursor, Math.max(0, this.rows.length - 1));
    this.scroller.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.body.style.height = `${this.rows.length * rowHeight}px`;
    this.draw();
  }

  draw(): void {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / rowHeight) - spare);
    const last = Math.min(this.rows.length,
      Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / rowHeight) + spare);
    const drawn: HTMLElement[] = [];
    for (let i = first; i < last; ++i) {
      const id = this.rows[i];
      const row = element("div", {
        class: `row${i === this.cursor ? " current" : ""}${this.actions.mark(id) ? " hit" : ""}${
          this.actions.dim?.(id) ? " dim" : ""
        }`,
        role: "row",
        "aria-rowindex": i + 2,
      });
      if (id === this.chosen) row.setAttribute("aria-selected", "true");
      row.style.top = `${i * rowHeight}px`;
      for (const column of this.columns) {
        const text = column.text(id);
        const cell = element("div", { class: `cell ${column.name}${column.number ? " number" : ""}`, role: "cell",
          title: column.number ? "" : text }, text);
        if (this.levels && column.name === "name") this.indent(row, cell, id);
        if (column.bar) cell.style.setProperty("--bar-share", `${Math.min(1, column.bar(id)) * 100}%`);
        const heat = column.heat?.(id) ?? 0;
        if (heat > 0)
          cell.style.background = `color-mix(in srgb, var(--heat) ${Math.round(12 + 88 * heat)}%, transparent)`;
        row.append(cell);
      }
      drawn.push(row);
    }
    this.body.replaceChildren(...drawn);
  }

  private indent(row: HTMLElement, cell: HTMLElement, id: number): void {
    const { level, open } = this.levels as Levels;
    const [depth, isOpen] = [level(id), open(id)];
    row.setAttribute("aria-level", String(depth + 1));
    cell.style.paddingLeft = `${8 + Math.min(depth, 40) * 14}px`;
    const sign = element("span", { class: isOpen === undefined ? "turn none" : "turn", "aria-hidden": "true" },
      isOpen === undefined ? "" : isOpen ? "▾" : "▸");
    if (isOpen !== undefined) row.setAttribute("aria-expanded", String(isOpen));
    cell.prepend(sign);
  }

  // The row at the keyboard cursor.
  get current(): number | undefined {
    return this.rows[this.cursor];
  }

  // Scrolls to the row and moves the keyboard cursor there.
  goTo(row: number): void {
    const at = this.rows.indexOf(row);
    if (at < 0) return;
    this.scroller.scrollTop = Math.max(0, at * rowHeight - this.scroller.clientHeight / 3);
    this.move(at);
  }

  // Highlights the row as the selected one.
  light(row: number): void {
    this.chosen = row;
    this.draw();
  }

  // For a spreadsheet: tab-separated cells, one line per row, all rows.
  asText(): string {
    const line = (cells: string[]) => cells.map((cell) => cell.replace(/[\t\n]/g, " ")).join("\t");
    return [line(this.columns.map((column) => column.title)),
      ...this.rows.map((row) => line(this.columns.map((column) => column.text(row))))].join("\n");
  }

  // The next highlighted row.
  step(direction: 1 | -1): void {
    const count = this.rows.length;
    for (let i = 1; i <= count; ++i) {
      const at = (this.cursor + direction * i + count * i) % count;
      if (this.actions.mark(this.rows[at])) return this.move(at);
    }
  }

  private move(to: number): void {
    this.cursor = Math.max(0, Math.min(this.rows.length - 1, to));
    const top = this.cursor * rowHeight;
    const room = this.scroller.clientHeight - 2 * rowHeight; // minus the heads and a row's own height
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.draw();
  }

  // As in other tree views: right opens, left closes; left on a closed row goes to its parent.
  private sideways(row: number, right: boolean): void {
    const { level, open, turn } = this.levels as Levels;
    const isOpen = open(row);
    if (isOpen === !right) return turn(row);
    if (right) return void (isOpen && this.move(this.cursor + 1));
    let above = this.cursor;
    while (above > 0 && level(this.rows[above]) >= level(row)) --above;
    this.move(above);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.scroller) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / rowHeight) - 2);
    const to: Record<string, number> = {
      ArrowDown: this.cursor + 1,
      ArrowUp: this.cursor - 1,
      PageDown: this.cursor + page,
      PageUp: this.cursor - page,
      Home: 0,
      End: this.rows.length - 1,
    };
    const row = this.rows[this.cursor];
    if (event.key in to) this.move(to[event.key]);
    else if (this.levels && (event.key === "ArrowRight" || event.key === "ArrowLeft") && row !== undefined)
      this.sideways(row, event.key === "ArrowRight");
    else if (event.key === "Enter" && row !== undefined) this.actions.choose(row);
    else if ((event.key === "m" || event.key === "ContextMenu") && row !== undefined) {
      const box = this.body.querySelector(".current")?.getBoundingClientRect();
      if (box) this.actions.menu(row, box.left + 60, box.bottom);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
