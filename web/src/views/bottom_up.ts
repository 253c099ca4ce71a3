// The call tree turned round, as a table: functions by what they spend themselves, beneath each who called it, and on whose behalf.
import { isAwait, unitOf } from "../model/head";
import { button, element } from "../page/dom";
import { SmallTree } from "../model/growing_tree";
import { Kind, Label, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { MenuItem, Page, Showing, View } from "./view";

const name = "bottom-up";
const leastShare = 0.001; // of the whole: what is below is asked for when it is opened
const mostOpen = 200; // in the address

// A row: a function, or its caller, by the labels that lead to it, the function that spends first.
interface Row {
  path: number[];
  label: number;
  total: number;
  samples: number;
  beneath: Row[] | null; // null: not asked for yet
}

// The rows beneath a node of an answer. One that was too light to be grown has no children and nothing of its own.
function rowsOf(tree: SmallTree, node: number, path: number[]): Row[] {
  const rows: Row[] = [];
  for (let child = tree.firstChild[node]; child; child = tree.nextSibling[child]) {
    const here = [...path, tree.label[child]];
    const grown = tree.firstChild[child] !== 0 || tree.self[child] > 0;
    rows.push({ path: here, label: tree.label[child], total: tree.total[child], samples: tree.samples[child],
      beneath: grown ? rowsOf(tree, child, here) : null });
  }
  return rows;
}

function create(page: Page): Showing {
  const latest = new Latest<SmallTree>();
  let roots: Row[] = [];
  let list: Row[] = []; // in sight
  let whole = 0;
  let drawnKey = "";
  let labels: Label[] = [];
  const asked = new Set<Row>();
  const key = () => JSON.stringify([page.state.filters, page.state.show, page.state.weight]);

  const text = (row: Row) => row.path.join(".");
  const openPaths = () => new Set(own(page.state, name, "open").split("_").filter((path) => path));
  const time = (value: number) => weightWords(value, unitOf(page.catalogue.head, page.state.weight));
  const column = (column: Omit<TableColumn, "ascending" | "compare">): TableColumn => ({ ...column, ascending: false,
    compare: () => 0 });
  const columns: TableColumn[] = [
    column({ name: "share", title: "Self",
      about: "Of what is shown: spent in the outermost row's own code, when called along this path", number: true,
      text: (row) => shareWords(list[row].total, whole), bar: (row) => (whole > 0 ? list[row].total / whole : 0) }),
    column({ name: "of-parent", title: "Of the row above",
      about: "Which part of the row that it stands beneath came through this caller", number: true,
      text: (row) => (list[row].path.length > 1 ? shareWords(list[row].total, above(row)) : "") }),
    column({ name: "time", title: "Time", about: "In what the switch above says", number: true,
      text: (row) => time(list[row].total) }),
    column({ name: "samples", title: "Samples", about: "Samples that this row counts", number: true,
      text: (row) => (isAwait(page.catalogue.head, page.state.weight) ? "-" : countWords(list[row].samples)) }),
    column({ name: "name", title: "Function, and beneath it its callers", about: "Open a row to see who called it",
      number: false, text: (row) => labels[list[row].label].full }),
    column({ name: "module", title: "Module", about: "Top package or module; native: the library", number: false,
      text: (row) => labels[list[row].label].module }),
    column({ name: "place", title: "Place", about: "File and line", number: false,
      text: (row) => placeOf(labels[list[row].label]) }),
  ];
  const above = (row: number) => {
    let at = row;
    while (at > 0 && list[at].path.length >= list[row].path.length) --at;
    return list[at].total;
  };
  const pathItem = (row: number): MenuItem => {
    const lines = list[row].path.slice().reverse().map((f) =>
      `${labels[f].full}${labels[f].file ? ` (${placeOf(labels[f])})` : ""}`
    );
    return { text: "Copy this path, outermost first", run: () => page.copy(lines.join("\n")) };
  };
  const rows = new RowTable("Bottom-up", columns, {
    sort: () => undefined,
    menu: (row, x, y) => page.menu([...page.frameItems("function", [list[row].label]), pathItem(row)], x, y),
    choose: turn,
    mark: (row) => page.matches !== null && page.matches.functions[list[row].label] === 1,
  }, {
    level: (row) => list[row].path.length - 1,
    open: (row) => (list[row].beneath?.length === 0 ? undefined : openPaths().has(text(list[row]))),
    turn,
  });
  const words = element("span", "status");
  const open = button("Open the heaviest path", () => openHeaviest(), {
    title: "From the first row along its heaviest caller, as far as one caller has more than half",
  });
  const close = button("Close all", () => page.change(withOwn(page.state, name, "open", ""), "aside"), {});
  const copy = button("Copy table", () => page.copy(rows.asText()), {
    title: "All rows in sight, as text for a spreadsheet",
  });
  const view = element("section", { class: "bottom-up", "aria-label": "Bottom-up" },
    element("div", "toolbar", words, open, close, copy), rows.element);

  function setOpen(paths: Set<string>): void {
    page.change(withOwn(page.state, name, "open", Array.from(paths).slice(-mostOpen).join("_")), "aside");
  }

  function turn(row: number): void {
    const paths = openPaths();
    const path = text(list[row]);
    if (list[row].beneath?.length === 0) return;
    if (!paths.delete(path)) paths.add(path);
    setOpen(paths);
  }

  function openHeaviest(): void {
    const paths = openPaths();
    let row: Row | undefined = roots[0];
    for (let depth = 0; row && depth < mostOpen; ++depth) {
      if (row.beneath?.length === 0) break;
      paths.add(text(row));
      const next: Row | undefined = row.beneath?.[0];
      if (!next || next.total * 2 < row.total) break;
      row = next;
    }
    setOpen(paths);
  }

  // What is open but was too light to come with the first answer.
  function ask(row: Row): void {
    if (asked.has(row)) return;
    asked.add(row);
    const wanted = drawnKey;
    void page.ask("bottomUp", { weight: page.state.weight, leastShare: 2, path: row.path }).then((tree) => {
      if (wanted !== drawnKey) return;
      let node = 0;
      for (const label of row.path) {
        node = tree.firstChild[node];
        while (node && tree.label[node] !== label) node = tree.nextSibling[node];
        if (!node) break;
      }
      row.beneath = node ? rowsOf(tree, node, row.path) : [];
      draw();
    });
  }

  function draw(): void {
    const paths = openPaths();
    list = [];
    const add = (all: Row[]) => {
      for (const row of all) {
        list.push(row);
        if (!paths.has(text(row))) continue;
        if (row.beneath) add(row.beneath);
        else ask(row);
      }
    };
    add(roots);
    rows.show(list.map((_, i) => i), "");
    words.textContent = `${countWords(roots.length)} functions by what they spend themselves, shares of what is shown`;
    page.drawn();
  }

  return {
    element: view,
    show: () => {
      const { weight } = page.state;
      latest.ask(key(), () => page.ask("bottomUp", { weight, leastShare, path: [] }), (tree) => {
        labels = page.labels("function");
        whole = tree.total[0];
        roots = rowsOf(tree, 0, []).filter((row) => row.total > 0 && labels[row.label].kind !== Kind.marker);
        drawnKey = key();
        asked.clear();
        draw();
      });
      if (drawnKey === key()) draw();
    },
    keys: [
      ...tableKeys("open or close the row, as → and ← do"),
      { on: "n", shown: "n  N", meaning: "next, previous match", run: () => rows.step(1) },
      { on: "N", shown: "", meaning: "", run: () => rows.step(-1) },
      { on: "x", shown: "x", meaning: "open the heaviest path", run: openHeaviest },
      { on: "t", shown: "t", meaning: "copy the table", run: () => page.copy(rows.asText()) },
    ],
  };
}

export const bottomUp: View = { name, title: "Bottom-up", place: "main", create };
