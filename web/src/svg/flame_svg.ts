// The script inside a flame graph SVG: draws the embedded tree over the static picture it was opened as, and keeps zoom,
// search and view in the address. Everything that can be decided without a DOM is in the other files.
import { colourClass, differenceClass } from "../colours";
import { formatFragment, initialState, parseFragment, State } from "./fragment";
import { Box, defaultOptions, layout, Layout, roundPixels } from "../layout/flame";
import { Found, matchedWeight, nextMatch, search } from "../model/search";
import { Column, decodeTree, isWithin, Kind, labelOf, placeOf, Show, TreeData } from "../model/tree";
import { countWords, fit, fitName, pointsWords, shareWords, Unit, weightWords } from "../words";

interface Picture {
  title: string;
  subtitle: string;
  quality: string[];
  warning: string;
  unit: Unit;
  show?: Show; // where the tree has parts: what was chosen
  leftOut?: string; // what that leaves out, in words
  pruned: { frames: number; weight: number };
  tree: TreeData;
}

const svgSpace = "http://www.w3.org/2000/svg";
const htmlSpace = "http://www.w3.org/1999/xhtml";
const rowHeight = 18; // as in exporters/svg.cpp
const margin = 10;
const textMargin = 4;

function svgElement<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number> = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(svgSpace, name);
  for (const key of Object.keys(attributes)) element.setAttribute(key, String(attributes[key]));
  element.append(...children);
  return element;
}

function html<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElementNS(htmlSpace, name) as HTMLElementTagNameMap[K];
  if (className) element.setAttribute("class", className);
  element.append(...children);
  return element;
}

function start(svg: SVGSVGElement, picture: Picture): void {
  const tree = decodeTree(picture.tree);
  const difference = tree.before !== null;
  const standalone = svg === (document.documentElement as Element);
  const measuring = html("canvas").getContext("2d") as CanvasRenderingContext2D;

  let state: State = initialState;
  let found: Found = search(tree, "");
  let drawn: Layout = layout(tree, tree.weights.total, 0, defaultOptions);
  let cursor = -1; // node under keyboard focus; -1: none
  let trail: number[] = []; // zooms to go back to

  // ---- the page -------------------------------------------------------------------------------------------------
  const frames = svgElement("g", { id: "frames" });
  const cursorBox = svgElement("rect", { class: "cursor", rx: 2, visibility: "hidden" });
  const input = html("input");
  input.type = "search";
  input.placeholder = "Search (regex)   /";
  input.title = "A regular expression, looked for in module.name; file:… looks in files, module:… in modules. Capitals make case count.";
  input.setAttribute("aria-label", "Search");
  input.spellcheck = false;
  const reset = html("button", "reset", "Reset zoom");
  const turn = html("button", "turn");
  const widths = html("button", "widths");
  const showButtons = new Map<Show, HTMLElement>();
  const shows = html("span", "shows");
  shows.setAttribute("role", "group");
  shows.setAttribute("aria-label", "What is shown");
  const help = html("button", "", "?");
  help.title = "Keys";
  help.setAttribute("aria-label", "Keys");
  const zoomWords = html("span", "zoomed");
  const foundWords = html("span", "found");
  const leftOutWords = html("p", "facts left-out");
  const status = html("div", "status", zoomWords, foundWords);
  status.setAttribute("aria-live", "polite");
  const legend = html("span", "legend");
  const helpBox = html("div", "help");
  helpBox.hidden = true;
  const dot = html("span", picture.warning ? "dot bad" : "dot");
  const quality = html("p", "facts quality", dot, picture.quality.join(" — "));
  const words = html("div", "words", html("h1", "", picture.title), html("p", "", picture.subtitle));
  words.title = picture.title;
  const tools = html("div", "tools", input, reset, ...(difference ? [widths] : []), ...(tree.shows ? [shows] : []), turn, help);
  const bar = html("div", "bar", html("div", "top", words, tools), quality);
  if (picture.warning) bar.append(html("div", "warning", `⚠ ${picture.warning}`));
  bar.append(leftOutWords, status, helpBox);
  const barBox = svgElement("foreignObject", { id: "bar", x: 0, y: 0, width: 100, height: 100 }, bar);
  const tip = html("div", "tip");
  tip.setAttribute("role", "status");
  const tipBox = svgElement("foreignObject", { class: "tipbox", id: "tip", visibility: "hidden", width: 10, height: 10 }, tip);
  const paper = svgElement("rect", { class: "paper", width: "100%", height: "100%" });
  svg.querySelector("#static")?.remove();
  svg.classList.add("live");
  svg.setAttribute("tabindex", "0");
  svg.style.outline = "none";
  // The bar moves along with every scroll: Chromium would take it for content to hold on to, and scroll away for ever.
  svg.style.setProperty("overflow-anchor", "none");
  svg.append(paper, frames, cursorBox, barBox, tipBox);

  for (const [keys, meaning] of [
    ["← → ↑ ↓", "move from frame to frame"],
    ["Enter", "zoom into the frame"],
    ["Esc", "one step back"],
    ["Home", "reset the zoom"],
    ["/  Ctrl-F", "search"],
    ["n  N", "next, previous match"],
    ["i", "flame graph or icicle"],
    ["c", "copy the frame's name"],
    ...(difference ? [["w", "widths by before or after"]] : []),
    ...(tree.shows ? [["s", "show work, computing, waiting, everything"]] : []),
    ["?", "these keys"],
  ]) {
    helpBox.append(html("div", "", html("kbd", "", keys), ` ${meaning}`));
  }

  // ---- facts about a node ---------------------------------------------------------------------------------------
  const showing = (): Show => state.show || picture.show || "everything";
  const column = (): Column =>
    state.widths === "before" && tree.before ? tree.before : tree.shows ? tree.shows[showing()] : tree.weights;
  const shareOf = (columns: Column, node: number) => (columns.total[0] > 0 ? columns.total[node] / columns.total[0] : 0);
  const changeOf = (node: number) => (tree.before ? shareOf(tree.weights, node) - shareOf(tree.before, node) : 0);
  const stepOf = (node: number) => (tree.changes ? tree.changes[node] : 0);

  function classOf(node: number): string {
    if (node === 0) return "m";
    return difference ? differenceClass(stepOf(node)) : colourClass(labelOf(tree, node));
  }

  function weightOf(columns: Column, node: number): string {
    return weightWords(columns.total[node], picture.unit);
  }

  // Frames of before that after has nothing of; weight: of the outermost.
  const vanished = { frames: 0, weight: 0 };
  for (let node = 1; tree.before && node < tree.label.length; ++node) {
    if (tree.weights.total[node] > 0 || tree.before.total[node] <= 0) continue;
    ++vanished.frames;
    if (tree.weights.total[tree.parent[node]] > 0) vanished.weight += tree.before.total[node];
  }

  // ---- drawing --------------------------------------------------------------------------------------------------
  let textFont = "";
  const widthCache = new Map<string, number>();
  function measure(text: string): number {
    let width = widthCache.get(text);
    if (width === undefined) {
      width = measuring.measureText(text).width;
      widthCache.set(text, width);
    }
    return width;
  }

  function pageWidth(): number {
    const room = standalone ? document.documentElement.clientWidth || window.innerWidth : svg.parentElement?.clientWidth;
    return Math.max(320, room || 1200);
  }

  let top = 0; // where the frames begin
  function yOf(row: number): number {
    return top + (state.view === "flame" ? drawn.rows - 1 - row : row) * rowHeight;
  }

  function boxElement(box: Box, above: boolean): SVGElement {
    const hit = found.labels[tree.label[box.node]];
    const group = svgElement("g", { class: `b${above ? " above" : ""}${hit ? " hit" : ""}`, "data-n": box.node });
    const x = roundPixels(margin + box.x);
    const width = roundPixels(box.width >= 2 ? box.width - 0.5 : box.width);
    const y = yOf(box.row);
    const rectangle = svgElement("rect", { class: classOf(box.node), x, y, width, height: rowHeight - 1 });
    if (box.width >= 8) rectangle.setAttribute("rx", "2");
    group.append(rectangle);
    const { name, full } = labelOf(tree, box.node);
    const text = fitName(name, full, box.width - 2 * textMargin, measure);
    if (text) group.append(svgElement("text", { x: roundPixels(x + textMargin), y: y + 12.5 }, text));
    return group;
  }

  function draw(): void {
    // Who looks at the root of a flame graph goes on looking at it when the words above grow (keys, a search) or the window does not.
    const low = standalone && state.view === "flame" && window.scrollY > 0 &&
      window.scrollY + window.innerHeight >= Number(svg.getAttribute("height")) - 2;
    const probe = svgElement("g", { class: "b" }, svgElement("text"));
    svg.append(probe);
    const font = getComputedStyle(probe.firstElementChild as Element).font;
    probe.remove();
    if (font !== textFont) {
      textFont = font;
      measuring.font = font;
      widthCache.clear();
    }
    const pageWide = pageWidth();
    drawn = layout(tree, column().total, state.zoom, { ...defaultOptions, width: pageWide - 2 * margin });
    drawWords();
    barBox.setAttribute("width", String(pageWide));
    const barHeight = Math.ceil(bar.getBoundingClientRect().height);
    barBox.setAttribute("height", String(barHeight));
    top = barHeight + 8;
    const height = top + drawn.rows * rowHeight + margin;
    svg.setAttribute("width", String(pageWide));
    svg.setAttribute("height", String(standalone ? Math.max(height, window.innerHeight - 1) : height));
    svg.removeAttribute("viewBox");

    const parts = document.createDocumentFragment();
    for (const box of drawn.ancestors) parts.append(boxElement(box, true));
    if (drawn.skipped) {
      const y = yOf(drawn.skipped.row);
      parts.append(
        svgElement(
          "g",
          { class: "skip", "data-n": drawn.skipped.node },
          svgElement("rect", { x: margin, y: y + 2, width: pageWide - 2 * margin, height: rowHeight - 5, "pointer-events": "all" }),
          svgElement("text", { x: pageWide / 2, y: y + 13 }, `${countWords(drawn.skipped.frames)} frames between`),
        ),
      );
    }
    for (const box of drawn.boxes) parts.append(boxElement(box, false));
    frames.replaceChildren(parts);
    svg.classList.toggle("searching", found.frames > 0);
    placeCursor();
    if (low) scrollToRoot();
    pin();
  }

  function drawWords(): void {
    const total = column().total;
    reset.disabled = state.zoom === 0;
    turn.textContent = state.view === "flame" ? "Icicle" : "Flame graph";
    turn.title = state.view === "flame" ? "Root on top (i)" : "Root at the bottom (i)";
    widths.textContent = state.widths === "after" ? "Widths: after" : "Widths: before";
    widths.title = "Whose time makes the widths (w). Before shows what has vanished.";
    for (const [show, button] of showButtons) button.setAttribute("aria-pressed", String(show === showing()));
    zoomWords.replaceChildren();
    if (state.zoom) {
      zoomWords.append("Zoomed into ", html("b", "", fit(labelOf(tree, state.zoom).name, 420, measure)));
      zoomWords.append(`: ${shareWords(total[state.zoom], total[0])} of all, ${weightOf(column(), state.zoom)}`);
    }
    foundWords.replaceChildren();
    input.classList.toggle("bad", found.error !== "");
    if (found.error) {
      foundWords.append("Not a regular expression");
    } else if (state.search) {
      const weight = matchedWeight(tree, total, found, state.zoom);
      foundWords.append("Matched ", html("b", "", shareWords(weight, total[state.zoom])));
      foundWords.append(state.zoom ? " of the zoomed frame" : " of all", `, ${weightWords(weight, picture.unit)}`);
      foundWords.append(` in ${countWords(found.frames)} ${found.frames === 1 ? "different frame" : "different frames"}`);
    }
    const notes: string[] = [];
    const { narrow, deep } = drawn;
    const several = (count: number) => `${countWords(count)} ${count === 1 ? "frame" : "frames"}`;
    if (narrow.frames) {
      notes.push(`${several(narrow.frames)} narrower than ${drawn.minWidth} px (${shareWords(narrow.weight, total[0])})`);
    }
    if (deep.frames) {
      notes.push(`${several(deep.frames)} deeper than ${defaultOptions.maxDepth} rows (${shareWords(deep.weight, total[0])})`);
    }
    const waiting = picture.leftOut && showing() === "work" ? `Not shown: ${picture.leftOut}; “Everything” has it. ` : "";
    leftOutWords.textContent = waiting + (notes.length ? `Left out of the picture: ${notes.join(" and ")}. Zoom in to see them.` : "");
    if (vanished.frames && state.widths === "after") {
      leftOutWords.append(
        ` Vanished since: ${several(vanished.frames)} (${shareWords(vanished.weight, (tree.before as Column).total[0])} of before); press “Widths: after” to see them.`,
      );
    }
    if (picture.pruned.frames) {
      leftOutWords.append(
        ` Not in this file: the ${countWords(picture.pruned.frames)} smallest frames (${shareWords(picture.pruned.weight, tree.weights.total[0])}).`,
      );
    }
    leftOutWords.hidden = leftOutWords.textContent === "";
    helpBox.hidden = !helpOpen;
  }
  let helpOpen = false;

  // The modules that most time was spent in themselves, with their colour. Of a difference: what the colours mean.
  function fillLegend(): void {
    legend.replaceChildren();
    const chip = (className: string, text: string) => {
      const swatch = svgElement("svg", { viewBox: "0 0 10 10" }, svgElement("rect", { class: className, width: 10, height: 10, rx: 2 }));
      return html("button", "chip", swatch, text);
    };
    if (difference) {
      for (const [className, text] of [["b5", "less than before"], ["b2", ""], ["d0", "alike"], ["r2", ""], ["r5", "more than before"]]) {
        legend.append(chip(className, text));
      }
      status.append(legend);
      return;
    }
    const modules = new Map<string, { self: number; className: string }>();
    for (let node = 1; node < tree.label.length; ++node) {
      const label = labelOf(tree, node);
      if (!label.module || (label.kind !== Kind.python && label.kind !== Kind.native)) continue;
      const entry = modules.get(label.module) || { self: 0, className: colourClass(label).slice(0, -1) + "a" };
      entry.self += column().self[node];
      modules.set(label.module, entry);
    }
    const greatest = Array.from(modules).filter(([, entry]) => entry.self > 0).sort((a, b) => b[1].self - a[1].self);
    for (const [module, { self, className }] of greatest.slice(0, 6)) {
      const name = module.length > 24 ? module.slice(0, 23) + "…" : module;
      const button = chip(className, `${name} ${shareWords(self, column().total[0])}`);
      button.title = `Time in the code of ${module} itself. Click to find it.`;
      button.addEventListener("click", () => change({ search: `module:^${module.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$` }));
      legend.append(button);
    }
    if (legend.childNodes.length) status.append(legend);
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  function showTip(node: number, x: number, y: number): void {
    const label = labelOf(tree, node);
    const columns = column();
    const total = columns.total;
    tip.replaceChildren(html("div", "name", label.full));
    const place = placeOf(label);
    const library = label.kind === Kind.native ? label.module : "";
    const where = [library, place].filter((word) => word).join(": ");
    if (where) tip.append(html("div", "place", where));
    const table = html("table");
    const row = (name: string, ...values: string[]) =>
      table.append(html("tr", "", html("td", "", name), ...values.map((value) => html("td", "", value))));
    if (tree.before) {
      row("", "before", "after");
      row("share of all", shareWords(tree.before.total[node], tree.before.total[0]), shareWords(tree.weights.total[node], tree.weights.total[0]));
      row(picture.unit === "ns" ? "time" : "weight", weightOf(tree.before, node), weightOf(tree.weights, node));
      row("samples", countWords(tree.before.samples[node]), countWords(tree.weights.samples[node]));
      const changed = changeOf(node);
      const step = stepOf(node);
      row("change", "", pointsWords(changed));
      (table.lastElementChild as Element).setAttribute("class", step > 0 ? "up" : step < 0 ? "down" : "");
      if (node !== 0 && step === 0) row("", "", "may be chance");
    } else {
      row("share of all", shareWords(total[node], total[0]));
      if (state.zoom && isWithin(tree, node, state.zoom)) row("share of the zoomed frame", shareWords(total[node], total[state.zoom]));
      row(picture.unit === "ns" ? "time" : "weight", weightOf(columns, node));
      if (node !== 0) row("of it in its own code", weightWords(columns.self[node], picture.unit));
      row("samples", countWords(columns.samples[node]));
    }
    tip.append(table);
    const pageWide = pageWidth();
    // Room first, so that the words can take what they need before they are measured.
    tipBox.setAttribute("width", String(Math.min(580, pageWide)));
    tipBox.setAttribute("height", "600");
    const { width, height } = tip.getBoundingClientRect();
    const [scrollX, scrollY] = standalone ? [window.scrollX, window.scrollY] : [0, 0];
    const windowHeight = standalone ? window.innerHeight : Number(svg.getAttribute("height"));
    let left = Math.min(x + 14, scrollX + pageWide - width - 8);
    let upper = y + 18;
    if (upper + height > scrollY + windowHeight - 4) upper = y - height - 12;
    left = Math.max(left, scrollX + 4);
    upper = Math.max(upper, scrollY + 4);
    tipBox.setAttribute("x", String(left));
    tipBox.setAttribute("y", String(upper));
    tipBox.setAttribute("width", String(Math.ceil(width) + 24));
    tipBox.setAttribute("height", String(Math.ceil(height) + 24));
    tipBox.setAttribute("visibility", "visible");
  }

  const hideTip = () => tipBox.setAttribute("visibility", "hidden");

  function nodeAt(target: EventTarget | null): number {
    const group = target instanceof Element ? target.closest("[data-n]") : null;
    return group && frames.contains(group) ? Number(group.getAttribute("data-n")) : -1;
  }

  function pointOf(event: MouseEvent): [number, number] {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  const drawnBox = (node: number) =>
    drawn.boxes.find((box) => box.node === node) || drawn.ancestors.find((box) => box.node === node);

  function placeCursor(): void {
    const box = cursor >= 0 ? drawnBox(cursor) : undefined;
    cursorBox.setAttribute("visibility", box ? "visible" : "hidden");
    if (!box) return;
    cursorBox.setAttribute("x", String(roundPixels(margin + box.x)));
    cursorBox.setAttribute("y", String(yOf(box.row)));
    cursorBox.setAttribute("width", String(Math.max(2, roundPixels(box.width - 0.5))));
    cursorBox.setAttribute("height", String(rowHeight - 1));
  }

  function focusNode(node: number): void {
    cursor = node;
    placeCursor();
    const box = drawnBox(node);
    if (!box) return hideTip();
    const y = yOf(box.row);
    if (standalone) {
      const hidden = bar.getBoundingClientRect().height;
      if (y < window.scrollY + hidden) window.scrollTo(window.scrollX, Math.max(0, y - hidden - rowHeight));
      if (y + rowHeight > window.scrollY + window.innerHeight) window.scrollTo(window.scrollX, y + 3 * rowHeight - window.innerHeight);
    }
    showTip(node, margin + box.x + Math.min(box.width / 2, 60), y + rowHeight / 2);
  }

  function move(key: string): void {
    if (cursor < 0 || !drawnBox(cursor)) return focusNode(state.zoom);
    const box = drawnBox(cursor) as Box;
    const outward = (key === "ArrowUp") === (state.view === "flame");
    if (key === "ArrowUp" || key === "ArrowDown") {
      if (!outward) {
        if (cursor !== 0) focusNode(drawnBox(tree.parent[cursor]) ? tree.parent[cursor] : 0);
        return;
      }
      const children = drawn.boxes.concat(drawn.ancestors).filter((other) => other.node !== 0 && tree.parent[other.node] === cursor);
      const widest = children.reduce<Box | null>((best, other) => (best && best.width >= other.width ? best : other), null);
      if (widest) focusNode(widest.node);
      return;
    }
    const row = drawn.boxes.filter((other) => other.row === box.row).sort((a, b) => a.x - b.x);
    const next = row[row.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
    if (next) focusNode(next.node);
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  function apply(next: State): void {
    const turned = next.view !== state.view || next.zoom !== state.zoom || next.show !== state.show;
    const shows = next.show !== state.show;
    if (next.search !== state.search) found = search(tree, next.search);
    state = { ...next };
    if (shows) fillLegend();
    // A frame that vanished has no place in these widths.
    while (column().total[state.zoom] <= 0 && state.zoom !== 0) state.zoom = tree.parent[state.zoom];
    if (document.activeElement !== input) input.value = state.search;
    hideTip();
    draw();
    if (turned && standalone) scrollToRoot();
  }

  function scrollToRoot(): void {
    if (state.view === "icicle") {
      window.scrollTo(0, 0);
    } else if (Number(svg.getAttribute("height")) > window.innerHeight) {
      window.scrollTo(0, Number(svg.getAttribute("height")));
    }
  }

  // A zoom is a step of the browser's history; a search changes with every key and is none.
  function change(part: Partial<State>): void {
    const from = state.zoom;
    apply({ ...state, ...part });
    if (!standalone) return;
    const fragment = formatFragment(state);
    const address = fragment ? `#${fragment}` : window.location.pathname;
    if (state.zoom !== from) window.history.pushState(null, "", address);
    else window.history.replaceState(null, "", address);
  }

  function zoomTo(node: number): void {
    if (node === state.zoom) return;
    trail.push(state.zoom);
    cursor = node;
    change({ zoom: node });
  }

  function back(): void {
    if (helpOpen) return toggleHelp();
    if (state.search) return change({ search: "" });
    if (state.zoom) {
      // The browser's Back may have gone some of the way already.
      let to = trail.pop();
      while (to === state.zoom) to = trail.pop();
      cursor = state.zoom;
      change({ zoom: to === undefined ? 0 : to });
    } else {
      cursor = -1;
      placeCursor();
      hideTip();
    }
  }

  function resetZoom(): void {
    trail = [];
    change({ zoom: 0 });
  }

  function toggleHelp(): void {
    helpOpen = !helpOpen;
    draw();
  }

  const turnRound = () => change({ view: state.view === "flame" ? "icicle" : "flame" });
  if (tree.shows) {
    const everything = tree.shows.everything.total[0];
    for (const [show, name, meaning] of [
      ["work", "Work", "What threads compute, and their waiting, but for that of threads that have nothing to do"],
      ["computing", "Computing", "While threads ran, or would have, had they had a CPU or the GIL"],
      ["waiting", "Waiting", "While threads were blocked"],
      ["everything", "Everything", "All time of all threads"],
    ] as [Show, string, string][]) {
      const button = html("button", "", name);
      button.title = `${meaning}: ${shareWords(tree.shows[show].total[0], everything)} of all time (s)`;
      button.addEventListener("click", () => change({ show }));
      showButtons.set(show, button);
      shows.append(button);
    }
  }
  const nextShow = () => {
    if (!tree.shows) return;
    const all = Array.from(showButtons.keys());
    change({ show: all[(all.indexOf(showing()) + 1) % all.length] });
  };
  const swapWidths = () => {
    if (difference) change({ widths: state.widths === "after" ? "before" : "after" });
  };

  // ---- wiring ---------------------------------------------------------------------------------------------------
  function pin(): void {
    if (standalone) barBox.setAttribute("y", String(window.scrollY));
  }

  frames.addEventListener("click", (event) => {
    const node = nodeAt(event.target);
    if (node >= 0) zoomTo(node);
  });
  frames.addEventListener("mousemove", (event) => {
    const node = nodeAt(event.target);
    if (node < 0) return hideTip();
    const [x, y] = pointOf(event);
    showTip(node, x, y);
  });
  frames.addEventListener("mouseleave", hideTip);
  reset.addEventListener("click", resetZoom);
  turn.addEventListener("click", turnRound);
  widths.addEventListener("click", swapWidths);
  help.addEventListener("click", toggleHelp);
  input.addEventListener("input", () => change({ search: input.value }));
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") {
      input.value = "";
      change({ search: "" });
      input.blur();
      svg.focus();
    } else if (event.key === "Enter") {
      input.blur();
      svg.focus();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      input.select();
    }
  });

  function step(direction: 1 | -1): void {
    let node = nextMatch(tree, column().total, found, state.zoom, cursor, direction);
    // A match too narrow to be drawn: point at the innermost drawn frame around it.
    while (node && !drawnBox(node)) node = tree.parent[node];
    if (node) focusNode(node);
  }

  (standalone ? window : svg).addEventListener("keydown", (raw) => {
    const event = raw as KeyboardEvent;
    const command = event.ctrlKey || event.metaKey;
    const actions: Record<string, () => void> = {
      "/": () => input.select(),
      ArrowUp: () => move("ArrowUp"),
      ArrowDown: () => move("ArrowDown"),
      ArrowLeft: () => move("ArrowLeft"),
      ArrowRight: () => move("ArrowRight"),
      Enter: () => cursor >= 0 && zoomTo(cursor),
      Escape: back,
      Home: resetZoom,
      i: turnRound,
      w: swapWidths,
      s: nextShow,
      n: () => step(1),
      N: () => step(-1),
      c: () => cursor >= 0 && navigator.clipboard?.writeText(labelOf(tree, cursor).full).catch(() => undefined),
      "?": toggleHelp,
    };
    let action: (() => void) | undefined = actions[event.key];
    if (command || event.altKey) action = command && event.key === "f" ? actions["/"] : undefined;
    // Buttons keep their own Enter.
    if (event.key === "Enter" && event.target instanceof Element && event.target.closest("button")) action = undefined;
    if (!action) return;
    event.preventDefault();
    action();
  });

  fillLegend();
  if (standalone) {
    window.addEventListener("scroll", pin);
    window.addEventListener("resize", draw);
    window.addEventListener("popstate", () => apply(parseFragment(window.location.hash, tree.parent.length)));
    window.addEventListener("hashchange", () => apply(parseFragment(window.location.hash, tree.parent.length)));
    document.title = picture.title;
    apply(parseFragment(window.location.hash, tree.parent.length));
    scrollToRoot();
  } else {
    new ResizeObserver(draw).observe(svg.parentElement as Element);
    apply(initialState);
  }
}

const script = document.currentScript as Element | null;
const svg = (script && script.closest("svg")) || document.querySelector("svg");
const data = svg && svg.querySelector("#phlox-data");
if (svg && data) start(svg as SVGSVGElement, JSON.parse(data.textContent || "{}"));
