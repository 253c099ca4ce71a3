// What threads waited for, as a table: how long, where, and the waker or GIL holder.
import { button, element, setText } from "../page/dom";
import { Query } from "../model/filters";
import { everywhere, WaitRows } from "../model/questions/wait_rows";
import { WaitRow } from "../model/wait_sums";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, nativeWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { shortName } from "./parts/thread_names";
import { placeWords, whomWords } from "./parts/wait_words";
import { MenuItem, Page, Showing, View } from "./view";

const name = "waits";
const mostRows = 5000;

function create(page: Page): Showing {
  const { catalogue } = page;
  const latest = new Latest<WaitRows>();
  let waited: WaitRows | null = null;
  let drawnKey = ""; // the question it answers
  // Always includes waiting for work, like the wait tables of `phlox report`.
  const query = (): Query => ({ filters: page.state.filters, show: "everything" });
  const key = () => JSON.stringify(query());
  const at = (row: number) => (waited as WaitRows).rows[row];

  const text = (column: string, title: string, about: string, words: (row: WaitRow) => string): TableColumn => ({
    name: column,
    title,
    about,
    number: false,
    ascending: true,
    text: (row) => words(at(row)),
    compare: (a, b) => {
      const [x, y] = [words(at(a)), words(at(b))];
      return x < y ? -1 : x > y ? 1 : 0;
    },
  });
  const number = (column: string, title: string, about: string, value: (row: WaitRow) => number,
    words: (value: number) => string): TableColumn => ({
      name: column,
      title,
      about,
      number: true,
      ascending: false,
      text: (row) => words(value(at(row))),
      compare: (a, b) => value(at(a)) - value(at(b)),
    });
  const partWords = (part: number) => (part > 0 ? shareWords(part, 1) : "-");
  const whole = () => (waited as WaitRows).whole;
  const columns: TableColumn[] = [
    number("time", "Time", "Of all threads together", ({ wall }) => wall, (ns) => weightWords(ns, "ns")),
    {
      ...number("share", "Share", "Of the time of all threads that the filters let pass", ({ wall }) => wall,
        (ns) => shareWords(ns, whole())),
      bar: (row) => at(row).wall / Math.max(1, whole()),
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

  function itemsOf({ place, by, byPlace, whom }: WaitRow): MenuItem[] {
    const items = place ? page.frameItems("line", [place]) : [];
    const short = by >= 0 ? shortName(catalogue, by) : "";
    if (short)
      items.unshift({ text: `Only thread ${short}, which ${whom === "held" ? "held it" : "ended it"}`,
        run: () => page.change(withFilter(page.state, { field: "thread", mode: "in", values: [by] })) });
    if (byPlace)
      items.push({ text: whom === "held" ? "Copy the holder" : "Copy what ended it",
        run: () => page.copy(`${short || "?"} in ${placeWords(page, byPlace)}`) });
    return items;
  }

  const isHit = (place: number) =>
    page.matches !== null && place > 0 && page.matches.functions[catalogue.places.function[place]] === 1;
  const rows = new RowTable("Waits", columns, {
    sort: (sort) => page.change(withOwn(page.state, name, "sort", sort), "aside"),
    menu: (row, x, y) => page.menu(itemsOf(at(row)), x, y),
    choose: (row) => at(row).place > 0 && page.frameItems("line", [at(row).place])[0]?.run(),
    mark: (row) => isHit(at(row).place) || isHit(at(row).byPlace),
    dim: (row) => 2 * at(row).idle > at(row).wall,
  });
  const words = element("span", "status");
  const note = element("span", "notes");
  const copy = button("Copy table", () => page.copy(rows.asText()), { title: "All rows, as text for a spreadsheet" });
  const view = element("section", { class: "waits", "aria-label": "Waits" },
    element("div", "toolbar", words, copy, note), rows.element);

  // How reliable the table is.
  function noteWords(): string {
    const exact = catalogue.recordings.map(({ exactWaits }) => exactWaits);
    const notes = [exact.every((one) => one) ?
      "Wait times are exact, from the scheduler. What ended a wait is shown if the wait took a millisecond or more and the recording proves it."
      : exact.some((one) => one) ?
      "Only one of the recordings knows what ended a wait (--way kernel)."
      : "From samples: waits between two samples are not known. Only a recording of --way kernel knows what ended a wait."];
    if (catalogue.head.merged) notes.push("Which thread held the GIL is not known: the page was merged to fit.");
    return notes.join(" ");
  }

  function draw(): void {
    if (!waited) return;
    rows.show(Array.from(waited.rows.keys()), own(page.state, name, "sort"));
    const { waited: time, whole: all, leftOut } = waited;
    const idle = waited.rows.some(({ idle, wall }) => 2 * idle > wall) ? " Grey: for something to do." : "";
    setText(words, waited.rows.length
      ? `Threads waited ${weightWords(time, "ns")} of ${weightWords(all, "ns")}, all that the filters let pass${
        leftOut ? `; ${countWords(leftOut)} shorter rows are left out` : ""
      }.${idle}`
      : "In nothing that the filters let pass a thread is known to wait");
    setText(note, waited.rows.length ? noteWords() : "");
    page.drawn();
  }

  return {
    element: view,
    show: () => {
      latest.ask(key(), () => page.ask("waitRows", { ...everywhere, most: mostRows, detail: "place" }, query()),
        (answer) => {
          waited = answer;
          drawnKey = key();
          draw();
        });
      if (drawnKey === key()) draw();
    },
    keys: [
      ...tableKeys("only stacks through where it waits"),
      { on: "n", shown: "n", meaning: "next match", run: () => rows.step(1) },
      { on: "N", shown: "N", meaning: "previous match", run: () => rows.step(-1) },
      { on: "t", shown: "t", meaning: "copy the table", run: () => page.copy(rows.asText()) },
    ],
  };
}

export const waits: View = { name, title: "Waits", place: "main", create };
