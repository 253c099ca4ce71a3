// Long times during which an event loop did not wait for events, as a table; a row leads to that time in the timeline.
import { button, element, setText } from "../page/dom";
import { Stall } from "../model/head";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, timeWords, weightWords } from "../words";
import { InSight } from "./parts/sight";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { shortName } from "./parts/thread_names";
import { Page, Showing, View } from "./view";

const name = "stalls";
const air = 0.2; // of a stall's length, shown on either side

function create(page: Page): Showing {
  const { catalogue } = page;
  const { stalls } = catalogue.head;
  const inSight = new InSight(page);

  const text = (column: string, title: string, about: string, words: (stall: Stall) => string): TableColumn => ({
    name: column,
    title,
    about,
    number: false,
    ascending: true,
    text: (row) => words(stalls[row]),
    compare: (a, b) => {
      const [x, y] = [words(stalls[a]), words(stalls[b])];
      return x < y ? -1 : x > y ? 1 : 0;
    },
  });
  const number = (column: string, title: string, about: string, value: (stall: Stall) => number,
    words: (stall: Stall) => string): TableColumn => ({
      name: column,
      title,
      about,
      number: true,
      ascending: false,
      text: (row) => words(stalls[row]),
      compare: (a, b) => value(stalls[a]) - value(stalls[b]),
    });
  const longest = Math.max(1, ...stalls.map(({ wall }) => wall));
  const columns: TableColumn[] = [
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

  function see({ start, wall }: Stall): void {
    inSight.see({ from: start - wall * air, to: start + wall * (1 + air) }, true);
    page.say(`the timeline shows ${timeWords(start, wall / 10)}`);
  }

  const rows = new RowTable("Stalls of event loops", columns, {
    sort: (sort) => page.change(withOwn(page.state, name, "sort", sort), "aside"),
    menu: (row, x, y) => {
      const { start, wall, thread } = stalls[row];
      page.menu([
        { text: "Show in the timeline", run: () => see(stalls[row]) },
        { text: "Only this time", run: () =>
          page.change(
            withFilter(page.state, { field: "time", mode: "in", from: Math.round(start),
              to: Math.round(start + wall) }),
          ) },
        { text: `Only thread ${shortName(catalogue, thread)}`,
          run: () => page.change(withFilter(page.state, { field: "thread", mode: "in", values: [thread] })) },
      ], x, y);
    },
    pick: (row) => see(stalls[row]),
    choose: (row) => see(stalls[row]),
    mark: () => false,
  });
  const words = element("span", "status");
  const copy = button("Copy table", () => page.copy(rows.asText()), { title: "All rows, as text for a spreadsheet" });
  const note = element("span", "notes");
  const view = element("section", { class: "stalls", "aria-label": "Stalls of event loops" },
    element("div", "toolbar", words, copy, note), rows.element);

  return {
    element: view,
    show: () => {
      rows.show(Array.from(stalls.keys()), own(page.state, name, "sort") || "-length");
      const all = stalls.reduce((sum, { wall }) => sum + wall, 0);
      setText(words, stalls.length
        ? `${countWords(stalls.length)} ${stalls.length === 1 ? "time" : "times"} without a wait for events, ${
          weightWords(all, "ns")
        } in all, whatever the filters let pass. Click a row to see it in the timeline.`
        : "No event loop was seen to go without a wait for events for 50 ms or more");
      setText(note, stalls.every(({ exact }) => exact)
        ? ""
        : "From samples: between two of them, a loop may have waited for events.");
      page.drawn();
    },
    keys: [...tableKeys("that time in the timeline"), { on: "t", shown: "t", meaning: "copy the table",
      run: () => page.copy(rows.asText()) }],
  };
}

export const stalls: View = { name, title: "Stalls", place: "main", isOffered: ({ head }) => head.stalls.length > 0,
  create };
