// Compares two parts of the recording, or two recordings: as a table and as flame graphs, merged or side by side. The
// unit is seconds, for time ranges seconds per second; grey means no certain difference.
import { button, choice, element, factTable } from "../page/dom";
import { CallTree, nodeAlong, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { everything } from "../model/filters";
import { By, isAwait, unitOf } from "../model/head";
import { ChangedTree, Changes, Difference, Per, Side } from "../model/questions/difference";
import { ThreadTotals } from "../model/questions/threads";
import { Kind, Label, placeOf } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, pointsWords, shareWords, weightWords } from "../words";
import { Flame, FlameCanvas, leftOutWords } from "./parts/flame_canvas";
import { Latest } from "./parts/latest";
import { RowTable, TableColumn, tableKeys } from "./parts/row_table";
import { Busiest, busiestTwo, Chosen, chosenSides, sidesBar } from "./parts/sides";
import { Page, Picture, Showing, View } from "./view";

const name = "difference";

type As = "table" | "merged" | "beside";
type Part = "self" | "total";
type Which = "all" | "changed" | "new" | "vanished";

const asTitles: [As, string][] = [["table", "Table"], ["merged", "Flame graph"], ["beside", "Side by side"]];
const whichTitles: [Which, string][] = [["all", "All"], ["changed", "What changed"], ["new", "New"], ["vanished",
  "Vanished"]];

function create(page: Page): Showing {
  const latestTable = new Latest<Difference>();
  const latestTree = new Latest<[CallTree, ChangedTree]>();
  const latestBusiest = new Latest<ThreadTotals>();
  let busiest: Busiest | null = null; // nothing to show until then
  let found: Difference | null = null;
  let foundKey = "";
  let tree: CallTree | null = null;
  let changed: ChangedTree | null = null;
  let treeKey = "";
  let labels: Label[] = [];
  let by: By = "function";
  let hits = new Uint8Array(0);

  const option = <T extends string>(key: string, all: readonly (readonly [T, string])[]) =>
    all.find(([value]) => value === own(page.state, name, key))?.[0] ?? all[0][0];
  const set = (key: string, value: string, how?: "step" | "aside") =>
    page.change(withOwn(page.state, name, key, value), how);
  const as = () => option("as", asTitles);
  const part = () => option<Part>("part", [["total", ""], ["self", ""]]);
  const which = () => option("rows", whichTitles);
  const widths = () => option<"after" | "before">("widths", [["after", ""], ["before", ""]]);
  const chosen = (): Chosen =>
    chosenSides(page, [own(page.state, name, "a"), own(page.state, name, "b")], busiest as Busiest);
  const key = () =>
    JSON.stringify([page.state.filters, page.state.show, page.state.by, page.state.weight, chosen().sides]);
  const time = (value: number) => weightWords(value, unitOf(page.catalogue.head, page.state.weight));
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

  // ---- the table ------------------------------------------------------------------------------------------------
  const changes = (): Changes => (found as Difference)[part()];
  const share = (side: "before" | "after", row: number) => {
    const whole = (found as Difference)[side].total;
    return whole > 0 ? changes()[side][row] / whole : 0;
  };
  const verdict = (row: number) => {
    const { certain, before, after, difference } = changes();
    if (!certain[row]) return changes().same[row] ? "same" : "inconclusive";
    return before[row] === 0 ? "new" : after[row] === 0 ? "vanished" : difference[row] > 0 ? "grew" : "shrank";
  };
  const isCertain = (row: number) =>
    (found as Difference).self.certain[row] === 1 || (found as Difference).total.certain[row] === 1;
  const size = (row: number) => Math.abs(changes().difference[row]) * (changes().certain[row] ? 1e6 : 1);
  // With the unit of the comparison: "4.70 s", "388 ms/s".
  const amount = (value: number, per: Per) =>
    time(per === "second" && unitOf(page.catalogue.head, page.state.weight) === "ns" ? value * 1e9 : value) +
    (per === "second" ? "/s" : "");
  const change = (value: number, per = (found as Difference).per) =>
    `${value > 0 ? "+" : value < 0 ? "−" : ""}${amount(Math.abs(value), per)}`;
  const text = (of: (row: number) => string) => ({ text: of,
    compare: (a: number, b: number) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) });
  const number = (column: Pick<TableColumn, "name" | "title" | "about" | "text">,
    value: (row: number) => number): TableColumn => ({
      ...column,
      number: true,
      ascending: false,
      compare: (a, b) => value(a) - value(b),
    });
  const columns = ([first, second]: [string, string]): TableColumn[] => [
    { name: "size", title: "Change",
      about:
        "Of the time, or of the time in each second of recording: the greatest first, then what is not seen to differ",
      number: true, ascending: false, text: (row) => change(changes().difference[row]),
      compare: (a, b) => size(a) - size(b) },
    number({ name: "interval", title: "99 %", about: "99 % interval of the change", text: (
      row,
    ) => (isAwait(page.catalogue.head, page.state.weight)
      ? "-"
      : `${change(changes().low[row])} to ${change(changes().high[row])}`) }, (row) => changes().low[row]),
    { name: "verdict", title: "Verdict",
      about:
        "Whether these two differ by more than sampling makes in one of a hundred comparisons, and by more than a tenth; same: they do not; inconclusive: too few samples to say",
      number: false, ascending: true, ...text(verdict) },
    number({ name: "before", title: capital(first), about: `Share of all that is shown of ${first}`,
      text: (row) => shareWords(changes().before[row], (found as Difference).before.total) },
      (row) => share("before", row)),
    number({ name: "before-time", title: "Time", about: `In ${first}`, text: (row) => time(changes().before[row]) },
      (row) => changes().before[row]),
    number({ name: "after", title: capital(second), about: `Share of all that is shown of ${second}`,
      text: (row) => shareWords(changes().after[row], (found as Difference).after.total) },
      (row) => share("after", row)),
    number({ name: "after-time", title: "Time", about: `In ${second}`, text: (row) => time(changes().after[row]) },
      (row) => changes().after[row]),
    { name: "name", title: "Function", about: "By name", number: false, ascending: true,
      ...text((row) => labels[row].full) },
    { name: "module", title: "Module", about: "Top package or module; native: the library", number: false,
      ascending: true, ...text((row) => labels[row].module) },
    { name: "place", title: "Place", about: "File and line", number: false, ascending: true,
      ...text((row) => placeOf(labels[row])) },
  ];
  const makeTable = (words: [string, string]) =>
    new RowTable("Difference", columns(words), {
      sort: (sort) => set("sort", sort, "aside"),
      menu: (row, x, y) => page.menu(page.frameItems(by, [row]), x, y),
      choose: (row) => page.frameItems(by, [row])[0]?.run(),
      mark: (row) => page.matches !== null && page.matches.functions[functionOf(page.catalogue, by, row)] === 1,
      dim: (row) => !changes().certain[row],
    });
  let rows = makeTable(["first", "second"]);
  let rowsFor = "first second";

  // ---- the flame graphs -----------------------------------------------------------------------------------------
  const makeCanvas = (label: string): FlameCanvas => {
    const canvas: FlameCanvas = new FlameCanvas(page, label, {
      zoom: zoomTo,
      menu: (node, x, y) => {
        if (node > 0)
          page.menu([{ text: "Zoom into it", run: () => zoomTo(node) },
            ...page.frameItems(by, pathTo(tree as CallTree, node))], x, y);
      },
      upward: () => false,
      shown: (
        done,
      ) => (notes.textContent = leftOutWords(done,
        (weight) => shareWords(weight, canvas.flame ? canvas.flame.total[0] : 0))),
    });
    canvas.element.addEventListener("focus", () => (active = canvas));
    return canvas;
  };
  const notes = element("span", "notes");
  const left = makeCanvas("Flame graph of the first side");
  const right = makeCanvas("Flame graph of the second side");
  let active = right;
  const leftHead = element("p", "side-head");
  const rightHead = element("p", "side-head");

  function zoomTo(node: number): void {
    left.hover.away();
    right.hover.away();
    left.cursor = right.cursor = node;
    if (tree) set("zoom", pathTo(tree, node).join("."));
  }

  function tip(node: number): Node {
    const { before, after, beforeSamples, afterSamples, difference, steps } = changed as ChangedTree;
    const label = labels[(tree as CallTree).label[node]];
    const { words: [first, second] } = chosen();
    const line = (word: string, part: Float64Array,
      samples: Float64Array): [string, ...string[]] => [word, shareWords(part[node], part[0]), time(part[node]),
      isAwait(page.catalogue.head, page.state.weight) ? "" : `${countWords(samples[node])} samples`];
    const content = element("div", {}, element("div", "name", label.full));
    const place = [label.kind === Kind.native ? label.module : "", placeOf(label)].filter((text) => text).join(": ");
    if (place) content.append(element("div", "place", place));
    content.append(
      factTable([line(first, before, beforeSamples), line(second, after, afterSamples), ["change",
        change(difference[node], (changed as ChangedTree).per)], ["change of the share",
        pointsWords(before[0] && after[0] ? after[node] / after[0] - before[node] / before[0] : 0)]]),
    );
    const verdict = !steps[node]
      ? "Not seen to differ."
      : before[node] === 0
      ? `New: nothing of it in ${first}.`
      : after[node] === 0
      ? `Vanished: nothing of it in ${second}.`
      : "";
    if (node && verdict) content.append(element("div", "place", verdict));
    return content;
  }

  function flameOf(side: "before" | "after"): Flame {
    const { steps, before, after, difference } = changed as ChangedTree;
    const { label } = tree as CallTree;
    return {
      tree: tree as CallTree,
      total: (changed as ChangedTree)[side],
      labels,
      hits,
      tip,
      fill: (node) => (node === 0 ? page.fill(labels[0]) : page.changeFill(steps[node])),
      spoken: (node) =>
        `${labels[label[node]].name}, ${shareWords(before[node], before[0])}, then ${
          shareWords(after[node], after[0])
        }, ${steps[node] || !node ? change(difference[node], (changed as ChangedTree).per) : "not seen to differ"}`,
    };
  }

  // ---- combined -------------------------------------------------------------------------------------------------
  const bar = sidesBar(page, () => busiest as Busiest,
    (a, b) => page.change({ own: { ...page.state.own, [`${name}.a`]: a, [`${name}.b`]: b } }));
  const asChoice = choice<As>("Shown as", asTitles, (value) => set("as", value));
  const partChoice = choice<Part>("Which time of a function", [["total", "With what it calls"], ["self",
    "Its own code"]], (value) => set("part", value));
  const whichChoice = choice<Which>("Which rows", whichTitles, (value) => set("rows", value));
  const widthChoice = choice<"after" | "before">("Widths", [["after", ""], ["before", ""]],
    (value) => set("widths", value));
  const reset = button("Reset zoom", () => zoomTo(0), { title: "Home" });
  const copy = button("Copy table", () => page.copy(rows.asText()), { title: "All rows, as text for a spreadsheet" });
  const words = element("p", { class: "counts", "aria-live": "polite" });
  const legend = element("span", "legend");
  const room = element("div", "room");
  const view = element("section", { class: "difference", "aria-label": "Difference" }, bar.element,
    element("div", "toolbar", asChoice.element, partChoice.element, whichChoice.element, copy, widthChoice.element,
      reset, legend, notes), words, room);

  const sideWords = (side: Side) =>
    `${time(side.total)}${
      page.state.weight === "samples" || isAwait(page.catalogue.head, page.state.weight)
        ? ""
        : `, ${countWords(side.samples)} samples`
    }`;
  const lengths = ({ before, after, per }: Difference) => {
    const cpu = ({ cpu, elapsed }: Side) => weightWords(per === "second" ? (cpu / elapsed) * 1e9 : cpu, "ns");
    const length = ({ elapsed }: Side) => weightWords(elapsed, "ns");
    if (!before.elapsed || !after.elapsed) return "";
    if (per === "second")
      return `Of ${length(before)} and ${length(after)}; CPU time ${cpu(before)} of each second became ${cpu(after)}. `;
    return `${length(before)} became ${length(after)}; CPU time ${cpu(before)} became ${cpu(after)}. `;
  };

  function drawWords(): void {
    const { words: [first, second], kind } = chosen();
    const { before, after, per, seen, atMost } = found as Difference;
    let [certain, unclear, others] = [0, 0, 0];
    eachRow((row) => (isCertain(row) ? ++certain : isUnclear(row) ? ++unclear : ++others));
    const what = (count: number) =>
      `${countWords(count)} ${by === "line" ? "line" : "function"}${count === 1 ? "" : "s"}`;
    words.replaceChildren(
      kind === "recordings" ? element("b", {}, lengths(found as Difference)) : lengths(found as Difference),
      element("b", {}, capital(first)),
      `: ${sideWords(before)}. `,
      element("b", {}, capital(second)),
      `: ${sideWords(after)}. `,
    );
    if (!before.total || !after.total)
      words.append(element("b", {}, `Nothing is shown of ${before.total ? second : first}.`));
    else if (isAwait(page.catalogue.head, page.state.weight))
      words.append(
        "The page does not say whether they differ: it does not have the sampling error of await time. phlox diff --weight await does.",
      );
    else words.append(element("b", {}, what(certain)), ` differ${certain === 1 ? "s" : ""}`, unclear > 0
        ? `; for ${what(unclear)}, there are too few samples to see a difference below ${amount(seen, per)}.`
        : `; none of the others differs by more than ${amount(atMost, per)}.`,
        kind === "recordings" ? " Two recordings cannot show whether other runs differ too." : "");
  }

  // Enough weight to be judged, but too few samples.
  function isUnclear(row: number): boolean {
    const { self, total, before, after, margin, per } = found as Difference;
    const scaled = (value: number, side: Side) => (per === "second"
      ? value / side.elapsed * (unitOf(page.catalogue.head, page.state.weight) === "ns" ? 1 : 1e9)
      : value);
    return [self, total].some((part) =>
      !part.certain[row] && !part.same[row] &&
      Math.max(scaled(part.before[row], before), scaled(part.after[row], after)) >= margin.least
    );
  }

  function eachRow(run: (row: number) => void): void {
    const { total } = found as Difference;
    for (let row = 1; row < labels.length; ++row)
      if (labels[row].kind !== Kind.marker && (total.before[row] > 0 || total.after[row] > 0)) run(row);
  }

  const isWanted: Record<Which, (row: number) => boolean> = {
    all: () => true,
    changed: isCertain,
    new: (row) => isCertain(row) && (found as Difference).total.before[row] === 0,
    vanished: (row) => isCertain(row) && (found as Difference).total.after[row] === 0,
  };

  function drawTable(): void {
    const { words } = chosen();
    if (rowsFor !== words.join(" ")) {
      rows = makeTable(words);
      rowsFor = words.join(" ");
    }
    if (room.firstElementChild !== rows.element) room.replaceChildren(rows.element);
    const there: number[] = [];
    eachRow((row) => isWanted[which()](row) && there.push(row));
    rows.show(there, own(page.state, name, "sort"));
  }

  function drawFlames(fresh: boolean): void {
    if (!tree || !changed) return;
    const path = own(page.state, name, "zoom");
    const zoom = /^\d+(\.\d+)*$/.test(path) ? nodeAlong(tree, path.split(".").map(Number)) : 0;
    const sideBySide = as() === "beside";
    const wanted: [FlameCanvas, HTMLElement, "before" | "after"][] = sideBySide
      ? [[left, leftHead, "before"], [right, rightHead, "after"]]
      : [[right, rightHead, widths()]];
    const { names } = chosen();
    if (!sideBySide) active = right;
    if (room.childElementCount !== wanted.length || room.firstElementChild?.contains(wanted[0][0].element) !== true) {
      room.replaceChildren(...wanted.map(([canvas, head]) => element("div", "side", head, canvas.element)));
    }
    for (let label = 1; label < hits.length; ++label)
      hits[label] = page.matches
        ? page.matches.functions[functionOf(page.catalogue, by, label)]
        : 0;
    for (const [canvas, head, side] of wanted) {
      const totals = changed[side];
      let at = zoom;
      while (at !== 0 && totals[at] <= 0) at = tree.parent[at];
      head.textContent = sideBySide ? names[side === "before" ? 0 : 1] : "";
      head.hidden = !sideBySide;
      canvas.show(flameOf(side), at, fresh || shownSide !== as() + side);
      if (!sideBySide) shownSide = as() + side;
    }
    if (sideBySide) shownSide = "";
    reset.disabled = zoom === 0;
  }
  let shownSide = "";

  function drawLegend(): void {
    const chip = (step: number, text: string) => {
      const box = element("i", "swatch");
      box.style.background = page.changeFill(step);
      return element("span", {}, box, text);
    };
    legend.replaceChildren(...legendEntries().map(([step, text]) => chip(step, text)));
  }

  function show(): void {
    if (!busiest) {
      latestBusiest.ask("whole", () => page.ask("threads", {}, everything), (totals) => {
        busiest = busiestTwo(page.catalogue, totals);
        show();
      });
      return;
    }
    const now = chosen();
    bar.show(now);
    const flames = as() !== "table";
    asChoice.show(as());
    partChoice.show(part());
    whichChoice.show(which());
    widthChoice.show(widths());
    widthChoice.element.querySelectorAll("button").forEach((one,
      i) => (one.textContent = `Widths of ${now.words[i ? 0 : 1]}`)
    );
    for (const one of [partChoice.element, whichChoice.element, copy]) one.hidden = flames;
    for (const one of [reset, legend, notes]) one.hidden = !flames;
    widthChoice.element.hidden = as() !== "merged";
    const { weight } = page.state;
    const asked = key();
    const byNow = page.state.by;
    latestTable.ask(asked, () => page.ask("difference", { sides: now.sides, by: byNow, weight }), (answer) => {
      found = answer;
      foundKey = asked;
      if (by !== byNow || hits.length === 0) {
        by = byNow;
        labels = page.labels(by);
        hits = new Uint8Array(labels.length);
      }
      draw(true);
    });
    if (flames) {
      drawLegend();
      latestTree.ask(asked, () =>
        Promise.all([page.shape(byNow), page.ask("changedTree", { sides: now.sides, by: byNow, weight })]),
        ([shape, answer]) => {
          [tree, changed, treeKey] = [shape, answer, asked];
          draw(true);
        });
    }
    draw(false);
  }

  function draw(fresh: boolean): void {
    if (foundKey !== key()) return;
    drawWords();
    if (as() === "table") drawTable();
    else if (treeKey === key()) drawFlames(fresh);
    page.drawn();
  }

  const legendEntries = (): [number, string][] => [[5, "more time"], [-5, "less"], [0, "not seen to differ"]];

  function pictures(): Picture[] {
    if (isTable() || !busiest) return [];
    const { names } = chosen();
    const entries = legendEntries().map(([step, text]): [string, string] => [page.changeFill(step), text]);
    const words = `${names[0]} against ${names[1]}`;
    if (as() === "merged")
      return right.pictures("difference", `${words}; widths of the ${widths() === "after" ? "second" : "first"}`,
        entries);
    return [...left.pictures("difference, first side", words, entries),
      ...right.pictures("difference, second side", words, entries)];
  }

  const isTable = () => as() === "table";
  return {
    element: view,
    show,
    pictures,
    keys: [
      ...tableKeys("only stacks through it"),
      ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((on, i) => ({
        on,
        shown: i ? "" : "← → ↑ ↓",
        meaning: i ? "" : "move from frame to frame",
        run: () => isTable() || active.move(on),
      })),
      { on: "Enter", shown: "Enter", meaning: "zoom into the frame",
        run: () => !isTable() && active.cursor >= 0 && zoomTo(active.cursor) },
      { on: "Escape", shown: "Esc", meaning: "reset the search, or the zoom",
        run: () => (page.state.search ? page.change({ search: "" }, "aside") : zoomTo(0)) },
      { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => zoomTo(0) },
      { on: "m", shown: "m", meaning: "menu of the frame", run: () => active.openMenu() },
      { on: "n", shown: "n  N", meaning: "next, previous match",
        run: () => (isTable() ? rows.step(1) : active.step(1)) },
      { on: "N", shown: "", meaning: "", run: () => (isTable() ? rows.step(-1) : active.step(-1)) },
      { on: "v", shown: "v", meaning: "table, flame graph, side by side",
        run: () => set("as", asTitles[(asTitles.findIndex(([value]) => value === as()) + 1) % asTitles.length][0]) },
      { on: "b", shown: "b", meaning: "widths of the one side or the other",
        run: () => set("widths", widths() === "after" ? "before" : "after") },
      { on: "c", shown: "c", meaning: "copy the frame's name",
        run: () => tree && !isTable() && active.cursor > 0 && page.copy(labels[tree.label[active.cursor]].full) },
      { on: "t", shown: "t", meaning: "copy the table", run: () => isTable() && page.copy(rows.asText()) },
    ],
  };
}

export const difference: View = { name, title: "Difference", place: "main", create };
