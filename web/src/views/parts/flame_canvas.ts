// A flame graph on a canvas no larger than its part of the window: only the visible part is drawn, the rest is scrolled
// to. It knows trees and widths; the view defines zooms, menus and tooltips.
import { element } from "../../page/dom";
import { nextMatch } from "../../model/search";
import { Label, Shape } from "../../model/tree";
import { Box, defaultOptions, layout, Layout } from "../../layout/flame";
import { Rows } from "../../layout/rows";
import { countWords, fitName } from "../../words";
import { Page, Picture } from "../view";
import { PixelRows, rgbOf } from "./pixel_rows";
import { Pen, SvgPen } from "./svg_pen";
import { Monospaced } from "./text_widths";
import { HoverTip } from "./hover_tip";

const rowHeight = 18;
const textMargin = 4;
const fadedSearch = 0.38;
const fadedAncestor = 0.5;
const mostArranged = 8;

export interface Flame {
  tree: Shape;
  total: Float64Array; // widths, by node
  labels: Label[]; // by the tree's labels
  hits: Uint8Array; // by label: matches the search
  fill(node: number): string;
  tip(node: number): Node;
  spoken(node: number): string;
}

interface Actions {
  zoom(node: number): void; // requested: pass it to show()
  menu(node: number, x: number, y: number): void;
  upward(): boolean; // the root at the bottom
  shown(done: Layout): void; // called after drawing; `done` says what was omitted
}

export class FlameCanvas {
  readonly element: HTMLElement;
  zoom = 0;
  cursor = -1; // node with the keyboard cursor; -1: none
  flame: Flame | null = null;
  private readonly canvas = element("canvas");
  private readonly pen = this.canvas.getContext("2d") as CanvasRenderingContext2D;
  private readonly spacer = element("div", "spacer", this.canvas);
  private boxes: Layout | null = null;
  private rows: Rows | null = null;
  private readonly arranged = new Map<string, [Layout, Rows]>(); // by zoom and width: recent layouts, to go back to
  private readonly narrow = new PixelRows();
  readonly hover: HoverTip<number>; // a node

  constructor(private readonly page: Page, label: string, private readonly actions: Actions) {
    this.element = element("div", {
      class: "scroller flames",
      tabindex: 0,
      role: "application",
      "aria-roledescription": "flame graph",
      "aria-label": `${label}. Arrow keys move from frame to frame, Enter zooms, m opens the menu of a frame.`,
    }, this.spacer);
    this.hover = new HoverTip(page, (node) => (this.flame as Flame).tip(node));
    const { element: box } = this;
    box.addEventListener("scroll", () => this.draw());
    box.addEventListener("click", (event) => {
      const at = this.boxAt(event);
      if (at) this.actions.zoom(at.node);
    });
    box.addEventListener("contextmenu", (event) => {
      const at = this.boxAt(event);
      if (!at) return;
      event.preventDefault();
      this.hover.away();
      this.actions.menu(at.node, event.clientX, event.clientY);
    });
    box.addEventListener("pointermove", (event) => {
      const at = this.boxAt(event);
      box.style.cursor = at ? "pointer" : "";
      if (at) this.hover.show(at.node, event.clientX, event.clientY);
      else this.hover.away();
    });
    box.addEventListener("pointerleave", () => this.hover.away());
  }

  // `fresh`: the tree or the widths changed.
  show(flame: Flame, zoom: number, fresh: boolean): void {
    this.flame = flame;
    this.zoom = zoom;
    if (fresh) this.arranged.clear();
    if (this.cursor >= flame.tree.parent.length) this.cursor = -1;
    this.draw();
  }

  get upward(): boolean {
    return this.actions.upward();
  }

  // ---- geometry -------------------------------------------------------------------------------------------------
  private topOf(row: number, height: number): number {
    return this.upward ? height - (row + 1) * rowHeight : row * rowHeight;
  }

  private heightOf(done: Layout): number {
    return Math.max(done.rows * rowHeight, this.element.clientHeight);
  }

  private arrange(flame: Flame): Layout {
    const width = this.element.clientWidth;
    const key = `${this.zoom} ${width}`;
    let done = this.arranged.get(key);
    if (!done) {
      const boxes = layout(flame.tree, flame.total, this.zoom, { ...defaultOptions, width });
      done = [boxes, new Rows(boxes)];
    }
    this.arranged.delete(key);
    this.arranged.set(key, done);
    for (const oldest of this.arranged.keys()) {
      if (this.arranged.size <= mostArranged) break;
      this.arranged.delete(oldest);
    }
    [this.boxes, this.rows] = done;
    return this.boxes;
  }

  // ---- drawing --------------------------------------------------------------------------------------------------
  private prepare(height: number): void {
    const { canvas, pen, element: box } = this;
    this.spacer.style.height = `${height}px`;
    const [wide, high] = [box.clientWidth, box.clientHeight];
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(high * scale)) {
      canvas.width = Math.round(wide * scale);
      canvas.height = Math.round(high * scale);
      canvas.style.width = `${wide}px`;
      canvas.style.height = `${high}px`;
    }
    pen.setTransform(scale, 0, 0, scale, 0, -box.scrollTop * scale);
    pen.clearRect(0, box.scrollTop, wide, high);
  }

  draw(): void {
    const { flame, element: box } = this;
    if (!flame || !box.clientWidth) return;
    const done = this.arrange(flame);
    const height = this.heightOf(done);
    this.prepare(height);
    this.paint(this.pen, flame, done, height, box.scrollTop, box.scrollTop + box.clientHeight);
    this.drawCursor(height);
    this.actions.shown(done);
  }

  // Rows between two heights.
  private paint(pen: Pen, flame: Flame, done: Layout, height: number, from: number, to: number): void {
    pen.font = this.page.colour("--mono");
    pen.textBaseline = "middle";
    const font = new Monospaced(pen);
    const first = Math.floor(from / rowHeight) - 1;
    const last = Math.ceil(to / rowHeight) + 1;
    const { matches } = this.page;
    const hasHits = matches !== null && matches.count > 0;
    const total = Math.round(height / rowHeight);
    this.narrow.start(this.element.clientWidth, window.devicePixelRatio || 1);
    for (let row = first; row <= last; ++row) {
      const level = this.upward ? total - 1 - row : row;
      if (level < 0 || level >= done.rows) continue;
      const y = this.topOf(level, height);
      if (done.skipped && level === done.skipped.row)
        this.drawSkipped(pen, done.skipped.frames, y, this.element.clientWidth);
      this.narrow.row(y, rowHeight - 1);
      for (const one of (this.rows as Rows).at(level)) {
        if (pen instanceof SvgPen) pen.open(flame.spoken(one.node));
        this.drawBox(pen, font, flame, one, y, level < done.boxes[0].row, hasHits);
        if (pen instanceof SvgPen) pen.close();
      }
    }
    if (!(pen instanceof SvgPen)) this.narrow.paint(pen);
    pen.globalAlpha = 1;
  }

  // All rows. `what`: "flame graph"; returns none before the first drawing.
  pictures(what: string, words: string, legend: Picture["legend"]): Picture[] {
    const { flame } = this;
    if (!flame || !this.element.clientWidth) return [];
    const done = this.arrange(flame);
    const height = done.rows * rowHeight;
    return [{ what, words, legend, width: this.element.clientWidth, height,
      draw: (pen) => this.paint(pen, flame, done, height, 0, height) }];
  }

  private drawBox(pen: Pen, font: Monospaced, { tree, labels, hits, fill }: Flame, box: Box, y: number, above: boolean,
    hasHits: boolean): void
  {
    const { page } = this;
    const id = tree.label[box.node];
    const hit = hasHits && hits[id] === 1;
    const width = box.width >= 2 ? box.width - 0.5 : box.width;
    const alpha = hit ? 1 : hasHits ? fadedSearch : above ? fadedAncestor : 1;
    const colour = hit ? page.colour("--hit") : fill(box.node);
    const room = box.width - 2 * textMargin;
    const hasWords = room >= 2 * font.character;
    if (!hasWords && !(pen instanceof SvgPen)) return this.narrow.add(box.x, width, rgbOf(colour), alpha);
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    pen.fillRect(box.x, y, width, rowHeight - 1);
    if (!hasWords) return;
    if (hasHits && !hit) pen.globalAlpha = 0.75;
    pen.fillStyle = page.colour(hit ? "--hit-ink" : "--ink");
    const { name, full } = labels[id];
    pen.fillText(fitName(name, full, room, font.width), box.x + textMargin, y + rowHeight / 2);
  }

  private drawSkipped(pen: Pen, frames: number, y: number, wide: number): void {
    const { page } = this;
    pen.globalAlpha = 1;
    pen.strokeStyle = pen.fillStyle = page.colour("--faint");
    pen.setLineDash([3, 3]);
    pen.strokeRect(0.5, y + 2.5, wide - 1, rowHeight - 6);
    pen.setLineDash([]);
    pen.fillText(`${countWords(frames)} frames between`, wide / 2 - 60, y + rowHeight / 2);
  }

  private drawCursor(height: number): void {
    const box = this.cursor >= 0 ? this.boxOf(this.cursor) : undefined;
    if (!box) return;
    const { pen } = this;
    pen.strokeStyle = this.page.colour("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(box.x + 1, this.topOf(box.row, height) + 1, Math.max(2, box.width - 2.5), rowHeight - 3);
    pen.lineWidth = 1;
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  private boxOf(node: number): Box | undefined {
    return this.boxes?.boxes.find((box) => box.node === node) ?? this.boxes?.ancestors.find((box) => box.node === node);
  }

  private boxAt(event: MouseEvent): Box | undefined {
    if (!this.boxes || !this.rows) return undefined;
    const frame = this.element.getBoundingClientRect();
    const y = event.clientY - frame.top + this.element.scrollTop;
    const row = Math.floor((this.upward ? this.heightOf(this.boxes) - y : y) / rowHeight);
    return this.rows.find(row, event.clientX - frame.left);
  }

  focusNode(node: number): void {
    this.cursor = node;
    const box = this.boxOf(node);
    const { boxes, flame, element: area } = this;
    if (!box || !boxes || !flame) return this.draw();
    const y = this.topOf(box.row, this.heightOf(boxes));
    if (y < area.scrollTop) area.scrollTop = y - rowHeight;
    if (y + rowHeight > area.scrollTop + area.clientHeight) area.scrollTop = y + 2 * rowHeight - area.clientHeight;
    this.draw();
    const frame = area.getBoundingClientRect();
    this.hover.show(node, frame.left + box.x + Math.min(box.width / 2, 60),
      frame.top + y - area.scrollTop + rowHeight / 2);
    this.page.say(flame.spoken(node));
  }

  // Removes the keyboard cursor and its tooltip.
  leave(): void {
    this.cursor = -1;
    this.hover.away();
    this.draw();
  }

  move(key: string): void {
    const { boxes, flame, cursor } = this;
    if (!boxes || !flame || !this.rows) return;
    const box = cursor >= 0 ? this.boxOf(cursor) : undefined;
    if (!box) return this.focusNode(this.zoom);
    const { tree } = flame;
    if (key === "ArrowUp" || key === "ArrowDown") {
      const inward = (key === "ArrowUp") === this.upward;
      if (!inward)
        return void (cursor !== 0 && this.focusNode(this.boxOf(tree.parent[cursor]) ? tree.parent[cursor] : 0));
      const children = this.rows.at(box.row + 1).filter((other) => tree.parent[other.node] === cursor);
      const widest = children.reduce<Box | null>((best, other) => (best && best.width >= other.width ? best : other),
        null);
      return void (widest && this.focusNode(widest.node));
    }
    const row = this.rows.at(box.row);
    const next = row[row.indexOf(box) + (key === "ArrowRight" ? 1 : -1)];
    if (next) this.focusNode(next.node);
  }

  // The next match of the search, or the innermost drawn frame around it if it is too narrow.
  step(direction: 1 | -1): void {
    const { flame } = this;
    if (!flame) return;
    let node = nextMatch(flame.tree, flame.total, { labels: flame.hits }, this.zoom, this.cursor, direction);
    while (node && !this.boxOf(node)) node = flame.tree.parent[node];
    if (node) this.focusNode(node);
  }

  openMenu(): void {
    const box = this.cursor > 0 ? this.boxOf(this.cursor) : undefined;
    if (!box || !this.boxes) return;
    const frame = this.element.getBoundingClientRect();
    this.hover.away();
    this.actions.menu(this.cursor, frame.left + box.x + 8,
      frame.top + this.topOf(box.row, this.heightOf(this.boxes)) - this.element.scrollTop + rowHeight);
  }

  // Makes the root visible.
  scrollToRoot(): void {
    this.element.scrollTop = this.upward ? this.element.scrollHeight : 0;
  }
}

// What a layout omitted, as text; "": nothing.
export function leftOutWords(done: Layout, share: (weight: number) => string): string {
  const several = (count: number) => `${countWords(count)} ${count === 1 ? "frame" : "frames"}`;
  const out: string[] = [];
  if (done.narrow.frames)
    out.push(`${several(done.narrow.frames)} narrower than ${done.minWidth} px (${share(done.narrow.weight)})`);
  if (done.deep.frames)
    out.push(`${several(done.deep.frames)} deeper than ${defaultOptions.maxDepth} rows (${share(done.deep.weight)})`);
  return out.length ? `Left out: ${out.join(" and ")}. Zoom in to see them.` : "";
}
