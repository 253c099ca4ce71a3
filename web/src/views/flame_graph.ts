// The merged flame graph: stacks with the same outer frames share boxes.
import { button, element, factTable, setContent, setDisabled, setText } from "../page/dom";
import { CallTree, nodeAlong, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { By, isAwait, unitOf } from "../model/head";
import { Column, isWithin, Kind, Label, placeOf } from "../model/tree";
import { Layout } from "../layout/flame";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { colourBar, fills } from "./parts/colours";
import { Flame, FlameCanvas, leftOutWords } from "./parts/flame_canvas";
import { Latest } from "./parts/latest";
import { HoverWaits } from "./parts/hover_waits";
import { Page, Showing, View } from "./view";

const name = "flame";

interface Drawn {
  by: By;
  tree: CallTree;
  column: Column;
  labels: Label[];
  flame: Flame;
  key: string; // the question
}

function create(page: Page): Showing {
  const latest = new Latest<[CallTree, Column]>();
  const turn = button("", () => flip(), { class: "turn" });
  const back = button("Back", () => stepBack(), { title: "One zoom back (Esc)" });
  const reset = button("Reset zoom", () => zoomTo(0), { title: "Home" });
  const only = button("Only this", () => itemsOf(canvas.zoom)[0]?.run(), {
    title: "Only stacks through the zoomed function",
  });
  const without = button("Without this", () => itemsOf(canvas.zoom)[1]?.run(), {
    title: "Without stacks through the zoomed function",
  });
  const zoomWords = element("span", { class: "zoomed", "aria-live": "polite" });
  const notes = element("span", "notes");
  const colours = colourBar(page);
  const canvas = new FlameCanvas(page, "Flame graph", { zoom: zoomTo, menu: openMenu, upward: isFlame,
    shown: drawWords });
  const view = element("section", { class: "flame", "aria-label": "Flame graph" },
    element("div", "toolbar", turn, back, reset, only, without, colours.element, zoomWords, notes), canvas.element);

  const waits = new HoverWaits(page);
  let drawn: Drawn | null = null;
  let hitsOf: Page["matches"] = null;
  let trail: string[] = []; // previous zooms, as in the address

  function isFlame(): boolean {
    return own(page.state, name, "turn") === "flame";
  }
  const seen = (
    samples: number,
  ) => (isAwait(page.catalogue.head, page.state.weight) ? "" : `, ${countWords(samples)} samples`);
  const amount = (value: number) => weightWords(value, unitOf(page.catalogue.head, page.state.weight));
  const itemsOf = (node: number) => (drawn ? page.frameItems(drawn.by, pathTo(drawn.tree, node)) : []);

  function latestKey(): string {
    return JSON.stringify([page.state.filters, page.state.show, page.state.by, page.state.weight]);
  }

  function drawWords(done: Layout): void {
    const { tree, column, labels } = drawn as Drawn;
    const { zoom } = canvas;
    setText(turn, isFlame() ? "Root on top" : "Root at the bottom");
    setDisabled([reset, back, only, without], zoom === 0);
    const called = labels[tree.label[zoom]].name;
    const words = zoom
      ? `: ${shareWords(column.total[zoom], column.total[0])} of what is shown, ${amount(column.total[zoom])}${
        seen(column.samples[zoom])
      }`
      : "";
    setContent(zoomWords, zoom ? called + words : "",
      () => (zoom ? ["Zoomed into ", element("b", {}, called), words] : []));
    setText(notes, leftOutWords(done, (weight) => shareWords(weight, column.total[0])));
  }

  function tipOf(node: number): Node {
    const { tree, column, labels } = drawn as Drawn;
    const { zoom } = canvas;
    const label = labels[tree.label[node]];
    const whole = column.total[0];
    const facts: [string, ...string[]][] = [["share of what is shown", shareWords(column.total[node], whole)]];
    if (zoom && isWithin(tree, node, zoom))
      facts.push(["share of the zoomed frame", shareWords(column.total[node], column.total[zoom])]);
    facts.push(["time", amount(column.total[node])], ["of it in its own code", amount(column.self[node])]);
    if (!isAwait(page.catalogue.head, page.state.weight)) facts.push(["samples", countWords(column.samples[node])]);
    const content = element("div", {}, element("div", "name", label.full));
    const library = label.kind === Kind.native ? label.module : "";
    const place = [library, placeOf(label)].filter((text) => text).join(": ");
    if (place) content.append(element("div", "place", place));
    content.append(factTable(facts));
    if (drawn?.key === latestKey())
      content.append(...waits.of(latestKey(), { by: page.state.by, node }, () => canvas.hover.again()));
    return content;
  }

  function spoken(node: number): string {
    const { tree, column, labels } = drawn as Drawn;
    return `${labels[tree.label[node]].name}, ${shareWords(column.total[node], column.total[0])}, ${
      amount(column.total[node])
    }`;
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  const zoomText = (node: number) => pathTo((drawn as Drawn).tree, node).join(".");

  function zoomTo(node: number): void {
    if (!drawn || node === canvas.zoom) return;
    trail = node === 0 ? [] : [...trail, zoomText(canvas.zoom)];
    canvas.cursor = node;
    canvas.hover.away();
    page.change(withOwn(page.state, name, "zoom", zoomText(node)));
  }

  function stepBack(): void {
    if (page.state.search) return page.change({ search: "" }, "aside");
    if (!canvas.zoom) return canvas.leave();
    page.change(withOwn(page.state, name, "zoom", trail.pop() ?? ""));
  }

  function flip(): void {
    page.change(withOwn(page.state, name, "turn", isFlame() ? "" : "flame"));
    canvas.scrollToRoot();
  }

  function openMenu(node: number, x: number, y: number): void {
    if (!drawn || node <= 0) return;
    page.menu([{ text: "Zoom into it", run: () => zoomTo(node) }, ...itemsOf(node)], x, y);
  }

  function use(by: By, tree: CallTree, column: Column): void {
    const labels = page.labels(by);
    const flame: Flame = {
      tree,
      total: column.total,
      labels,
      hits: new Uint8Array(labels.length),
      fill: fills(page, tree, labels, column.self),
      tip: tipOf,
      spoken,
    };
    drawn = { by, tree, column, labels, flame, key: latestKey() };
    refresh(true);
    page.drawn();
  }

  // After any change: the tree is the same, the selection may not be.
  function refresh(fresh: boolean): void {
    if (!drawn) return;
    const { tree, column, by, flame } = drawn;
    const path = own(page.state, name, "zoom");
    let zoom = /^\d+(\.\d+)*$/.test(path) ? nodeAlong(tree, path.split(".").map(Number)) : 0;
    // A frame that the filters leave without weight has no width.
    while (zoom !== 0 && column.total[zoom] <= 0) zoom = tree.parent[zoom];
    const found = page.matches;
    if (fresh || found !== hitsOf) {
      for (let id = 1; id < flame.hits.length; ++id)
        flame.hits[id] = found
          ? found.functions[functionOf(page.catalogue, by, id)]
          : 0;
      hitsOf = found;
    }
    flame.fill = fills(page, tree, drawn.labels, column.self);
    colours.show();
    canvas.show(flame, zoom, fresh);
  }

  return {
    element: view,
    show: () => {
      const { by, weight } = page.state;
      if (drawn && drawn.by !== by) canvas.cursor = -1;
      latest.ask(latestKey(), () => Promise.all([page.shape(by), page.ask("column", { by, weight })]),
        ([tree, column]) => use(by, tree, column));
      // Otherwise an answer is pending: until it is drawn, picture and texts stay as they are.
      if (drawn?.key === latestKey()) refresh(false);
    },
    pictures: () =>
      canvas.pictures("flame graph", [zoomWords.textContent, notes.textContent].filter((text) => text).join(". "),
        colours.legend()),
    keys: [
      ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((on, i) => ({
        on,
        shown: i ? "" : "← → ↑ ↓",
        meaning: i ? "" : "move from frame to frame",
        run: () => canvas.move(on),
      })),
      { on: "Enter", shown: "Enter", meaning: "zoom into the frame",
        run: () => canvas.cursor >= 0 && zoomTo(canvas.cursor) },
      { on: "Escape", shown: "Esc", meaning: "one step back", run: stepBack },
      { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => zoomTo(0) },
      { on: "m", shown: "m", meaning: "menu of the frame", run: () => canvas.openMenu() },
      { on: "n", shown: "n  N", meaning: "next, previous match", run: () => canvas.step(1) },
      { on: "N", shown: "", meaning: "", run: () => canvas.step(-1) },
      { on: "i", shown: "i", meaning: "root on top or at the bottom", run: flip },
      { on: "c", shown: "c", meaning: "copy the frame's name",
        run: () => drawn && canvas.cursor > 0 && page.copy(drawn.labels[drawn.tree.label[canvas.cursor]].full) },
    ],
  };
}

export const flameGraph: View = { name, title: "Flame graph", place: "main", create };
