// Long times during which an event loop did not wait for events, as a table; a row leads to that time in the timeline.
import { button, element, setText } from "../page/dom";
import { Filter } from "../model/filters";
import { Stall } from "../model/head";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, timeWords, weightWords } from "../words";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./parts/row_table";
import { InSight } from "./parts/sight";
import { shortName } from "./parts/thread_names";
import { Key, Page, Showing, View } from "./view";

const name = "stalls";
const air = 0.2; // of a stall's length, shown on either side

function columnsOf({ catalogue }: Page): TableColumn[] {
  const { stalls } = catalogue.head;
  const longest = Math.max(1, ...stalls.map(({ wall }) => wall));
  const text = (name: string, title: string, about: string, words: (stall: Stall) => string) =>
    textColumn(name, title, about, (row) => words(stalls[row]));
  const number = (name: string, title: string, about: string, value: (stall: Stall) => number,
    words: (stall: Stall) => string) =>
    numberColumn(name, title, about, (row) => value(stalls[row]), (row) => words(stalls[row]));
  return [
    {
      ...number("length", "Length",
        "From one wait for events to the next; of two lengths, what one turn took at least, and that",
        ({ wall }) => wall, ({ length }) => length),
      bar: (row) => stalls[row].wall / longest,
    },
    {
      ...number("at", "At", "Since the start of the recording", ({ start }) => start,
        ({ start, wall }) => timeWords(start, wall / 10)),
      ascending: true,
    },
    text("turns", "Turns",
      "One is proved by a single wait. A poll that did not wait is not in the recording, so there may have been several",
      ({ oneTurn }) => (oneTurn ? "one" : "one or more")),
    text("in", "In", "The line that took longest", ({ place }) => place),
    text("did", "What it did", "For most of the time", ({ words }) => words),
    number("callbacks", "Callbacks", "Different functions that the loop was found to have called",
      ({ callbacks }) => callbacks, ({ callbacks }) => countWords(callbacks)),
    text("thread", "Thread", "Of the loop", ({ thread }) => shortName(catalogue, thread)),
  ];
}

class Stalls implements Showing {
  readonly element: HTMLElement;
  private readonly inSight = new InSight(this.page);
  private readonly stalls = this.page.catalogue.head.stalls;
  private readonly rows = new RowTable("Stalls of event loops", columnsOf(this.page), {
    sort: (sort) => this.page.change(withOwn(this.page.state, name, "sort", sort), "aside"),
    menu: (row, x, y) => this.menu(this.stalls[row], x, y),
    pick: (row) => this.see(this.stalls[row]),
    choose: (row) => this.see(this.stalls[row]),
    mark: () => false,
  });
  private readonly words = element("span", "status");
  private readonly note = element("span", "notes");

  constructor(private readonly page: Page) {
    const copy = button("Copy table", () => this.copy(), { title: "All rows, as text for a spreadsheet" });
    this.element = element("section", { class: "stalls", "aria-label": "Stalls of event loops" },
      element("div", "toolbar", this.words, copy, this.note), this.rows.element);
  }

  readonly keys: Key[] = [
    ...tableKeys("that time in the timeline"),
    { on: "t", shown: "t", meaning: "copy the table", run: () => this.copy() },
  ];

  show(): void {
    const { stalls } = this;
    this.rows.show(Array.from(stalls.keys()), own(this.page.state, name, "sort") || "-length");
    const all = weightWords(stalls.reduce((sum, { wall }) => sum + wall, 0), "ns");
    const times = `${countWords(stalls.length)} ${stalls.length === 1 ? "time" : "times"}`;
    setText(this.words, stalls.length
      ? `${times} without a wait for events, ${all} in all, whatever the filters let pass. Click a row to see it in the timeline.`
      : "No event loop was seen to go without a wait for events for 50 ms or more");
    setText(this.note, stalls.every(({ exact }) => exact)
      ? ""
      : "From samples: between two of them, a loop may have waited for events.");
    this.page.drawn();
  }

  private copy(): void {
    this.page.copy(this.rows.asText());
  }

  private see({ start, wall }: Stall): void {
    this.inSight.see({ from: start - wall * air, to: start + wall * (1 + air) }, true);
    this.page.say(`the timeline shows ${timeWords(start, wall / 10)}`);
  }

  private menu(stall: Stall, x: number, y: number): void {
    const { page } = this;
    const { start, wall, thread } = stall;
    const only = (filter: Filter) => () => page.change(withFilter(page.state, filter));
    page.menu([
      { text: "Show in the timeline", run: () => this.see(stall) },
      { text: "Only this time",
        run: only({ field: "time", mode: "in", from: Math.round(start), to: Math.round(start + wall) }) },
      { text: `Only thread ${shortName(page.catalogue, thread)}`,
        run: only({ field: "thread", mode: "in", values: [thread] }) },
    ], x, y);
  }
}

export const stalls: View = { name, title: "Stalls", place: "main", isOffered: ({ head }) => head.stalls.length > 0,
  create: (page) => new Stalls(page) };
