// Long times during which an event loop did not wait for events, as a table; a row leads to that time in the timeline.
import { Stall } from "../model/head";
import { countWords, timeWords, weightWords } from "../words";
import { columnsFor, MomentTable } from "./parts/moment_table";
import { TableColumn } from "./parts/row_table";
import { shortName } from "./parts/thread_names";
import { Page, View } from "./view";

const name = "stalls";

function columnsOf({ catalogue }: Page): TableColumn[] {
  const { stalls } = catalogue.head;
  const longest = Math.max(1, ...stalls.map(({ wall }) => wall));
  const { text, number } = columnsFor(stalls);
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

function create(page: Page): MomentTable<Stall> {
  const { stalls } = page.catalogue.head;
  const all = weightWords(stalls.reduce((sum, { wall }) => sum + wall, 0), "ns");
  const times = `${countWords(stalls.length)} ${stalls.length === 1 ? "time" : "times"}`;
  const words = stalls.length
    ? `${times} without a wait for events, ${all} in all. Filters do not change this table. Click a row to see it in the timeline.`
    : "No event loop was seen to go without a wait for events for 50 ms or more";
  const note = stalls.every(({ exact }) => exact)
    ? ""
    : "From samples: between two of them, a loop may have waited for events.";
  return new MomentTable(page, name, "Stalls of event loops", stalls, columnsOf(page), "-length", words, note);
}

export const stalls: View = { name, title: "Stalls", place: "main", isOffered: ({ head }) => head.stalls.length > 0,
  create };
