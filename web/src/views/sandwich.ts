// One function between who calls it and what it calls: every path into it, and where its time goes. Chosen from the list beside
// it, or from the menu of a frame in any view.
import { isAwait, unitOf } from "../model/head";
import { button, element, factTable } from "../page/dom";
import { functionOf } from "../model/catalogue";
import { pathTo } from "../model/call_tree";
import { SmallTree } from "../model/growing_tree";
import { Sandwich } from "../model/questions/sandwich";
import { Table } from "../model/questions/table";
import { isWithin, Kind, Label, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { colourBar, fills } from "./parts/colours";
import { FlameCanvas, leftOutWords } from "./parts/flame_canvas";
import { Latest } from "./parts/latest";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { Page, Showing, View } from "./view";

const name = "sandwich";
const title = "Callers and callees";
const leastShare = 0.0005; // of the function's total: a pixel of two thousand

// Zooms were of another function's trees.
function choice(page: Page, f: number): ReturnType<typeof withOwn> {
  const unzoomed = { ...page.state, ...withOwn(page.state, name, "callers", "") };
  return withOwn({ ...unzoomed, ...withOwn(unzoomed, name, "callees", "") }, name, "of", String(f));
}

function create(page: Page): Showing {
  const latestTable = new Latest<Table>();
  const latest = new Latest<Sandwich>();
  const labels = page.labels("function");
  let table: Table | null = null;
  let tableKey = "";
  let drawn: Sandwich | null = null;
  let drawnKey = "";
  let active: "callers" | "callees" = "callees";

  const queryKey = () => JSON.stringify([page.state.filters, page.state.show]);
  const key = () => JSON.stringify([queryKey(), page.state.weight, chosen()]);
  const time = (value: number) => weightWords(value, unitOf(page.catalogue.head, page.state.weight));
  const amount = (side: "self" | "total", row: number) => (table ? table[side][page.state.weight][row] : 0);
  const whole = () => amount("total", 0);
  const isShown = (f: number) => f > 0 && f < labels.length && amount("total", f) > 0;
  // What was asked for, or what the list begins with.
  const chosen = () => {
    const text = own(page.state, name, "of");
    const f = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    return f > 0 && f < labels.length ? f : list.rows[0] ?? 0;
  };

  const share = (side: "self" | "total", title: string, about: string): TableColumn => ({
    name: side,
    title,
    about,
    number: true,
    ascending: false,
    text: (row) => shareWords(amount(side, row), whole()),
    bar: (row) => (whole() > 0 ? amount(side, row) / whole() : 0),
    compare: (a, b) => amount(side, a) - amount(side, b),
  });
  const list = new RowTable("Functions to choose from", [
    share("self", "Self", "Spent in its own code"),
    share("total", "Total", "With everything that it calls"),
    { name: "name", title: "Function", about: "By name", number: false, ascending: true,
      text: (row) => labels[row].full,
      compare: (a, b) => (labels[a].full < labels[b].full ? -1 : labels[a].full > labels[b].full ? 1 : 0) },
  ], {
    sort: (text) => page.change(withOwn(page.state, name, "sort", text), "aside"),
    menu: (row, x, y) => page.menu(page.frameItems("function", [row]), x, y),
    choose: (row) => page.change(choice(page, row)),
    pick: (row) => page.change(choice(page, row)),
    mark: (row) => page.matches !== null && page.matches.functions[row] === 1,
  });

  const colours = colourBar(page);
  const head = element("p", { class: "chosen", "aria-live": "polite" });
  const halves = { callers: half("callers", "Callers, outward", true),
    callees: half("callees", "Callees, inward", false) };
  const view = element("section", { class: "sandwich", "aria-label": title }, element("div", "choose", list.element),
    element("div", "halves", head, element("div", "toolbar", colours.element), halves.callers.element,
      halves.callees.element));

  function half(side: "callers" | "callees", label: string, upward: boolean) {
    const notes = element("span", "notes");
    const back = button("Reset zoom", () => zoomTo(0), { title: "Home" });
    const heading = element("div", "toolbar", element("b", {}, label), back, notes);
    const zoomTo = (node: number) => {
      canvas.hover.away();
      canvas.cursor = node;
      if (drawn) page.change(withOwn(page.state, name, side, pathTo(drawn[side], node).join(".")));
    };
    const canvas = new FlameCanvas(page, label, {
      zoom: zoomTo,
      upward: () => upward,
      menu: (node, x, y) => {
        page.menu([{ text: "Zoom into it", run: () => zoomTo(node) }, ...page.frameItems("function", stackTo(node))], x,
          y);
      },
      shown: (done) => {
        back.disabled = canvas.zoom === 0;
        notes.textContent = leftOutWords(done, (weight) => shareWords(weight, treeOf().total[0]));
      },
    });
    const treeOf = () => (drawn as Sandwich)[side];
    // What is known of the stack that leads to a frame: of a caller nothing.
    const stackTo = (
      node: number,
    ) => (upward ? [treeOf().label[node]] : [treeOf().label[0], ...pathTo(treeOf(), node)]);
    canvas.element.addEventListener("focus", () => (active = side));
    const tip = (node: number) => {
      const tree = treeOf();
      const label = labels[tree.label[node]];
      const of = labels[tree.label[0]].name;
      const facts: [string, string][] = [
        [`share of ${of}`, shareWords(tree.total[node], tree.total[0])],
        ["share of what is shown", shareWords(tree.total[node], whole())],
        ["time", time(tree.total[node])],
        ["samples", countWords(tree.samples[node])],
      ].filter(([word]) => word !== "samples" || !isAwait(page.catalogue.head, page.state.weight)) as [string,
        string][];
      if (canvas.zoom && isWithin(tree, node, canvas.zoom))
        facts.splice(1, 0, ["share of the zoomed frame", shareWords(tree.total[node], tree.total[canvas.zoom])]);
      const content = element("div", {}, element("div", "name", label.full));
      const place = [label.kind === Kind.native ? label.module : "", placeOf(label)].filter((text) => text).join(": ");
      if (place) content.append(element("div", "place", place));
      content.append(factTable(facts));
      return content;
    };
    const spoken = (node: number) =>
      `${labels[treeOf().label[node]].name}, ${shareWords(treeOf().total[node], treeOf().total[0])} of ${
        labels[treeOf().label[0]].name
      }`;
    const hits = new Uint8Array(labels.length);
    const show = (fresh: boolean) => {
      const tree: SmallTree = treeOf();
      for (let f = 1; f < labels.length; ++f) hits[f] = page.matches ? page.matches.functions[f] : 0;
      const path = own(page.state, name, side);
      let zoom = 0;
      for (const label of /^\d+(\.\d+)*$/.test(path) ? path.split(".").map(Number) : []) {
        let child = tree.firstChild[zoom];
        while (child && tree.label[child] !== label) child = tree.nextSibling[child];
        if (!child) break;
        zoom = child;
      }
      canvas.show({ tree, total: tree.total, labels, hits, fill: fills(page, tree, labels, tree.self), tip, spoken },
        zoom, fresh);
    };
    return { element: element("div", `half ${side}`, heading, canvas.element), canvas, show, zoomTo };
  }

  function draw(fresh: boolean): void {
    colours.show();
    const f = chosen();
    if (!drawn || !table) return;
    const label: Label = labels[f];
    const { total } = drawn.callees;
    head.replaceChildren(element("b", {}, label.full), ` ${placeOf(label)}: `,
      element("b", {}, shareWords(total[0], whole())),
      ` of what is shown, ${time(total[0])}; ${time(amount("self", f))} of it in its own code${
        isAwait(page.catalogue.head, page.state.weight) ? "" : `, ${countWords(drawn.callees.samples[0])} samples`
      }`);
    for (const side of ["callers", "callees"] as const) {
      halves[side].show(fresh);
      if (fresh) halves[side].canvas.scrollToRoot();
    }
    page.drawn();
  }

  function showList(): void {
    const there: number[] = [];
    for (let f = 1; f < labels.length; ++f) if (isShown(f) && labels[f].kind !== Kind.marker) there.push(f);
    list.show(there, own(page.state, name, "sort"));
    list.light(chosen());
  }

  const canvas = () => halves[active].canvas;
  return {
    element: view,
    show: () => {
      latestTable.ask(queryKey(), () => page.ask("table", { by: "function", natives: true }), (answer) => {
        table = answer;
        tableKey = queryKey();
        showing();
      });
      if (tableKey === queryKey()) showing();
      function showing(): void {
        showList();
        const f = chosen();
        if (!f) return head.replaceChildren("Nothing is shown.");
        latest.ask(key(), () => page.ask("sandwich", { function: f, weight: page.state.weight, leastShare }),
          (answer) => {
            drawn = answer;
            drawnKey = key();
            draw(true);
          });
        if (drawnKey === key()) draw(false);
      }
    },
    pictures: () => [
      ...halves.callers.canvas.pictures("callers", head.textContent ?? "", colours.legend()),
      ...halves.callees.canvas.pictures("callees", head.textContent ?? "", colours.legend()),
    ],
    keys: [
      ...tableKeys("look at the function"),
      ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((on, i) => ({
        on,
        shown: i ? "" : "← → ↑ ↓",
        meaning: i ? "" : "move from frame to frame of the half in focus",
        run: () => canvas().move(on),
      })),
      { on: "o", shown: "o", meaning: "the other half: callers or callees", run: () => {
        active = active === "callers" ? "callees" : "callers";
        canvas().element.focus();
      } },
      { on: "Enter", shown: "Enter", meaning: "zoom into the frame",
        run: () => canvas().cursor >= 0 && halves[active].zoomTo(canvas().cursor) },
      { on: "Escape", shown: "Esc", meaning: "reset the zoom, or the search",
        run: () => (page.state.search ? page.change({ search: "" }, "aside") : halves[active].zoomTo(0)) },
      { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => halves[active].zoomTo(0) },
      { on: "m", shown: "m", meaning: "menu of the frame", run: () => canvas().openMenu() },
      { on: "c", shown: "c", meaning: "copy the frame's name",
        run: () => drawn && canvas().cursor >= 0 && page.copy(labels[drawn[active].label[canvas().cursor]].full) },
      { on: "n", shown: "n  N", meaning: "next, previous match in the list", run: () => list.step(1) },
      { on: "N", shown: "", meaning: "", run: () => list.step(-1) },
    ],
  };
}

export const sandwich: View = {
  name,
  title,
  place: "main",
  create,
  items: (page, by, path) => {
    const f = functionOf(page.catalogue, by, path[path.length - 1]);
    const { name: short } = page.labels("function")[f];
    return [{ text: `${title} of ${short.length > 60 ? `${short.slice(0, 59)}…` : short}`,
      run: () => page.change({ view: name, ...choice(page, f) }) }];
  },
};
