// Draws the flame chart: the title of each thread, what it did, and the boxes of its stacks. Gets all data passed in.
import { At, ChartRows, lineHeight, rowHeight, titleHeight } from "../layout/chart_rows";
import { ChartBox, firstAfter } from "../layout/flame_chart";
import { gutterWidth, Sight, xOf } from "../layout/timeline";
import { CallTree } from "../model/call_tree";
import { By } from "../model/head";
import { Segments } from "../model/questions/segments";
import { ThreadTotals } from "../model/questions/threads";
import { Label } from "../model/tree";
import { fit, fitName, timeWords, weightWords } from "../words";
import { PixelRows, rgbOf } from "./parts/pixel_rows";
import { Pen, SvgPen } from "./parts/svg_pen";
import { Monospaced, textWidth } from "./parts/text_widths";
import { shortName } from "./parts/thread_names";
import { activityColours } from "./timeline_picture";
import { Page } from "./view";

const faded = 0.42;

// An answer, and where its boxes are.
export interface Drawn {
  by: By;
  tree: CallTree;
  labels: Label[];
  threads: number[];
  segments: Segments;
  rows: ChartRows;
}

export interface ChartScene extends Drawn {
  totals: ThreadTotals;
  sight: Sight;
  width: number;
  hits: Uint8Array | null; // by label; null: nothing is searched, or nothing found
  cursor: At | null;
}

// "f, from 1.2 s, for 30 ms"
export const boxWords = (name: string, { from, to }: ChartBox, sight: Sight) =>
  `${name}, from ${timeWords(from, (sight.to - sight.from) / 100)}, for ${weightWords(to - from, "ns")}`;

export class ChartPicture {
  private readonly narrow = new PixelRows();

  constructor(private readonly page: Page) {}

  // The part that begins `scrolled` pixels from the top and is `high` pixels high.
  paint(pen: Pen, scene: ChartScene, scrolled: number, high: number): void {
    const { rows, width } = scene;
    const left = gutterWidth(width);
    rows.lanes.forEach((_, at) => {
      const top = rows.tops[at] - scrolled;
      if (rows.bottom(at) < scrolled || top > high) return;
      this.title(pen, scene, at, top, left);
      pen.save();
      pen.beginPath();
      pen.rect(left, 0, width - left, high);
      pen.clip();
      pen.translate(left, 0);
      this.lane(pen, { ...scene, width: width - left }, at, scrolled, high);
      pen.restore();
    });
  }

  private title(pen: Pen, { threads, rows, totals }: ChartScene, at: number, top: number, left: number): void {
    const y = top + titleHeight + lineHeight + rowHeight / 2;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillStyle = this.page.colour("--ink");
    pen.fillText(fit(shortName(this.page.catalogue, threads[at]), left - 12, (text) => textWidth(pen, text)), 0, y);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = this.page.colour("--faint");
    pen.fillText(`${weightWords(totals.cpu[threads[at]], "ns")} CPU time`, 0, y + rowHeight);
    if (rows.lanes[at].rows.length === 0) pen.fillText("nothing of it here", left, y);
  }

  // All but the title; the width is that of the plot.
  private lane(pen: Pen, scene: ChartScene, at: number, scrolled: number, high: number): void {
    const { rows, cursor } = scene;
    this.narrow.start(scene.width, window.devicePixelRatio || 1);
    this.activity(pen, scene, at, rows.tops[at] - scrolled + titleHeight);
    pen.font = this.page.colour("--mono");
    const font = new Monospaced(pen);
    rows.lanes[at].rows.forEach((boxes, row) => {
      const y = rows.top(at, row) - scrolled;
      if (y > -rowHeight && y < high) this.row(pen, font, scene, boxes, y);
    });
    if (pen instanceof SvgPen) return;
    this.narrow.paint(pen);
    if (cursor?.lane === at && rows.has(cursor))
      this.cursor(pen, scene, rows.box(cursor), rows.top(at, cursor.row) - scrolled);
  }

  // As in the thread's timeline row.
  private activity(pen: Pen, { segments, sight, width }: ChartScene, at: number, y: number): void {
    const { first, start, end, activity } = segments;
    this.narrow.row(y, lineHeight - 1);
    for (let i = first[at]; i < first[at + 1]; ++i) {
      const a = xOf(start[i], sight, width);
      const b = xOf(end[i], sight, width);
      if (b < 0 || a > width) continue;
      const colour = this.page.colour(activityColours[activity[i]]);
      if (!(pen instanceof SvgPen)) {
        this.narrow.add(a, Math.max(0.5, b - a), rgbOf(colour), 1);
        continue;
      }
      pen.fillStyle = colour;
      pen.fillRect(a, y, Math.max(0.5, b - a), lineHeight - 1);
    }
  }

  private row(pen: Pen, font: Monospaced, scene: ChartScene, boxes: readonly ChartBox[], y: number): void {
    const { sight, width } = scene;
    let done = -1; // pixels up to here are drawn
    this.narrow.row(y, rowHeight - 1);
    for (let i = firstAfter(boxes, sight.from); i < boxes.length && boxes[i].from < sight.to; ++i) {
      const from = Math.max(-2, xOf(boxes[i].from, sight, width));
      const to = Math.min(width + 2, xOf(boxes[i].to, sight, width));
      if (to - done < 0.5) continue; // of several in one pixel, draw the first
      done = to;
      this.box(pen, font, scene, boxes[i], from, to, y);
    }
    pen.globalAlpha = 1;
  }

  private box(pen: Pen, font: Monospaced, scene: ChartScene, box: ChartBox, from: number, to: number, y: number): void {
    const { page } = this;
    const { hits } = scene;
    const id = scene.tree.label[box.node];
    const { name, full } = scene.labels[id];
    const hit = hits !== null && hits[id] === 1;
    const alpha = hit ? 1 : hits ? 0.38 : box.waits ? faded : 1;
    const colour = hit ? page.colour("--hit") : page.fill(scene.labels[id]);
    const width = Math.max(0.6, to - from - (to - from >= 3 ? 0.6 : 0));
    const inner = Math.min(scene.width, to) - Math.max(0, from) - 6;
    const hasText = inner >= 2 * font.character;
    if (!hasText && !(pen instanceof SvgPen)) return this.narrow.add(from, width, rgbOf(colour), alpha);
    pen.globalAlpha = alpha;
    pen.fillStyle = colour;
    if (pen instanceof SvgPen) pen.open(boxWords(full, box, scene.sight));
    pen.fillRect(from, y, width, rowHeight - 1);
    if (hasText) {
      pen.globalAlpha = hits && !hit ? 0.75 : 1;
      pen.fillStyle = page.colour(hit ? "--hit-ink" : "--ink");
      pen.fillText(fitName(name, full, inner, font.width), Math.max(0, from) + 3, y + rowHeight / 2);
    }
    if (pen instanceof SvgPen) pen.close();
  }

  private cursor(pen: Pen, { sight, width }: ChartScene, box: ChartBox, y: number): void {
    const [a, b] = [Math.max(0, xOf(box.from, sight, width)), Math.min(width, xOf(box.to, sight, width))];
    pen.strokeStyle = this.page.colour("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(a + 1, y + 1, Math.max(2, b - a - 2), rowHeight - 3);
    pen.lineWidth = 1;
  }
}
