// The slowest single requests, as a table; a row leads to that time in the timeline.
import { RequestPart, SlowRequest } from "../model/head";
import { countWords, weightWords } from "../words";
import { columnsFor, MomentTable } from "./parts/moment_table";
import { TableColumn } from "./parts/row_table";
import { shortName } from "./parts/thread_names";
import { Page, View } from "./view";

const name = "requests";
const mostParts = 3; // in a cell

const partWords = ({ time, words, place }: RequestPart): string =>
  `${weightWords(time, "ns")} ${words}${place && ` in ${place}`}`;

const timesOf = ({ parts }: SlowRequest, awaited: boolean): string =>
  parts.filter((part) => part.awaited === awaited).slice(0, mostParts).map(partWords).join("; ");

function columnsOf({ catalogue }: Page): TableColumn[] {
  const { requests } = catalogue.head;
  const longest = Math.max(1, ...requests.map(({ wall }) => wall));
  const { text, number } = columnsFor(requests);
  return [
    {
      ...number("lasted", "Lasted", "At least, and at most: it began and ended between two readings of the tasks",
        ({ wall }) => wall, ({ lasted }) => lasted),
      bar: (row) => requests[row].wall / longest,
    },
    { ...number("began", "Began", "Since the start of the recording", ({ start }) => start, ({ began }) => began),
      ascending: true },
    text("endpoint", "Endpoint", "The route, or the function that the framework calls", ({ endpoint }) => endpoint),
    text("spent", "Its task",
      "How long its own task awaited something, was ready to run, or ran (no other task could run then); the longest times",
      (request) => timesOf(request, false)),
    text("awaited", "Tasks it waits for",
      "The same for all of these tasks together, so the sum may be longer than the request",
      (request) => timesOf(request, true)),
    text("thread", "Thread", "Of the event loop", ({ thread }) => (thread < 0 ? "" : shortName(catalogue, thread))),
  ];
}

function create(page: Page): MomentTable<SlowRequest> {
  const { requests } = page.catalogue.head;
  const many = requests.length === 1 ? "The slowest request" : `The ${countWords(requests.length)} slowest requests`;
  const words = requests.length
    ? `${many} of servers that run a task for each. Filters do not change this table. Click a row to see it in the timeline.`
    : "No single requests were followed";
  return new MomentTable(page, name, "Slowest requests", requests, columnsOf(page), "-lasted", words);
}

export const requests: View = { name, title: "Requests", place: "main",
  isOffered: ({ head }) => head.requests.length > 0, create };
