// What threads waited for, as a table: how long, where, and the waker or GIL holder.
import { button, element, setText } from "../page/dom";
import { Catalogue } from "../model/catalogue";
import { Query } from "../model/filters";
import { everywhere, WaitRows } from "../model/questions/wait_rows";
import { WaitRow } from "../model/wait_sums";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, nativeWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./parts/row_table";
import { shortName } from "./parts/thread_names";
import { placeWords, whomWords } from "./parts/wait_words";
import { Key, MenuItem, Page, Showing, View } from "./view";

const name = "waits";
const mostRows = 5000;

const partWords = (part: number) => (part > 0 ? shareWords(part, 1) : "-");

// How reliable the table is.
function noteWords({ recordings, head }: Catalogue): string {
  const exact = recordings.map(({ exactWaits }) => exactWaits);
  const notes = [exact.every((one) => one)
    ? "Wait times are exact, from the scheduler. What ended a wait is shown if the wait took a millisecond or more and the recording proves it."
    : exact.some((one) => one)
    ? "Only one of the recordings knows what ended a wait (--mode kernel)."
    : "From samples: waits between two samples are not known. Only a recording of --mode kernel knows what ended a wait."];
  if (head.merged) notes.push("Which thread held the GIL is not known: the page was merged to fit.");
  return notes.join(" ");
}

class WaitsView implements Showing {
  readonly element: HTMLElement;
  private readonly latest = new Latest<WaitRows>();
  private waited: WaitRows = { rows: [], waited: 0, whole: 0, leftOut: 0 };
  private drawnKey = ""; // the question it answers
  private readonly table = new RowTable("Waits", this.columns(), {
    sort: (sort) => this.page.change(withOwn(this.page.state, name, "sort", sort), "aside"),
    menu: (row, x, y) => this.page.menu(this.itemsOf(this.at(row)), x, y),
    choose: (row) => this.at(row).place > 0 && this.page.frameItems("line", [this.at(row).place])[0]?.run(),
    mark: (row) => this.isHit(this.at(row).place) || this.isHit(this.at(row).byPlace),
    dim: (row) => 2 * this.at(row).idle > this.at(row).wall,
  });
  private readonly words = element("span", "status");
  private readonly note = element("span", "notes");

  constructor(private readonly page: Page) {
    const copy = button("Copy table", () => this.copy(), { title: "All rows, as text for a spreadsheet" });
    this.element = element("section", { class: "waits", "aria-label": "Waits" },
      element("div", "toolbar", this.words, copy, this.note), this.table.element);
  }

  readonly keys: Key[] = [
    ...tableKeys("only stacks through where it waits"),
    { on: "n", shown: "n", meaning: "next match", run: () => this.table.step(1) },
    { on: "N", shown: "N", meaning: "previous match", run: () => this.table.step(-1) },
    { on: "t", shown: "t", meaning: "copy the table", run: () => this.copy() },
  ];

  show(): void {
    // Always includes waiting for work, like the wait tables of `phlox report`.
    const query: Query = { filters: this.page.state.filters, show: "everything" };
    const key = JSON.stringify(query);
    const question = { ...everywhere, most: mostRows, detail: "place" as const };
    this.latest.ask(key, () => this.page.ask("waitRows", question, query), (answer) => {
      this.waited = answer;
      this.drawnKey = key;
      this.draw();
    });
    if (this.drawnKey === key) this.draw();
  }

  private draw(): void {
    const { rows, waited: time, whole, leftOut } = this.waited;
    this.table.show(Array.from(rows.keys()), own(this.page.state, name, "sort"));
    const idle = rows.some(({ idle, wall }) => 2 * idle > wall) ? " Grey: for something to do." : "";
    const of = `${weightWords(time, "ns")} of ${weightWords(whole, "ns")}`;
    const more = leftOut ? `; ${countWords(leftOut)} shorter rows are left out` : "";
    setText(this.words, rows.length
      ? `Threads waited ${of}, all that the filters let pass${more}.${idle}`
      : "In nothing that the filters let pass a thread is known to wait");
    setText(this.note, rows.length ? noteWords(this.page.catalogue) : "");
    this.page.drawn();
  }

  private copy(): void {
    this.page.copy(this.table.asText());
  }

  private at(row: number): WaitRow {
    return this.waited.rows[row];
  }

  private isHit(place: number): boolean {
    const { matches, catalogue } = this.page;
    return matches !== null && place > 0 && matches.functions[catalogue.places.function[place]] === 1;
  }

  private itemsOf({ place, by, byPlace, whom }: WaitRow): MenuItem[] {
    const { page } = this;
    const items = place ? page.frameItems("line", [place]) : [];
    const short = by >= 0 ? shortName(page.catalogue, by) : "";
    if (short) {
      items.unshift({ text: `Only thread ${short}, which ${whom === "held" ? "held it" : "ended it"}`, run: () =>
        page.change(withFilter(page.state, { field: "thread", mode: "in", values: [by] })) });
    }
    if (byPlace) {
      items.push({ text: whom === "held" ? "Copy the holder" : "Copy what ended it", run: () =>
        page.copy(`${short || "?"} in ${placeWords(page, byPlace)}`) });
    }
    return items;
  }

  private columns(): TableColumn[] {
    const { page } = this;
    const text = (name: string, title: string, about: string, words: (row: WaitRow) => string) =>
      textColumn(name, title, about, (row) => words(this.at(row)));
    const number = (name: string, title: string, about: string, value: (row: WaitRow) => number,
      words: (value: number) => string) =>
      numberColumn(name, title, about, (row) => value(this.at(row)), (row) => words(value(this.at(row))));
    return [
      number("time", "Time", "Of all threads together", ({ wall }) => wall, (ns) => weightWords(ns, "ns")),
      {
        ...number("share", "Share", "Of the time of all threads that the filters let pass", ({ wall }) => wall,
          (ns) => shareWords(ns, this.waited.whole)),
        bar: (row) => this.at(row).wall / Math.max(1, this.waited.whole),
      },
      number("threads", "Threads", "That waited", ({ threads }) => threads, countWords),
      number("idle", "Idle", "That part of it was for something to do", ({ idle, wall }) => idle / Math.max(1, wall),
        partWords),
      number("not-known", "Not known",
        "For this part it is not known whether the thread waited for something to do or for something that it needs",
        ({ unknown, wall }) => unknown / Math.max(1, wall), partWords),
      text("for", "Waits for", "And in which system call", ({ words }) => words),
      text("where", "Where",
        "The function that asked for it, outside of what the standard library waits with; for the GIL and a CPU the innermost Python function",
        ({ place }) => placeWords(page, place) || "(no Python frames)"),
      text("whom", "Ended by",
        "What released the lock, put into the queue, wrote to the pipe, or the wait's own timeout; empty: not known. Of the GIL, what held it meanwhile",
        (row) => (row.whom === "held" ? `held by ${whomWords(page, row)}` : whomWords(page, row))),
      text("beneath", "Most native time in",
        "The native function beneath it in which it waited longest; only recordings with --native know it",
        ({ native, nativeShare }) => (native ? nativeWords(page.labels("function")[native], nativeShare) : "")),
      text("whom-where", "Which was in", "The function in which it did that, or in which it held the GIL",
        ({ byPlace }) => placeWords(page, byPlace)),
    ];
  }
}

export const waits: View = { name, title: "Waits", place: "main", create: (page) => new WaitsView(page) };
