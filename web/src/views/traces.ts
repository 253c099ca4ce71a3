// The longest distributed traces, as a table. A row shows its trace alone: its times are marked in the timeline, and
// the other views have its samples only.
import { TraceRow } from "../model/head";
import { countWords, shareWords, timeWords, weightWords } from "../words";
import { columnsFor, MomentTable } from "./parts/moment_table";
import { TableColumn } from "./parts/row_table";
import { Page, View } from "./view";

const name = "traces";

function columnsOf({ catalogue }: Page): TableColumn[] {
  const { longest } = catalogue.head.traces;
  const most = Math.max(1, ...longest.map(({ wall }) => wall));
  const { text, number } = columnsFor(longest);
  const ns = (value: number) => (value > 0 ? weightWords(value, "ns") : "");
  return [
    {
      ...number("lasted", "Lasted", "From its first sample to its last, over all threads", ({ wall }) => wall,
        ({ wall }) => weightWords(wall, "ns")),
      bar: (row) => longest[row].wall / most,
    },
    {
      ...number("seen", "First seen", "Since the start of the recording", ({ start }) => start,
        ({ start, wall }) => timeWords(start, wall / 10)),
      ascending: true,
    },
    number("cpu", "CPU", "Of all threads that worked for it", ({ cpu }) => cpu, ({ cpu }) => ns(cpu)),
    number("waits", "Waits", "Of all threads that worked for it, for anything", ({ waiting }) => waiting,
      ({ waiting }) => ns(waiting)),
    number("threads", "Threads", "That worked for it", ({ threads }) => threads, ({ threads }) => countWords(threads)),
    number("processes", "Processes", "Of these threads", ({ processes }) => processes,
      ({ processes }) => countWords(processes)),
    text("in", "Mostly in", "The function of the program in which its threads were longest", ({ place }) => place),
    text("endpoint", "Endpoint", "The one with most of its time", ({ endpoint }) => endpoint),
    text("trace", "Trace", "Its id", ({ id }) => id),
  ];
}

function create(page: Page): MomentTable<TraceRow & { thread: number }> {
  const { count, time, of: all, leftOut, longest } = page.catalogue.head.traces;
  const rows = longest.map((row) => ({ ...row, thread: -1 }));
  const listed = longest.length < count ? `, the ${countWords(longest.length)} longest are listed` : "";
  const [many, of] = count === 1 ? ["1 trace", "it"] : [`${countWords(count)} traces`, "them"];
  const words = `${many}${listed}. The threads worked for ${of} in ${
    shareWords(time, all)
  } of their time, without waiting for work. Click a row to see that trace alone.`;
  const missing = leftOut ? `${countWords(leftOut)} short times of traces had no room in the page.` : "";
  return new MomentTable(page, name, "Traces", rows, columnsOf(page), "-lasted", words,
    `A trace shorter than the sampling interval may have no sample. ${missing}`.trim(), {
    filters: (
      { id },
    ) => [...page.state.filters.filter(({ field }) => field !== "trace"), { field: "trace", mode: "in", values: [id] }],
    mark: ({ id }) => page.state.filters.some((filter) => filter.field === "trace" && filter.values.includes(id)),
  });
}

export const traces: View = { name, title: "Traces", place: "main",
  isOffered: ({ head }) => head.traces.longest.length > 0, create };
