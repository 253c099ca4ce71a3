// Draws the timeline: the strip of the whole recording, ruler and marks above; one row per thread beneath. Gets all
// data passed in and asks nothing.
import { Sight, paintRows, ticks, xOf } from "../layout/timeline";
import { TimelineRow } from "../layout/timeline_rows";
import { between, Span } from "../model/filters";
import { activities } from "../model/states";
import { fit, weightWords } from "../words";
import { rgbOf } from "./parts/pixel_rows";
import { Pen, SvgPen } from "./parts/svg_pen";
import { textWidth } from "./parts/text_widths";
import { Happened, isThreads, Mark } from "./timeline_events";
import { Page } from "./view";

export const rowHeight = 20;
export const strip = { top: 2, height: 30 };
export const ruler = { top: 34, height: 16 };
export const marksLane = { top: 50, height: 15 };
export const headHeight = 66;
const roomForAmounts = 150; // pixels of the gutter; below that only the name is shown
const font = "12px system-ui, sans-serif";
const small = "11px system-ui, sans-serif";

export const activityColours = ["--python", "--native", "--kernel", "--collecting", "--runnable", "--gil", "--blocked",
  "--unknown"];

// Densities as a picture, drawn shifted and stretched until the next one arrives.
export class Band {
  private readonly canvas = document.createElement("canvas");
  range: Sight = { from: 0, to: 1 };
  rows = 0;

  paint(page: Page, time: Float32Array, bins: number, full: number[], height: number, range: Sight): void {
    this.range = range;
    this.rows = full.length;
    if (!full.length) return;
    this.canvas.width = bins;
    this.canvas.height = full.length * height;
    const pen = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    const image = pen.createImageData(bins, full.length * height);
    paintRows(time, bins, full, height, pixelColours(page), new Uint32Array(image.data.buffer));
    pen.putImageData(image, 0, 0);
  }

  // Draws row `row` of the picture into the plot, which begins at `left` and shows `sight`.
  draw(pen: Pen, row: number, height: number, y: number, left: number, width: number, sight: Sight): void {
    if (row >= this.rows) return;
    const length = this.range.to - this.range.from;
    const from = Math.max(sight.from, this.range.from);
    const to = Math.min(sight.to, this.range.to);
    if (to <= from) return;
    const bins = this.canvas.width;
    const source = ((from - this.range.from) / length) * bins;
    const x = xOf(from, sight, width);
    const wide = ((to - from) / length) * bins;
    if (pen instanceof SvgPen) {
      const [first, last] = [Math.floor(source), Math.ceil(source + wide)];
      const pixel = (xOf(to, sight, width) - x) / wide;
      const mine = this.canvas.getContext("2d") as CanvasRenderingContext2D;
      return pen.pixels(mine.getImageData(first, row * height, last - first, height),
        left + x + (first - source) * pixel, y, (last - first) * pixel, height);
    }
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.canvas, source, row * height, wide, height, left + x, y, xOf(to, sight, width) - x, height);
  }
}

// Little-endian RGBA words.
function pixelColours(page: Page): Uint32Array {
  return Uint32Array.from(activityColours, (name) => {
    const colour = rgbOf(page.colour(name));
    return ((255 << 24) | ((colour & 255) << 16) | (colour & 0xff00) | (colour >> 16)) >>> 0;
  });
}

// The value that fills the strip: the most time computed or ready to compute in any bin, at least one thread's worth.
export function stripFull(time: Float32Array, bins: number, binLength: number): number {
  let most = binLength;
  for (let bin = 0; bin < bins; ++bin) {
    let sum = 0;
    for (let activity = 0; activity < activities; ++activity) sum += time[bin * activities + activity];
    most = Math.max(most, sum);
  }
  return most;
}

export interface Scene {
  page: Page;
  whole: Sight;
  sight: Sight;
  gutter: number; // pixels left of the plot
  width: number; // gutter plus plot
  spans: [number, number][] | null; // times that the filters select
  compared: Sight[]; // the two ranges of a difference
  brush: Sight | null; // being chosen
  cursor: { row: number; time: number } | null;
  incidents: number[]; // moments
}

export function sized(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const pen = canvas.getContext("2d") as CanvasRenderingContext2D;
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.textBaseline = "middle";
  return pen;
}

function inPlot(pen: Pen, { gutter, width }: Scene, height: number, draw: (plot: number) => void): void {
  pen.save();
  pen.beginPath();
  pen.rect(gutter, 0, width - gutter, height);
  pen.clip();
  pen.translate(gutter, 0);
  draw(width - gutter);
  pen.restore();
}

// Dims the time outside the time filters and tints the range being chosen.
function drawRanges(pen: Pen, scene: Scene, sight: Sight, top: number, bottom: number, plot: number): void {
  const { page, spans, brush } = scene;
  if (spans) {
    pen.fillStyle = page.colour("--paper");
    pen.globalAlpha = 0.72;
    let at = -Infinity;
    for (const [from, to] of [...spans, [Infinity, Infinity]]) {
      const [a, b] = [Math.max(0, xOf(at, sight, plot)), Math.min(plot, xOf(from, sight, plot))];
      if (b > a) pen.fillRect(a, top, b - a, bottom - top);
      at = to;
    }
    pen.globalAlpha = 1;
    pen.fillStyle = page.colour("--accent");
    for (const edge of spans.flat())
      if (Number.isFinite(edge)) pen.fillRect(Math.round(xOf(edge, sight, plot)) - 0.5, top, 1, bottom - top);
  }
  if (brush) {
    const [a, b] = [xOf(brush.from, sight, plot), xOf(brush.to, sight, plot)];
    pen.fillStyle = page.colour("--accent");
    pen.globalAlpha = 0.22;
    pen.fillRect(a, top, Math.max(1, b - a), bottom - top);
    pen.globalAlpha = 1;
    pen.fillRect(Math.round(a), top, 1, bottom - top);
    pen.fillRect(Math.round(b), top, 1, bottom - top);
  }
}

// A line at each moment of an incident.
function drawIncidents(pen: Pen, { page, incidents }: Scene, sight: Sight, top: number, bottom: number,
  plot: number): void
{
  pen.fillStyle = page.colour("--bad");
  for (const time of incidents) {
    const x = Math.round(xOf(time, sight, plot));
    if (x >= 0 && x <= plot) pen.fillRect(Math.min(x, plot - 2), top, 2, bottom - top);
  }
}

export function drawHead(pen: Pen, scene: Scene, band: Band, most: number, marks: Mark[]): void {
  const { page, sight, whole, gutter, width } = scene;
  const measure = (text: string) => textWidth(pen, text);
  pen.font = small;
  pen.fillStyle = page.colour("--faint");
  pen.fillText(fit(`Whole recording, ${weightWords(whole.to - whole.from, "ns")}`, gutter - 10, measure), 0,
    strip.top + 8);
  const computing = most >= 1.5 ? `up to ${most.toFixed(most < 9.95 ? 1 : 0)} threads at once` : "one thread at a time";
  pen.fillText(fit(computing, gutter - 10, measure), 0, strip.top + 22);
  inPlot(pen, scene, headHeight, (plot) => {
    pen.fillStyle = page.colour("--raised");
    pen.fillRect(0, strip.top, plot, strip.height);
    band.draw(pen, 0, strip.height, strip.top, 0, plot, whole);
    drawRanges(pen, { ...scene, brush: null }, whole, strip.top, strip.top + strip.height, plot);
    drawIncidents(pen, scene, whole, strip.top, strip.top + strip.height, plot);
    const [a, b] = [xOf(sight.from, whole, plot), xOf(sight.to, whole, plot)];
    pen.strokeStyle = page.colour("--ink");
    pen.lineWidth = sight.from > whole.from || sight.to < whole.to ? 2 : 1;
    pen.strokeRect(a + 1, strip.top + 0.5, Math.max(2, b - a - 2), strip.height - 1);
    pen.lineWidth = 1;
    pen.fillStyle = page.colour("--soft");
    for (const { time, text } of ticks(sight, plot, 90)) {
      const x = Math.round(xOf(time, sight, plot));
      pen.fillRect(x, ruler.top + 2, 1, ruler.height - 2);
      pen.fillText(text, x + 4, ruler.top + 9);
    }
    drawMarks(pen, scene, marks, plot);
    scene.compared.forEach((range, i) => drawCompared(pen, scene, range, i ? "second" : "first", plot));
    drawRanges(pen, scene, sight, ruler.top, headHeight, plot);
    if (scene.brush) drawBrushWords(pen, scene, scene.brush, plot);
  });
  pen.fillStyle = page.colour("--line");
  pen.fillRect(0, headHeight - 1, width, 1);
}

function drawBrushWords(pen: Pen, { page, sight }: Scene, brush: Sight, plot: number): void {
  const text = weightWords(brush.to - brush.from, "ns");
  const wide = textWidth(pen, text) + 8;
  const x = Math.max(0, Math.min(plot - wide, (xOf(brush.from, sight, plot) + xOf(brush.to, sight, plot) - wide) / 2));
  pen.fillStyle = page.colour("--accent");
  pen.fillRect(x, ruler.top, wide, ruler.height);
  pen.fillStyle = page.colour("--paper");
  pen.fillText(text, x + 4, ruler.top + 9);
}

function drawCompared(pen: Pen, { page, sight }: Scene, range: Sight, word: string, plot: number): void {
  const [a, b] = [Math.max(-2, xOf(range.from, sight, plot)), Math.min(plot + 2, xOf(range.to, sight, plot))];
  if (b <= a) return;
  const { top, height } = marksLane;
  pen.fillStyle = page.colour("--paper");
  pen.fillRect(a, top, b - a, height - 2);
  pen.fillStyle = page.colour("--accent");
  pen.globalAlpha = 0.25;
  pen.fillRect(a, top, b - a, height - 2);
  pen.globalAlpha = 1;
  pen.strokeStyle = page.colour("--accent");
  pen.strokeRect(a + 0.5, top + 0.5, Math.max(1, b - a - 1), height - 3);
  pen.fillStyle = page.colour("--ink");
  if (textWidth(pen, word) < b - a - 8) pen.fillText(word, a + 5, top + height / 2 - 0.5);
}

export const markColour = (kind: Happened) =>
  kind === Happened.lost
    ? "--gil"
    : kind === Happened.rateChanges || kind === Happened.modeChanges || kind === Happened.incident
    ? "--bad"
    : "--ink";

// Adds text where there is room before the next mark with text.
function drawMarks(pen: Pen, { page, sight }: Scene, marks: Mark[], plot: number): void {
  const inSight = marks.filter(({ time }) => time >= sight.from && time <= sight.to);
  const middle = marksLane.top + marksLane.height / 2;
  let drawnAt = -Infinity;
  pen.fillStyle = page.colour("--faint");
  for (const mark of inSight.filter(isThreads)) {
    const x = Math.round(xOf(mark.time, sight, plot));
    if (x === drawnAt) continue; // such as two hundred threads that end together
    drawnAt = x;
    pen.fillRect(x, marksLane.top + marksLane.height - 4, 1, 3);
  }
  const inRow = inSight.filter((mark) => !isThreads(mark));
  let free = 0; // pixels from here on have no text
  inRow.forEach((mark, i) => {
    const x = xOf(mark.time, sight, plot);
    pen.fillStyle = page.colour(markColour(mark.kind));
    pen.beginPath();
    pen.moveTo(x, middle - 4);
    pen.lineTo(x + 4, middle);
    pen.lineTo(x, middle + 4);
    pen.lineTo(x - 4, middle);
    pen.fill();
    const next = i + 1 < inRow.length ? xOf(inRow[i + 1].time, sight, plot) : plot;
    const wide = textWidth(pen, mark.short);
    pen.fillStyle = page.colour("--soft");
    if (x + 8 + wide < next - 6) {
      pen.fillText(mark.short, x + 8, middle + 0.5);
      free = x + 8 + wide;
    } else if (i + 1 === inRow.length &&
      x - 8 - wide > Math.max(free, i ? xOf(inRow[i - 1].time, sight, plot) : 0) + 8)
    {
      pen.fillText(mark.short, x - 8 - wide, middle + 0.5);
    }
  });
}

// A row's label; the amount is right-aligned in the gutter.
export interface RowWords {
  name: string;
  amount: string;
}

export interface RowsPicture {
  rows: TimelineRow[];
  words: (row: TimelineRow) => RowWords;
  lifes: (row: TimelineRow) => Sight[]; // lifetimes of its threads
  stalls: (row: TimelineRow) => Sight[]; // of its thread's event loop
  traced: ((row: TimelineRow) => Span[]) | null; // times of the chosen trace on its threads; null: none is chosen
  first: number; // row number of the picture's first row
  band: Band;
  scrollTop: number;
  height: number; // of the canvas
}

export function drawRows(pen: Pen, scene: Scene, picture: RowsPicture): void {
  const { page, gutter, width, sight, cursor } = scene;
  const { rows, scrollTop, height, band, first } = picture;
  const start = Math.floor(scrollTop / rowHeight);
  const end = Math.min(rows.length, Math.ceil((scrollTop + height) / rowHeight));
  const measure = (text: string) => textWidth(pen, text);
  for (let i = start; i < end; ++i) {
    const row = rows[i];
    const y = i * rowHeight - scrollTop;
    if (row.kind === "process" || row.kind === "folded") {
      pen.fillStyle = page.colour("--line");
      pen.globalAlpha = 0.45;
      pen.fillRect(0, y, row.kind === "process" ? width : gutter, rowHeight - 1);
      pen.globalAlpha = 1;
    }
    if (row.kind === "thread" && row.busiest) {
      pen.fillStyle = page.colour("--accent");
      pen.fillRect(0, y + 1, 3, rowHeight - 3);
    }
    drawRowWords(pen, scene, row, picture.words(row), y, measure);
    if (row.kind !== "process") {
      inPlot(pen, scene, height, (plot) => {
        pen.fillStyle = page.colour("--line");
        for (const life of picture.lifes(row)) {
          const [a, b] = [Math.max(0, xOf(life.from, sight, plot)), Math.min(plot, xOf(life.to, sight, plot))];
          if (b > a) pen.fillRect(a, y + rowHeight - 2, b - a, 1);
        }
        if (i >= first) band.draw(pen, i - first, rowHeight - 2, y + 1, 0, plot, sight);
        if (picture.traced && row.kind !== "cpu") drawTraced(pen, scene, picture.traced(row), y, plot);
        pen.fillStyle = page.colour("--bad");
        for (const stall of picture.stalls(row)) {
          const [a, b] = [Math.max(0, xOf(stall.from, sight, plot)), Math.min(plot, xOf(stall.to, sight, plot))];
          if (b > a) pen.fillRect(a, y, Math.max(2, b - a), 3);
        }
      });
    }
    if (cursor?.row === i) {
      pen.strokeStyle = page.colour("--ink");
      pen.strokeRect(0.5, y + 0.5, width - 1, rowHeight - 1);
    }
  }
  inPlot(pen, scene, height, (plot) => {
    drawRanges(pen, scene, sight, 0, height, plot);
    drawIncidents(pen, scene, sight, 0, height, plot);
    if (!cursor) return;
    pen.fillStyle = page.colour("--ink");
    pen.fillRect(Math.round(xOf(cursor.time, sight, plot)), 0, 1, height);
  });
}

// Dims the time of a row outside of the chosen trace, and draws a line beneath the rest.
function drawTraced(pen: Pen, { page, sight }: Scene, spans: Span[], y: number, plot: number): void {
  const edges = ([from, to]: Span): Span => [Math.max(0, xOf(from, sight, plot)), Math.min(plot, xOf(to, sight, plot))];
  pen.fillStyle = page.colour("--paper");
  pen.globalAlpha = 0.72;
  for (const [a, b] of between(spans).map(edges)) if (b > a) pen.fillRect(a, y, b - a, rowHeight - 1);
  pen.globalAlpha = 1;
  pen.fillStyle = page.colour("--accent");
  for (const [a, b] of spans.map(edges)) if (b >= a) pen.fillRect(a, y + rowHeight - 4, Math.max(2, b - a), 3);
}

function drawRowWords(pen: Pen, { page, gutter, width }: Scene, row: TimelineRow, { name, amount }: RowWords, y: number,
  measure: (text: string) => number): void
{
  const indent = row.kind === "process" ? 4 : 8;
  pen.font = font;
  pen.fillStyle = page.colour(row.kind === "folded" ? "--soft" : "--ink");
  if (row.kind === "process") {
    pen.font = `600 ${font}`;
    pen.fillText(fit(`${name}   ${amount}`, width - 12, measure), indent, y + rowHeight / 2);
    return;
  }
  if (row.kind === "thread" && row.busiest) pen.font = `600 ${font}`;
  const amountWidth = amount && gutter >= roomForAmounts ? measure(amount) + 10 : 0;
  pen.fillText(fit(name, gutter - indent - amountWidth - 8, measure), indent, y + rowHeight / 2);
  if (!amountWidth) return;
  pen.fillStyle = page.colour("--soft");
  pen.textAlign = "right";
  pen.fillText(amount, gutter - 8, y + rowHeight / 2);
  pen.textAlign = "left";
}
