// The script inside a flame graph SVG: draws the embedded tree over the static picture, and keeps zoom, search and view
// in the address. This file handles changes of state; texts are in facts.ts, layout in layout/, drawing in frames.ts,
// bar.ts and tip.ts.
import { defaultOptions, layout, Layout } from "../layout/flame";
import { Found, nextMatch, search } from "../model/search";
import { decodeTree, labelOf, Tree } from "../model/tree";
import { Bar } from "./bar";
import { svgElement } from "./elements";
import { Facts, Picture } from "./facts";
import { formatFragment, initialState, parseFragment, State } from "./fragment";
import { Frames, margin, Place, rowHeight, TextWidths, yOf } from "./frames";
import { Arrow, boxOf, neighbour } from "./movement";
import { Sight, Tip } from "./tip";

class FlameSvg {
  private readonly tree: Tree;
  private readonly facts: Facts;
  private readonly standalone: boolean; // the document is the picture; otherwise it is part of one
  private readonly widths = new TextWidths();
  private readonly frames: Frames;
  private readonly tip: Tip;
  private readonly bar: Bar;

  private state: State = initialState;
  private found: Found;
  private drawn: Layout;
  private top = 0; // top of the frames
  private cursor = -1; // node under keyboard focus; -1: none
  private trail: number[] = []; // zooms to go back to
  private helpOpen = false;

  constructor(private readonly svg: SVGSVGElement, private readonly picture: Picture) {
    const tree = (this.tree = decodeTree(picture.tree));
    this.facts = new Facts(picture, tree);
    this.standalone = svg === (document.documentElement as Element);
    this.found = search(tree, "");
    this.drawn = layout(tree, tree.weights.total, 0, defaultOptions);
    this.frames = new Frames(this.facts, this.widths);
    this.tip = new Tip(this.facts);
    this.bar = new Bar(this.facts, {
      reset: this.resetZoom,
      turn: this.turnRound,
      swapWidths: this.swapWidths,
      help: this.toggleHelp,
      show: (show) => this.change({ show }),
      search: (text) => this.change({ search: text }),
    });
  }

  start(): void {
    const { svg } = this;
    svg.querySelector("#static")?.remove();
    svg.classList.add("live");
    svg.setAttribute("tabindex", "0");
    svg.style.outline = "none";
    // The bar moves with every scroll: Chromium would use it as a scroll anchor and scroll without end.
    svg.style.setProperty("overflow-anchor", "none");
    const paper = svgElement("rect", { class: "paper", width: "100%", height: "100%" });
    svg.append(paper, this.frames.element, this.frames.cursorBox, this.bar.element, this.tip.element);
    this.listen();
    this.bar.fillLegend(this.state);
    if (!this.standalone) {
      new ResizeObserver(this.draw).observe(svg.parentElement as Element);
      return this.apply(initialState);
    }
    const follow = () => this.apply(parseFragment(window.location.hash, this.tree.parent.length));
    window.addEventListener("scroll", this.pin);
    window.addEventListener("resize", this.draw);
    window.addEventListener("popstate", follow);
    window.addEventListener("hashchange", follow);
    document.title = this.picture.title;
    follow();
    this.scrollToRoot();
  }

  // ---- drawing --------------------------------------------------------------------------------------------------
  private pageWidth(): number {
    const room = this.standalone
      ? document.documentElement.clientWidth || window.innerWidth
      : this.svg.parentElement?.clientWidth;
    return Math.max(320, room || 1200);
  }

  private height(): number {
    return Number(this.svg.getAttribute("height"));
  }

  private place(): Place {
    return { drawn: this.drawn, view: this.state.view, top: this.top };
  }

  private readonly draw = (): void => {
    const { svg, state, facts } = this;
    // If the root of a flame graph is visible, keep it so when the text above grows (keys, a search) or the window does
    // not.
    const low = this.standalone && state.view === "flame" && window.scrollY > 0 &&
      window.scrollY + window.innerHeight >= this.height() - 2;
    this.widths.follow(svg);
    const pageWide = this.pageWidth();
    this.drawn = layout(this.tree, facts.column(state).total, state.zoom, { ...defaultOptions,
      width: pageWide - 2 * margin });
    this.bar.show(state, this.found, this.drawn, this.helpOpen, this.widths.measure);
    this.top = this.bar.layOut(pageWide) + 8;
    const height = this.top + this.drawn.rows * rowHeight + margin;
    svg.setAttribute("width", String(pageWide));
    svg.setAttribute("height", String(this.standalone ? Math.max(height, window.innerHeight - 1) : height));
    svg.removeAttribute("viewBox");
    this.frames.draw(this.place(), this.found, pageWide);
    svg.classList.toggle("searching", this.found.frames > 0);
    this.placeCursor();
    if (low) this.scrollToRoot();
    this.pin();
  };

  private placeCursor(): void {
    this.frames.placeCursor(this.place(), this.cursor >= 0 ? boxOf(this.drawn, this.cursor) : undefined);
  }

  private readonly pin = (): void => {
    if (this.standalone) this.bar.element.setAttribute("y", String(window.scrollY));
  };

  private scrollToRoot(): void {
    if (this.state.view === "icicle") {
      window.scrollTo(0, 0);
    } else if (this.height() > window.innerHeight) {
      window.scrollTo(0, this.height());
    }
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  private showTip(node: number, x: number, y: number): void {
    const sight: Sight = this.standalone
      ? { left: window.scrollX, top: window.scrollY, width: this.pageWidth(), height: window.innerHeight }
      : { left: 0, top: 0, width: this.pageWidth(), height: this.height() };
    this.tip.show(this.state, node, x, y, sight);
  }

  private focusNode(node: number): void {
    this.cursor = node;
    this.placeCursor();
    const box = boxOf(this.drawn, node);
    if (!box) return this.tip.hide();
    const y = yOf(this.place(), box.row);
    if (this.standalone) {
      const hidden = this.bar.height();
      if (y < window.scrollY + hidden) window.scrollTo(window.scrollX, Math.max(0, y - hidden - rowHeight));
      if (y + rowHeight > window.scrollY + window.innerHeight)
        window.scrollTo(window.scrollX, y + 3 * rowHeight - window.innerHeight);
    }
    this.showTip(node, margin + box.x + Math.min(box.width / 2, 60), y + rowHeight / 2);
  }

  private move(arrow: Arrow): void {
    const node = neighbour(this.tree, this.drawn, this.state.view, this.state.zoom, this.cursor, arrow);
    if (node !== undefined) this.focusNode(node);
  }

  private step(direction: 1 | -1): void {
    let node = nextMatch(this.tree, this.facts.column(this.state).total, this.found, this.state.zoom, this.cursor,
      direction);
    // If a match is too narrow to be drawn, point at the innermost drawn frame around it.
    while (node && !boxOf(this.drawn, node)) node = this.tree.parent[node];
    if (node) this.focusNode(node);
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  private apply(next: State): void {
    const shows = next.show !== this.state.show;
    const turned = next.view !== this.state.view || next.zoom !== this.state.zoom || shows;
    if (next.search !== this.state.search) this.found = search(this.tree, next.search);
    const state = (this.state = { ...next });
    if (shows) this.bar.fillLegend(state);
    // A frame that vanished has no width here.
    while (this.facts.column(state).total[state.zoom] <= 0 && state.zoom !== 0)
      state.zoom = this.tree.parent[state.zoom];
    const { input } = this.bar;
    if (document.activeElement !== input) input.value = state.search;
    this.tip.hide();
    this.draw();
    if (turned && this.standalone) this.scrollToRoot();
  }

  // A zoom is a history entry; a search changes with every key and is none.
  private change(part: Partial<State>): void {
    const from = this.state.zoom;
    this.apply({ ...this.state, ...part });
    if (!this.standalone) return;
    const fragment = formatFragment(this.state);
    const address = fragment ? `#${fragment}` : window.location.pathname;
    if (this.state.zoom !== from) window.history.pushState(null, "", address);
    else window.history.replaceState(null, "", address);
  }

  private zoomTo(node: number): void {
    if (node === this.state.zoom) return;
    this.trail.push(this.state.zoom);
    this.cursor = node;
    this.change({ zoom: node });
  }

  private readonly back = (): void => {
    const { zoom } = this.state;
    if (this.helpOpen) return this.toggleHelp();
    if (this.state.search) return this.change({ search: "" });
    if (zoom) {
      // The browser's Back may have undone some already.
      let to = this.trail.pop();
      while (to === zoom) to = this.trail.pop();
      this.cursor = zoom;
      this.change({ zoom: to === undefined ? 0 : to });
    } else {
      this.cursor = -1;
      this.placeCursor();
      this.tip.hide();
    }
  };

  private readonly resetZoom = (): void => {
    this.trail = [];
    this.change({ zoom: 0 });
  };

  private readonly toggleHelp = (): void => {
    this.helpOpen = !this.helpOpen;
    this.draw();
  };

  private readonly turnRound = (): void => this.change({ view: this.state.view === "flame" ? "icicle" : "flame" });

  private readonly nextShow = (): void => {
    if (this.tree.shows) this.change({ show: this.bar.showAfter(this.facts.showing(this.state)) });
  };

  private readonly swapWidths = (): void => {
    if (this.facts.difference) this.change({ widths: this.state.widths === "after" ? "before" : "after" });
  };

  // ---- wiring ---------------------------------------------------------------------------------------------------
  private listen(): void {
    const frames = this.frames.element;
    frames.addEventListener("click", (event) => {
      const node = this.frames.nodeAt(event.target);
      if (node >= 0) this.zoomTo(node);
    });
    frames.addEventListener("mousemove", (event) => {
      const node = this.frames.nodeAt(event.target);
      if (node < 0) return this.tip.hide();
      const box = this.svg.getBoundingClientRect();
      this.showTip(node, event.clientX - box.left, event.clientY - box.top);
    });
    frames.addEventListener("mouseleave", this.tip.hide);
    this.bar.input.addEventListener("keydown", (event) => this.onInputKey(event));
    (this.standalone ? window : this.svg).addEventListener("keydown", (event) => this.onKey(event as KeyboardEvent));
  }

  private onInputKey(event: KeyboardEvent): void {
    const { input } = this.bar;
    event.stopPropagation();
    if (event.key === "Escape") {
      input.value = "";
      this.change({ search: "" });
      input.blur();
      this.svg.focus();
    } else if (event.key === "Enter") {
      input.blur();
      this.svg.focus();
      this.step(event.shiftKey ? -1 : 1);
    } else if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      input.select();
    }
  }

  private readonly actions: Record<string, () => void> = {
    "/": () => this.bar.input.select(),
    ArrowUp: () => this.move("ArrowUp"),
    ArrowDown: () => this.move("ArrowDown"),
    ArrowLeft: () => this.move("ArrowLeft"),
    ArrowRight: () => this.move("ArrowRight"),
    Enter: () => this.cursor >= 0 && this.zoomTo(this.cursor),
    Escape: this.back,
    Home: this.resetZoom,
    i: this.turnRound,
    w: this.swapWidths,
    s: this.nextShow,
    n: () => this.step(1),
    N: () => this.step(-1),
    c: () =>
      this.cursor >= 0 && navigator.clipboard?.writeText(labelOf(this.tree, this.cursor).full).catch(() => undefined),
    "?": this.toggleHelp,
  };

  private onKey(event: KeyboardEvent): void {
    const command = event.ctrlKey || event.metaKey;
    let action: (() => void) | undefined = this.actions[event.key];
    if (command || event.altKey) action = command && event.key === "f" ? this.actions["/"] : undefined;
    // Buttons keep their own Enter.
    if (event.key === "Enter" && event.target instanceof Element && event.target.closest("button")) action = undefined;
    if (!action) return;
    event.preventDefault();
    action();
  }
}

const script = document.currentScript as Element | null;
const svg = (script && script.closest("svg")) || document.querySelector("svg");
const data = svg && svg.querySelector("#phlox-data");
if (svg && data) new FlameSvg(svg as SVGSVGElement, JSON.parse(data.textContent || "{}")).start();
