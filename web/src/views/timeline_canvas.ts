// The timeline's two canvases: the whole recording, ruler and marks above; the rows, which scroll. Asks for the visible
// rows, draws them, and makes a picture of all.
import { element } from "../page/dom";
import { Pointed } from "../layout/pointed";
import { gutterWidth, Sight } from "../layout/timeline";
import { rowsAround, rowThreads, TimelineRow, visibleRows } from "../layout/timeline_rows";
import { inBoth, joined, spansOf } from "../model/filters";
import { timesOf } from "../model/trace_times";
import { filtersIn } from "../state/fragment";
import { own } from "../state/state";
import { countWords, spanWords } from "../words";
import { timeless, TimelineAnswers } from "./timeline_answers";
import { fullOf, threadsOf, TimelineBands } from "./timeline_bands";
import { marksOf } from "./timeline_events";
import { legendEntries } from "./timeline_legend";
import { TimeFilter } from "./timeline_menu";
import { Band, drawHead, drawRows, headHeight, rowHeight, RowsPicture, Scene, sized } from "./timeline_picture";
import { rowWords } from "./timeline_words";
import { Page, Picture } from "./view";

const mostSaved = 600; // rows of a saved picture

export const isHidden = (page: Page) => own(page.state, "timeline", "hidden") !== "";
export const showsCpus = (page: Page) => own(page.state, "timeline", "rows") === "cpus";

// The two ranges of a difference, while that view is shown.
function compared(page: Page): Sight[] {
  if (page.state.view !== "difference") return [];
  const sides = ["a", "b"].map((side) => filtersIn(own(page.state, "difference", side))[0]);
  return sides.every((side): side is TimeFilter => side?.field === "time") ? (sides as TimeFilter[]) : [];
}

export class TimelineCanvas {
  readonly head = element("canvas", { class: "overview", role: "img",
    "aria-label": "The whole recording, a ruler of time, and what happened" });
  readonly canvas = element("canvas");
  private readonly spacer = element("div", "spacer", this.canvas);
  readonly scroller = element("div", {
    class: "lanes",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label":
      "Timeline. Up and down choose a thread, left and right a moment, with Shift a range; Enter keeps only the range, m opens the menu, plus and minus zoom.",
  }, this.spacer);
  readonly element = element("div", "body", this.head, this.scroller);
  readonly marks = marksOf(this.page.catalogue);
  readonly bands = new TimelineBands(this.page, this.whole);
  sight = this.whole;
  private readonly incidents = this.page.catalogue.head.incidents.map(({ time }) => time);
  private readonly stalls = new Map<number, Sight[]>();
  private tracedSpans = { key: "", of: new Map<number, [number, number][]>() }; // by thread

  constructor(private readonly page: Page, private readonly whole: Sight, private readonly answers: TimelineAnswers,
    private readonly pointed: Pointed)
  {
    for (const { thread, start, wall } of page.catalogue.head.stalls)
      this.stalls.set(thread, [...(this.stalls.get(thread) ?? []), { from: start, to: start + wall }]);
    this.scroller.addEventListener("scroll", () => {
      this.askRows();
      this.draw();
    });
  }

  get rows(): TimelineRow[] {
    return showsCpus(this.page) ? this.bands.cpuRows : this.answers.made?.rows ?? [];
  }

  rowAt(y: number): number {
    return Math.floor((y + this.scroller.scrollTop) / rowHeight);
  }

  get width(): number {
    return this.scroller.clientWidth;
  }

  get plot(): { left: number; width: number } {
    const left = gutterWidth(this.width);
    return { left, width: Math.max(1, this.width - left) };
  }

  get perPixel(): number { // ns
    return (this.sight.to - this.sight.from) / this.plot.width;
  }

  askStrip(threads: number[]): void {
    this.bands.askStrip(threads, this.plot.width, timeless(this.page), () => this.draw());
  }

  // Densities of the visible rows and a few around them.
  askRows(): void {
    const { page, sight, scroller: { scrollTop, clientHeight } } = this;
    if (isHidden(page) || !this.answers.made) return;
    const { first, rows } = rowsAround(this.rows, scrollTop / rowHeight, (scrollTop + clientHeight) / rowHeight);
    const question = { rows, first, cpus: showsCpus(page), sight, width: this.plot.width };
    this.bands.askRows(question, () => timeless(page), (cpusCame) => {
      if (cpusCame) this.arrange();
      this.draw();
      page.drawn();
    });
  }

  arrange(): void {
    const rows = this.rows.length;
    this.element.hidden = isHidden(this.page);
    this.scroller.style.height = `${visibleRows(rows, window.innerHeight / rowHeight) * rowHeight}px`;
    this.spacer.style.height = `${rows * rowHeight}px`;
  }

  private scene(): Scene {
    const { page, whole, sight, width, incidents, pointed: { brush, cursor } } = this;
    return { page, whole, sight, gutter: this.plot.left, width, spans: spansOf(page.state.filters),
      compared: compared(page), brush, cursor, incidents };
  }

  private picture(part: Pick<RowsPicture, "rows" | "height" | "scrollTop" | "first" | "band">): RowsPicture {
    const { catalogue } = this.page;
    return {
      ...part,
      words: (row) => rowWords(catalogue, row, this.answers.cpuTime),
      lifes: (row) => (row.kind === "thread" ? [this.lifeOf(row.thread)] : []),
      stalls: (row) => (row.kind === "thread" ? this.stalls.get(row.thread) ?? [] : []),
      traced: this.traced(),
    };
  }

  // Of the filters that let a trace pass.
  private traced(): RowsPicture["traced"] {
    const chosen = this.page.state.filters.flatMap((filter) =>
      filter.field === "trace" && filter.mode === "in" ? [filter.values] : []
    );
    if (!chosen.length) return null;
    const { traces } = this.page.catalogue;
    const key = JSON.stringify(chosen);
    if (this.tracedSpans.key !== key) this.tracedSpans = { key, of: new Map() };
    const { of } = this.tracedSpans;
    const spansOfThread = (thread: number) => {
      const known = of.get(thread);
      if (known) return known;
      const spans = chosen.map((ids) => timesOf(traces, ids, thread)).reduce((both, times) => inBoth(both, times));
      of.set(thread, spans);
      return spans;
    };
    return (row) =>
      row.kind === "thread"
        ? spansOfThread(row.thread)
        : joined(rowThreads(row).flatMap(spansOfThread).sort(([a], [b]) => a - b));
  }

  private lifeOf(thread: number): Sight {
    const { start, end } = this.page.catalogue.threads[thread];
    return { from: Math.max(this.whole.from, start), to: end < 0 ? this.whole.to : end };
  }

  draw(): void {
    if (isHidden(this.page) || !this.answers.made || !this.width) return;
    const started = performance.now();
    const { bands, rows, scroller: { clientHeight: height, scrollTop } } = this;
    const scene = this.scene();
    drawHead(sized(this.head, scene.width, headHeight), scene, bands.strip, bands.stripMost, this.marks);
    const first = bands.firstOf(rows, showsCpus(this.page));
    drawRows(sized(this.canvas, scene.width, height), scene,
      this.picture({ rows, height, scrollTop, first, band: bands.rows }));
    performance.measure("phlox timeline drawn", { start: started });
  }

  // With all rows, whatever the scroll position. `answer`: the sentence above the timeline.
  pictures(answer: string): Picture[] {
    const { page, answers: { totals, made }, sight, bands } = this;
    if (isHidden(page) || !made || !totals || !this.width) return [];
    const rows = this.rows.slice(0, mostSaved);
    const scene = { ...this.scene(), brush: null, cursor: null };
    const words = [spanWords(sight.from, sight.to), answer];
    if (rows.length < this.rows.length)
      words.push(`The first ${countWords(rows.length)} of ${countWords(this.rows.length)} rows.`);
    const height = rows.length * rowHeight;
    return [{
      what: showsCpus(page) ? "timeline by CPU" : "timeline",
      words: words.filter((text) => text).join(". "),
      width: scene.width,
      height: headHeight + height,
      legend: legendEntries(totals),
      draw: async (pen) => {
        const band = await this.bandOf(rows, scene.sight);
        drawHead(pen, scene, bands.strip, bands.stripMost, this.marks);
        pen.save();
        pen.translate(0, headHeight);
        drawRows(pen, scene, this.picture({ rows, height, scrollTop: 0, first: 0, band }));
        pen.restore();
      },
    }];
  }

  private async bandOf(rows: TimelineRow[], sight: Sight): Promise<Band> {
    const { page } = this;
    const band = new Band();
    const bins = this.plot.width;
    const { time } = showsCpus(page)
      ? await page.ask("cpus", { ...sight, bins }, timeless(page))
      : await page.ask("densities", { rows: rows.map(threadsOf), ...sight, bins }, timeless(page));
    band.paint(page, time, bins, fullOf(rows, (sight.to - sight.from) / bins), rowHeight - 2, sight);
    return band;
  }
}
