// Functions or lines, as a table with self and total time.
import { button, choice, element } from "../page/dom";
import { functionOf } from "../model/catalogue";
import { By, isAwait, unitOf } from "../model/head";
import { beneath } from "../model/questions/beneath";
import { intervals } from "../model/questions/intervals";
import { Table } from "../model/questions/table";
import { Kind, Label, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, nativeWords, rangeWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { Page, Showing, View } from "./view";

type Beneath = ReturnType<typeof beneath>;
type Intervals = ReturnType<typeof intervals>;

function create(page: Page): Showing {
  const latest = new Latest<Table>();
  const latestIntervals = new Latest<Intervals>();
  const latestBeneath = new Latest<Beneath>();
  let under: Beneath | null = null;
  let underKey = ""; // the question it answers
  let certain: Intervals | null = null;
  let certainKey = ""; // the question the intervals answer
  let table: Table | null = null;
  let by: By = "function";
  let labels: Label[] = [];
  let drawnKey = ""; // the question the table answers
  const natives = () => own(page.state, "functions", "native") === "1";
  const key = () => JSON.stringify([page.state.filters, page.state.show, page.state.by, natives()]);

  const amount = (side: "self" | "total", row: number) => (table as Table)[side][page.state.weight][row];
  const share = (side: "self" | "total", row: number) => {
    const whole = amount("total", 0);
    return whole > 0 ? amount(side, row) / whole : 0;
  };
  const time = (value: number) => weightWords(value, unitOf(page.catalogue.head, page.state.weight));
  const byText = (text: (row: number) => string) => (a: number, b: number) => {
    const [x, y] = [text(a), text(b)];
    return x < y ? -1 : x > y ? 1 : 0;
  };
  const interval = (side: "self" | "total", row: number) => {
    if (isAwait(page.catalogue.head, page.state.weight)) return "-"; // how far chance moves it is not known
    if (!certain || certainKey !== keyOfIntervals()) return "…";
    return rangeWords(certain[side].low[row], certain[side].high[row]);
  };
  const keyOfIntervals = () => JSON.stringify([key(), page.state.weight]);
  const pair = (side: "self" | "total", title: string, about: string): TableColumn[] => [
    { name: side, title, about, number: true, ascending: false,
      text: (row) => shareWords(amount(side, row), amount("total", 0)), bar: (row) => share(side, row),
      compare: (a, b) => amount(side, a) - amount(side, b) },
    { name: `${side}-time`, title: `${title} time`, about, number: true, ascending: false,
      text: (row) => time(amount(side, row)), compare: (a, b) => amount(side, a) - amount(side, b) },
    { name: `${side}-interval`, title: `${title} 99 %`,
      about: `99 % interval of the share: the sampling error of this recording. ${about}`, number: true,
      ascending: false, text: (row) => interval(side, row),
      compare: (a, b) => certain ? certain[side].low[a] - certain[side].low[b] : 0 },
  ];
  // As in `phlox report`: nativeWords.
  const beneathWords = (row: number) => {
    if (!under || underKey !== keyOfIntervals()) return "";
    if (under.library[row]) return `${under.library[row]} ${shareWords(under.share[row], 1)} of CPU`;
    return under.native[row] ? nativeWords(page.labels("function")[under.native[row]], under.share[row]) : "";
  };
  const columns: TableColumn[] = [
    ...pair("self", "Self", "Spent in its own code, and in native code beneath a Python function"),
    ...pair("total", "Total", "With everything that it calls; a function that calls itself counts once"),
    { name: "samples", title: "Samples", about: "Samples with it on the stack", number: true, ascending: false, text: (
      row,
    ) => (isAwait(page.catalogue.head, page.state.weight) ? "-" : countWords((table as Table).total.samples[row])),
      compare: (a, b) => (table as Table).total.samples[a] - (table as Table).total.samples[b] },
    { name: "name", title: "Function", about: "By name", number: false, ascending: true,
      text: (row) => labels[row].full, compare: byText((row) => labels[row].full) },
    { name: "module", title: "Module", about: "Top package or module; native: the library", number: false,
      ascending: true, text: (row) => labels[row].module, compare: byText((row) => labels[row].module) },
    { name: "place", title: "Place", about: "File and line", number: false, ascending: true,
      text: (row) => placeOf(labels[row]), compare: byText((row) => placeOf(labels[row])) },
    { name: "beneath", title: "Most native time in",
      about:
        "The native function beneath it with most of its own time, and that part of it. Recorded without --native: the library in whose C code most of its CPU time is; --native shows its functions",
      number: false, ascending: true, text: beneathWords, compare: byText(beneathWords) },
  ];
  const functionAt = (row: number) => functionOf(page.catalogue, by, row);
  const rows = new RowTable("Functions", columns, {
    sort: (text) => page.change(withOwn(page.state, "functions", "sort", text), "aside"),
    menu: (row, x, y) => page.menu(page.frameItems(by, [row]), x, y),
    choose: (row) => page.frameItems(by, [row])[0]?.run(),
    mark: (row) => page.matches !== null && page.matches.functions[functionAt(row)] === 1,
  });
  // The page's own choice, repeated where a user looks for a table of lines.
  const rowsAre = choice<By>("A row is", [["function", "Functions"], ["line", "Lines"]],
    (value) => page.change({ by: value }));
  // Off: native code beneath a Python function is a column of that function's row.
  const callees = choice<"" | "1">("Native code", [["", "Python"], ["1", "Python and native"]],
    (value) => page.change(withOwn(page.state, "functions", "native", value), "aside"), {
    "": "Native code that Python calls is a column of the Python function's row",
    "1": "Native functions that Python calls are rows as well: their time is in two rows",
  });
  callees.element.hidden = !page.catalogue.functions.kind.some((kind) => kind === Kind.native);
  const words = element("span", "status");
  const copy = button("Copy table", () => page.copy(rows.asText()), { title: "All rows, as text for a spreadsheet" });
  const view = element("section", { class: "functions", "aria-label": "Functions" },
    element("div", "toolbar", rowsAre.element, callees.element, words, copy), rows.element);

  function draw(): void {
    if (!table) return;
    const there: number[] = [];
    for (let row = 1; row < labels.length; ++row) {
      if (amount("total", row) > 0 && labels[row].kind !== Kind.marker) there.push(row);
    }
    rows.show(there, own(page.state, "functions", "sort"));
    const inLibraries = under !== null && underKey === keyOfIntervals() && under.library.some((name) => name);
    words.textContent = `${countWords(there.length)} ${by === "line" ? "lines" : "functions"}, ${
      isAwait(page.catalogue.head, page.state.weight) ? "shares are" : "shares and their 99 % intervals are"
    } of what is shown${inLibraries ? "; what C code does that time is in, --native shows" : ""}`;
    page.drawn();
  }

  return {
    element: view,
    show: () => {
      const { state } = page;
      rowsAre.show(state.by);
      callees.show(natives() ? "1" : "");
      latest.ask(key(), () => page.ask("table", { by: state.by, natives: natives() }), (answer) => {
        table = answer;
        drawnKey = key();
        by = state.by;
        labels = page.labels(by);
        draw();
      });
      latestIntervals.ask(keyOfIntervals(),
        () => page.ask("intervals", { by: state.by, weight: state.weight, natives: natives() }), (answer) => {
        certain = answer;
        certainKey = keyOfIntervals();
        draw();
      });
      latestBeneath.ask(keyOfIntervals(), () => page.ask("beneath", { by: state.by, weight: state.weight }),
        (answer) => {
          under = answer;
          underKey = keyOfIntervals();
          draw();
        });
      if (drawnKey === key()) draw();
    },
    keys: [
      ...tableKeys("only stacks through it"),
      { on: "n", shown: "n", meaning: "next match", run: () => rows.step(1) },
      { on: "N", shown: "N", meaning: "previous match", run: () => rows.step(-1) },
      { on: "t", shown: "t", meaning: "copy the table", run: () => page.copy(rows.asText()) },
    ],
  };
}

export const functions: View = { name: "functions", title: "Functions and lines", place: "main", create };
