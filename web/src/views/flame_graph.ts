// The merged flame graph on a canvas no larger than the window: what is in sight of it is drawn, the rest is scrolled to.
import { button, element, factTable } from "../page/dom";
import { CallTree, nodeAlong, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { By } from "../model/head";
import { nextMatch } from "../model/search";
import { Column, isWithin, Kind, Label, placeOf } from "../model/tree";
import { Box, defaultOptions, layout, Layout } from "../layout/flame";
import { Rows } from "../layout/rows";
import { own, withOwn } from "../state/state";
import { countWords, fitName, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { Page, Showing, View } from "./view";

const name = "flame";
const rowHeight = 18;
const textMargin = 4;
const fadedSearch = 0.38;
const fadedAncestor = 0.5;

interface Drawn {
  by: By;
  tree: CallTree;
  column: Column;
  labels: Label[];
  hits: Uint8Array; // by label
  key: string; // what was asked
}

function create(page: Page): Showing {
  const latest = new Latest<[CallTree, Column]>();
  const canvas = element("canvas");
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
  const spacer = element("div", "spacer", canvas);
  const scroller = element("div", {
    class: "scroller", tabindex: 0, role: "application", "aria-roledescription": "flame graph",
    "aria-label": "Flame graph. Arrow keys move from frame to frame, Enter zooms, m opens the menu of a frame.",
  }, spacer);
  const turn = button("", () => flip(), { class: "turn" });
  const back = button("Back", () => stepBack(), { title: "One zoom back (Esc)" });
  const reset = button("Reset zoom", () => zoomTo(0), { title: "Home" });
  const only = button("Only this", () => page.frameItems(drawn!.by, pathTo(drawn!.tree, zoom))[0]?.run(), { title: "Only stacks through the zoomed function" });
  const without = button("Without this", () => page.frameItems(drawn!.by, pathTo(drawn!.tree, zoom))[1]?.run(), { title: "Without stacks through the zoomed function" });
  const zoomWords = element("span", { class: "zoomed", "aria-live": "polite" });
  const notes = element("span", "notes");
  const view = element("section", { class: "flame", "aria-label": "Flame graph" },
    element("div", "toolbar", turn, back, reset, only, without, zoomWords, notes), scroller);

  let drawn: Drawn | null = null;
  let boxes: Layout | null = null;
  let rows: Rows | null = null;
  let boxesFor = ""; // what they were laid out for
  let zoom = 0;
  let cursor = -1; // node of the keyboard; -1: none
  let trail: string[] = []; // zooms to go back to, as they stand in the address
  let textWidth = 0; // of a character of the monospaced font

  const isFlame = () => own(page.state, name, "turn") === "flame";
  const amount = (value: number) => weightWords(value, page.state.weight === "samples" ? "samples" : "ns");

  // ---- geometry -------------------------------------------------------------------------------------------------
  const topOf = (row: number, height: number) => (isFlame() ? height - (row + 1) * rowHeight : row * rowHeight);
  const heightOf = (done: Layout) => Math.max(done.rows * rowHeight, scroller.clientHeight);

  function arrange(): void {
    const { tree, column } = drawn as Drawn;
    const width = scroller.clientWidth;
    const key = `${zoom} ${width}`;
    if (key === boxesFor && boxes) return;
    boxesFor = key;
    boxes = layout(tree, column.total, zoom, { ...defaultOptions, width });
    rows = new Rows(boxes);
  }

  function latestKey(): string {
    return JSON.stringify([page.state.filters, page.state.show, page.state.by, page.state.weight]);
  }

  // ---- drawing --------------------------------------------------------------------------------------------------
  function draw(): void {
    if (!drawn || !scroller.clientWidth) return;
    arrange();
    const done = boxes as Layout;
    const height = heightOf(done);
    spacer.style.height = `${height}px`;
    const [wide, high] = [scroller.clientWidth, scroller.clientHeight];
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(high * scale)) {
      canvas.width = Math.round(wide * scale);
      canvas.height = Math.round(high * scale);
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    pen.setTransform(scale, 0, 0, scale, 0, -scroller.scrollTop * scale);
    pen.clearRect(0, scroller.scrollTop, wide, high);
    pen.font = page.colour("--mono");
    pen.textBaseline = "middle";
    textWidth = pen.measureText("0123456789").width / 10;
    const first = Math.floor(scroller.scrollTop / rowHeight) - 1;
    const last = Math.ceil((scroller.scrollTop + high) / rowHeight) + 1;
    const hasHits = page.matches !== null && page.matches.count > 0;
    const total = Math.round(height / rowHeight);
    for (let row = first; row <= last; ++row) {
      const level = isFlame() ? total - 1 - row : row;
      if (level < 0 || level >= done.rows) continue;
      const y = topOf(level, height);
      if (done.skipped && level === done.skipped.row) drawSkipped(done.skipped.frames, y, wide);
      for (const box of (rows as Rows).at(level)) drawBox(box, y, level < (boxes as Layout).boxes[0].row, hasHits);
    }
    pen.globalAlpha = 1;
    drawCursor(height);
    drawWords(done);
  }

  function drawBox(box: Box, y: number, above: boolean, hasHits: boolean): void {
    const { tree, labels, hits } = drawn as Drawn;
    const id = tree.label[box.node];
    const hit = hasHits && hits[id] === 1;
    const width = box.width >= 2 ? box.width - 0.5 : box.width;
    pen.globalAlpha = hit ? 1 : hasHits ? fadedSearch : above ? fadedAncestor : 1;
    pen.fillStyle = hit ? page.colour("--hit") : page.fill(labels[id]);
    pen.fillRect(box.x, y, width, rowHeight - 1);
    const room = box.width - 2 * textMargin;
    if (room < 2 * textWidth) return;
    if (hasHits && !hit) pen.globalAlpha = 0.75;
    pen.fillStyle = page.colour(hit ? "--hit-ink" : "--ink");
    pen.fillText(fitted(labels[id], room), box.x + textMargin, y + rowHeight / 2);
  }

  function drawSkipped(frames: number, y: number, wide: number): void {
    pen.globalAlpha = 1;
    pen.strokeStyle = pen.fillStyle = page.colour("--faint");
    pen.setLineDash([3, 3]);
    pen.strokeRect(0.5, y + 2.5, wide - 1, rowHeight - 6);
    pen.setLineDash([]);
    pen.fillText(`${countWords(frames)} frames between`, wide / 2 - 60, y + rowHeight / 2);
  }

  function drawCursor(height: number): void {
    const box = cursor >= 0 ? boxOf(cursor) : undefined;
    if (!box) return;
    pen.strokeStyle = page.colour("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(box.x + 1, topOf(box.row, height) + 1, Math.max(2, box.width - 2.5), rowHeight - 3);
    pen.lineWidth = 1;
  }

  // Of ASCII every character is as wide as the other; anything else is measured.
  const plain = /^[\x20-\x7e]*$/;
  const measure = (text: string) => (plain.test(text) ? text.length * textWidth : pen.measureText(text).width);
  const fitted = ({ name, full }: Label, room: number) => fitName(name, full, room, measure);

  function drawWords(done: Layout): void {
    const { tree, column, labels } = drawn as Drawn;
    turn.textContent = isFlame() ? "Root on top" : "Root at the bottom";
    reset.disabled = back.disabled = only.disabled = without.disabled = zoom === 0;
    zoomWords.replaceChildren();
    if (zoom) {
      const whole = column.total[0];
      zoomWords.append("Zoomed into ", element("b", {}, labels[tree.label[zoom]].name), `: ${shareWords(column.total[zoom], whole)} of what is shown, ${amount(column.total[zoom])}, ${countWords(column.samples[zoom])} samples`);
    }
    const several = (count: number) => `${countWords(count)} ${count === 1 ? "frame" : "frames"}`;
    const out: string[] = [];
    if (done.narrow.frames) out.push(`${several(done.narrow.frames)} narrower than ${done.minWidth} px (${shareWords(done.narrow.weight, column.total[0])})`);
    if (done.deep.frames) out.push(`${several(done.deep.frames)} deeper than ${defaultOptions.maxDepth} rows (${shareWords(done.deep.weight, column.total[0])})`);
    notes.textContent = out.length ? `Left out: ${out.join(" and ")}. Zoom in to see them.` : "";
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  const boxOf = (node: number) => boxes?.boxes.find((box) => box.node === node) ?? boxes?.ancestors.find((box) => box.node === node);

  function boxAt(event: MouseEvent): Box | undefined {
    if (!boxes || !rows) return undefined;
    const frame = scroller.getBoundingClientRect();
    const y = event.clientY - frame.top + scroller.scrollTop;
    const row = Math.floor((isFlame() ? heightOf(boxes) - y : y) / rowHeight);
    return rows.find(row, event.clientX - frame.left);
  }

  function tipOf(node: number): Node {
    const { tree, column, labels } = drawn as Drawn;
    const label = labels[tree.label[node]];
    const whole = column.total[0];
    const facts: [string, ...string[]][] = [["share of what is shown", shareWords(column.total[node], whole)]];
    if (zoom && isWithin(tree, node, zoom)) facts.push(["share of the zoomed frame", shareWords(column.total[node], column.total[zoom])]);
    facts.push(["time", amount(column.total[node])], ["of it in its own code", amount(column.self[node])], ["samples", countWords(column.samples[node])]);
    const content = element("div", {}, element("div", "name", label.full));
    const library = label.kind === Kind.native ? label.module : "";
    const place = [library, placeOf(label)].filter((text) => text).join(": ");
    if (place) content.append(element("div", "place", place));
    content.append(factTable(facts));
    return content;
  }

  function focusNode(node: number): void {
    cursor = node;
    const box = boxOf(node);
    if (!box || !boxes || !drawn) return draw();
    const y = topOf(box.row, heightOf(boxes));
    if (y < scroller.scrollTop) scroller.scrollTop = y - rowHeight;
    if (y + rowHeight > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + 2 * rowHeight - scroller.clientHeight;
    draw();
    const frame = scroller.getBoundingClientRect();
    page.tip(tipOf(node), frame.left + box.x + Math.min(box.width / 2, 60), frame.top + y - scroller.scrollTop + rowHeight / 2);
    const { tree, column, labels } = drawn;
    page.say(`${labels[tree.label[node]].name}, ${shareWords(column.total[node], column.total[0])}, ${amount(column.total[node])}`);
  }

  function move(key: string): void {
    if (!boxes || !drawn) return;
    const box = cursor >= 0 ? boxOf(cursor) : undefined;
    if (!box) return focusNode(zoom);
    const { tree } = drawn;
    if (key === "ArrowUp" || key === "ArrowDown") {
      const inward = (key === "ArrowUp") === isFlame();
      if (!inward) return void (cursor !== 0 && focusNode(boxOf(tree.parent[cursor]) ? tree.parent[cursor] : 0));
      const children = (rows as Rows).at(box.row + 1).filter((other) => tree.parent[other.node] === cursor);
      const widest = children.reduce<Box | null>((best, other) => (best && best.width >= other.width ? best : other), null);
      return void (widest && focusNode(widest.node));
    }
    const row = (rows as Rows).at(box.row);
    const next = row[row.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
    if (next) focusNode(next.node);
  }

  function step(direction: 1 | -1): void {
    if (!drawn) return;
    let node = nextMatch(drawn.tree, drawn.column.total, { labels: drawn.hits }, zoom, cursor, direction);
    // A match too narrow to be drawn: point at the innermost drawn frame around it.
    while (node && !boxOf(node)) node = drawn.tree.parent[node];
    if (node) focusNode(node);
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  const zoomText = (node: number) => pathTo((drawn as Drawn).tree, node).join(".");

  function zoomTo(node: number): void {
    if (!drawn || node === zoom) return;
    trail = node === 0 ? [] : [...trail, zoomText(zoom)];
    cursor = node;
    page.tip(null, 0, 0);
    page.change(withOwn(page.state, name, "zoom", zoomText(node)));
  }

  function stepBack(): void {
    if (page.state.search) return page.change({ search: "" }, "aside");
    if (!zoom) {
      cursor = -1;
      page.tip(null, 0, 0);
      return draw();
    }
    page.change(withOwn(page.state, name, "zoom", trail.pop() ?? ""));
  }

  function flip(): void {
    page.change(withOwn(page.state, name, "turn", isFlame() ? "" : "flame"));
    scroller.scrollTop = isFlame() ? scroller.scrollHeight : 0;
  }

  function openMenu(node: number, x: number, y: number): void {
    if (!drawn || node <= 0) return;
    page.tip(null, 0, 0);
    page.menu([{ text: "Zoom into it", run: () => zoomTo(node) }, ...page.frameItems(drawn.by, pathTo(drawn.tree, node))], x, y);
  }

  scroller.addEventListener("scroll", draw);
  scroller.addEventListener("click", (event) => {
    const box = boxAt(event);
    if (box) zoomTo(box.node);
  });
  scroller.addEventListener("contextmenu", (event) => {
    const box = boxAt(event);
    if (!box) return;
    event.preventDefault();
    openMenu(box.node, event.clientX, event.clientY);
  });
  scroller.addEventListener("pointermove", (event) => {
    const box = boxAt(event);
    scroller.style.cursor = box ? "pointer" : "";
    page.tip(box ? tipOf(box.node) : null, event.clientX, event.clientY);
  });
  scroller.addEventListener("pointerleave", () => page.tip(null, 0, 0));

  function use(by: By, tree: CallTree, column: Column): void {
    const labels = page.labels(by);
    drawn = { by, tree, column, labels, hits: new Uint8Array(labels.length), key: latestKey() };
    boxesFor = "";
    refresh();
    page.drawn();
  }

  // After any change: the tree is the same, what is looked at of it need not be.
  function refresh(): void {
    if (!drawn) return;
    const { tree, column, by, hits } = drawn;
    const path = own(page.state, name, "zoom");
    zoom = /^\d+(\.\d+)*$/.test(path) ? nodeAlong(tree, path.split(".").map(Number)) : 0;
    // A frame that the filters leave nothing of has no width.
    while (zoom !== 0 && column.total[zoom] <= 0) zoom = tree.parent[zoom];
    if (cursor >= tree.parent.length) cursor = -1;
    const found = page.matches;
    for (let id = 1; id < hits.length; ++id) hits[id] = found ? found.functions[functionOf(page.catalogue, by, id)] : 0;
    draw();
  }

  return {
    element: view,
    show: () => {
      const { by, weight } = page.state;
      if (drawn && drawn.by !== by) cursor = -1;
      latest.ask(latestKey(), () => Promise.all([page.shape(by), page.ask("column", { by, weight })]), ([tree, column]) => use(by, tree, column));
      // What is on its way will be drawn when it comes: until then the picture stays what it was, words and all.
      if (drawn?.key === latestKey()) refresh();
    },
    keys: [
      ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((on, i) => ({
        on, shown: i ? "" : "← → ↑ ↓", meaning: i ? "" : "move from frame to frame", run: () => move(on),
      })),
      { on: "Enter", shown: "Enter", meaning: "zoom into the frame", run: () => cursor >= 0 && zoomTo(cursor) },
      { on: "Escape", shown: "Esc", meaning: "one step back", run: stepBack },
      { on: "Home", shown: "Home", meaning: "reset the zoom", run: () => zoomTo(0) },
      { on: "m", shown: "m", meaning: "menu of the frame", run: () => {
        const box = cursor > 0 ? boxOf(cursor) : undefined;
        const frame = scroller.getBoundingClientRect();
        if (box && boxes) openMenu(cursor, frame.left + box.x + 8, frame.top + topOf(box.row, heightOf(boxes)) - scroller.scrollTop + rowHeight);
      } },
      { on: "n", shown: "n  N", meaning: "next, previous match", run: () => step(1) },
      { on: "N", shown: "", meaning: "", run: () => step(-1) },
      { on: "i", shown: "i", meaning: "root on top or at the bottom", run: flip },
      { on: "c", shown: "c", meaning: "copy the frame's name", run: () => drawn && cursor > 0 && page.copy(drawn.labels[drawn.tree.label[cursor]].full) },
    ],
  };
}

export const flameGraph: View = { name, title: "Flame graph", place: "main", create };
