// The slowest single requests, as a table; a row leads to that time in the timeline.
import { button, element, setText } from "../page/dom";
import { Filter } from "../model/filters";
import { RequestPart, SlowRequest } from "../model/head";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, timeWords, weightWords } from "../words";
import { numberColumn, RowTable, TableColumn, tableKeys, textColumn } from "./parts/row_table";
import { InSight } from "./parts/sight";
import { shortName } from "./parts/thread_names";
import { Key, Page, Showing, View } from "./view";

const name = "requests";
const air = 0.2; // of a request's length, shown on either side
const mostParts = 3; // in a cell

const partWords = ({ time, words, place }: RequestPart): string =>
  `${weightWords(time, "ns")} ${words}${place && ` in ${place}`}`;

const timesOf = ({ parts }: SlowRequest, awaited: boolean): string =>
  parts.filter((part) => part.awaited === awaited).slice(0, mostParts).map(partWords).join("; ");

function columnsOf({ catalogue }: Page): TableColumn[] {
  const { requests } = catalogue.head;
  const longest = Math.max(1, ...requests.map(({ wall }) => wall));
  const text = (name: string, title: string, about: string, words: (request: SlowRequest) => string) =>
    textColumn(name, title, about, (row) => words(requests[row]));
  const number = (name: string, title: string, about: string, value: (request: SlowRequest) => number,
    words: (request: SlowRequest) => string) =>
    numberColumn(name, title, about, (row) => value(requests[row]), (row) => words(requests[row]));
  return [
    {
      ...number("lasted", "Lasted", "At least, and at most: it began and ended between two readings of the tasks",
        ({ wall }) => wall, ({ lasted }) => lasted),
      bar: (row) => requests[row].wall / longest,
    },
    { ...number("began", "Began", "Since the start of the recording", ({ start }) => start, ({ began }) => began),
      ascending: true },
    text("endpoint", "Endpoint", "The route, or the function that the framework calls", ({ endpoint }) => endpoint),
    text("spent", "Its task", "What its own task awaited for the longest, was ready to run, or ran",
      (request) => timesOf(request, false)),
    text("awaited", "Tasks it waits for", "The same of these, all together: it may be longer than the request",
      (request) => timesOf(request, true)),
    text("thread", "Thread", "Of the event loop", ({ thread }) => (thread < 0 ? "" : shortName(catalogue, thread))),
  ];
}

class Requests implements Showing {
  readonly element: HTMLElement;
  private readonly inSight = new InSight(this.page);
  private readonly requests = this.page.catalogue.head.requests;
  private readonly rows = new RowTable("Slowest requests", columnsOf(this.page), {
    sort: (sort) => this.page.change(withOwn(this.page.state, name, "sort", sort), "aside"),
    menu: (row, x, y) => this.menu(this.requests[row], x, y),
    pick: (row) => this.see(this.requests[row]),
    choose: (row) => this.see(this.requests[row]),
    mark: () => false,
  });
  private readonly words = element("span", "status");

  constructor(private readonly page: Page) {
    const copy = button("Copy table", () => this.copy(), { title: "All rows, as text for a spreadsheet" });
    this.element = element("section", { class: "requests", "aria-label": "Slowest requests" },
      element("div", "toolbar", this.words, copy), this.rows.element);
  }

  readonly keys: Key[] = [
    ...tableKeys("that time in the timeline"),
    { on: "t", shown: "t", meaning: "copy the table", run: () => this.copy() },
  ];

  show(): void {
    const { requests } = this;
    this.rows.show(Array.from(requests.keys()), own(this.page.state, name, "sort") || "-lasted");
    const many = requests.length === 1 ? "The slowest request" : `The ${countWords(requests.length)} slowest requests`;
    setText(this.words, requests.length
      ? `${many} of servers that run a task for each, whatever the filters let pass. Click a row to see it in the timeline.`
      : "No single requests were followed");
    this.page.drawn();
  }

  private copy(): void {
    this.page.copy(this.rows.asText());
  }

  private see({ start, wall }: SlowRequest): void {
    this.inSight.see({ from: start - wall * air, to: start + wall * (1 + air) }, true);
    this.page.say(`the timeline shows ${timeWords(start, wall / 10)}`);
  }

  private menu(request: SlowRequest, x: number, y: number): void {
    const { page } = this;
    const { start, wall, thread } = request;
    const only = (filter: Filter) => () => page.change(withFilter(page.state, filter));
    page.menu([
      { text: "Show in the timeline", run: () => this.see(request) },
      { text: "Only this time",
        run: only({ field: "time", mode: "in", from: Math.round(start), to: Math.round(start + wall) }) },
      ...(thread < 0 ?
        [] :
        [{ text: `Only thread ${shortName(page.catalogue, thread)}`,
          run: only({ field: "thread", mode: "in", values: [thread] }) }]),
    ], x, y);
  }
}

export const requests: View = { name, title: "Requests", place: "main",
  isOffered: ({ head }) => head.requests.length > 0, create: (page) => new Requests(page) };
