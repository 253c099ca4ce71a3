// The timeline, above every other view: which thread did what, when. Rows are threads, busiest first; the strip on top
// is the whole recording.
import { button, element, setAttribute, setContent, setDisabled, setText } from "../page/dom";
import { Pointed } from "../layout/pointed";
import { moved, Sight, zoomed } from "../layout/timeline";
import { TimelineRow } from "../layout/timeline_rows";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, spanWords, timeWords, weightWords } from "../words";
import { InSight } from "./parts/sight";
import { TimelineAnswers } from "./timeline_answers";
import { isHidden, showsCpus, TimelineCanvas } from "./timeline_canvas";
import { TimelineHand } from "./timeline_hand";
import { TimelineKeys } from "./timeline_keys";
import { timelineLegend } from "./timeline_legend";
import { rangeItems, rowItems, TimeFilter } from "./timeline_menu";
import { activityColours, rowHeight } from "./timeline_picture";
import { TimelineTips } from "./timeline_tips";
import { answerWords, momentTip, momentWords, placesWords, rowWords } from "./timeline_words";
import { Key, MenuItem, Page, Picture, Showing, View } from "./view";

const name = "timeline";

class Timeline implements Showing {
  readonly element: HTMLElement;
  private readonly answer = element("span", { class: "answer", "aria-live": "polite" });
  private readonly legend = timelineLegend(this.page);
  private readonly only = button("", () => this.pointedItems[0]?.run());
  private readonly without = button("", () => this.pointedItems[1]?.run());
  private readonly toRange = button("Zoom to the range", () => this.seeRange(), {
    title: "What the filter of time lets pass, as wide as the window",
  });
  private readonly all = button("Whole recording", () => this.inSight.see(this.inSight.whole, true), { title: "Home" });
  private readonly byCpu = button("By CPU", () => this.choose("rows", showsCpus(this.page) ? "" : "cpus"), {
    title: "A row a CPU in place of a row a thread",
  });
  private readonly fold = button("", () => this.choose("hidden", isHidden(this.page) ? "" : "yes"), { class: "fold" });

  private readonly inSight = new InSight(this.page);
  private readonly pointed: Pointed = { cursor: null, brush: null, anchor: null };
  private readonly answers = new TimelineAnswers(this.page, this.inSight.whole, () => this.refresh(),
    () => this.showWords());
  private readonly canvas = new TimelineCanvas(this.page, this.inSight.whole, this.answers, this.pointed);
  private readonly tips = new TimelineTips(this.page, this.answers, this.canvas.marks, {
    sight: () => this.canvas.sight,
    perPixel: () => this.canvas.perPixel,
  });
  private colours = "";

  constructor(private readonly page: Page) {
    const { fold, answer, only, without, toRange, all, byCpu, legend, canvas } = this;
    this.element = element("section", { class: "timeline", "aria-label": "Timeline" },
      element("div", "toolbar", fold, answer, only, without, toRange, all, byCpu, legend.element), canvas.element);
    this.element.hidden = !page.catalogue.timed;
    this.holdPointer();
    this.holdKeys();
  }

  show(): void {
    this.canvas.sight = this.inSight.now;
    // The theme switched between dark and light.
    const light = activityColours.map((one) => this.page.colour(one)).join();
    if (this.colours && this.colours !== light) this.canvas.bands.forget();
    this.colours = light;
    // The view that the user asked for sends its questions first.
    setTimeout(() => this.ask());
    this.refresh();
  }

  pictures(): Picture[] {
    return this.canvas.pictures(this.answer.textContent?.trim() ?? "");
  }

  readonly keys: Key[] = [
    { on: "w", shown: "w  s", meaning: "timeline: closer, further away", run: () => this.zoomBy(0.7) },
    { on: "s", shown: "", meaning: "", run: () => this.zoomBy(1 / 0.7) },
    { on: "a", shown: "a  d", meaning: "timeline: earlier, later", run: () => this.panBy(-0.2) },
    { on: "d", shown: "", meaning: "", run: () => this.panBy(0.2) },
    { on: "e", shown: "e",
      meaning:
        "go to the timeline: arrows (PgUp, PgDn) choose thread and moment, Shift a range, Enter keeps it, z zooms to it, m is the menu, + and − zoom, Esc goes back, Home shows all",
      run: () => this.canvas.scroller.focus() },
  ];

  private choose(key: string, value: string): void {
    this.page.change(withOwn(this.page.state, name, key, value));
  }

  private get timeFilter(): TimeFilter | undefined {
    return this.page.state.filters.find((filter): filter is TimeFilter =>
      filter.field === "time" && filter.mode === "in"
    );
  }

  private get pointedRow(): TimelineRow | undefined {
    return this.pointed.cursor ? this.canvas.rows[this.pointed.cursor.row] : undefined;
  }

  private get pointedItems(): MenuItem[] {
    const row = this.pointedRow;
    return row ? rowItems(this.page, row, () => this.toggleFolded()) : [];
  }

  private ask(): void {
    const { answers, canvas } = this;
    answers.askTotals();
    if (!answers.made || !answers.isCurrent) return; // the rows are still being requested
    canvas.askStrip(answers.made.threads);
    answers.askPlaces(answers.made);
    canvas.askRows();
  }

  // ---- showing --------------------------------------------------------------------------------------------------
  private refresh(): void {
    // An answer is pending; until it is drawn, rows stay as they are.
    if (!this.answers.isCurrent) return;
    if (this.answers.makeRows(own(this.page.state, name, "idle") === "open")) this.pointed.cursor = null;
    setTimeout(() => this.ask());
    this.arrange();
    this.changed();
  }

  private arrange(): void {
    const hidden = isHidden(this.page);
    setText(this.fold, hidden ? "▸ Timeline" : "▾ Timeline");
    setAttribute(this.fold, "aria-expanded", String(!hidden));
    setAttribute(this.byCpu, "aria-pressed", String(showsCpus(this.page)));
    for (const one of [this.byCpu, this.legend.element, this.toRange, this.all, this.only, this.without])
      one.hidden = hidden;
    this.canvas.arrange();
  }

  private changed(): void {
    this.showWords();
    this.canvas.draw();
  }

  private showWords(): void {
    const { answers } = this;
    if (!answers.made) return;
    const words = answerWords(this.page.catalogue, answers.made, answers.cpuTime, answers.mostly, answers.waits);
    const text = words.map((word) => (typeof word === "string" ? word : word.textContent)).join("");
    setContent(this.answer, text, () => words);
    setAttribute(this.answer, "title", text); // in case not all of it fits
    const items = this.pointedItems;
    [this.only, this.without].forEach((one, i) => {
      setText(one, items[i]?.text ?? (i ? "Without the thread" : "Only the thread"));
      setDisabled([one], !items[i]);
    });
    setDisabled([this.toRange], !this.timeFilter);
    setDisabled([this.all], this.inSight.isWhole);
    if (answers.totals) this.legend.show(answers.totals);
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  // Replaces the previous range: two that do not overlap would leave nothing.
  private chooseRange({ from, to }: Sight): void {
    const { page, timeFilter: mine } = this;
    const next: TimeFilter = { field: "time", mode: "in", from: Math.round(from), to: Math.round(to) };
    this.pointed.anchor = null;
    if (mine) page.change({ filters: page.state.filters.map((filter) => (filter === mine ? next : filter)) });
    else page.change(withFilter(page.state, next));
    page.say(`only ${spanWords(next.from, next.to)}`);
  }

  private seeRange(): void {
    const { inSight: { whole }, timeFilter: range } = this;
    if (!range) return;
    const air = (range.to - range.from) * 0.03;
    this.inSight.see({ from: Math.max(whole.from, range.from - air), to: Math.min(whole.to, range.to + air) }, true);
  }

  private toggleFolded(): void {
    this.choose("idle", own(this.page.state, name, "idle") === "open" ? "" : "open");
  }

  private zoomBy(factor: number): void {
    const { sight } = this.canvas;
    const { cursor } = this.pointed;
    const isVisible = cursor && cursor.time >= sight.from && cursor.time <= sight.to;
    const around = isVisible ? cursor.time : (sight.from + sight.to) / 2;
    this.inSight.see(zoomed(sight, around, factor, this.inSight.whole));
  }

  private panBy(share: number): void {
    const { sight } = this.canvas;
    this.inSight.see(moved(sight, (sight.to - sight.from) * share, this.inSight.whole));
  }

  private openMenu(x: number, y: number): void {
    const items = this.pointedItems;
    const range = this.timeFilter;
    if (range) items.push(...rangeItems(this.page, range, this.inSight.whole, () => this.seeRange()));
    this.tips.away();
    this.page.menu(items, x, y);
  }

  // ---- pointer and keyboard -------------------------------------------------------------------------------------
  private holdPointer(): void {
    const { canvas, tips, pointed } = this;
    new TimelineHand(canvas.head, canvas.canvas, {
      whole: () => this.inSight.whole,
      sight: () => canvas.sight,
      plot: () => canvas.plot,
      edges: () => (this.timeFilter ? [this.timeFilter.from, this.timeFilter.to] : []),
      scrolls: () => canvas.scroller.scrollHeight > canvas.scroller.clientHeight + 1,
      see: (sight) => this.inSight.see(sight),
      brush: (range) => {
        pointed.brush = range;
        tips.away();
        canvas.draw();
      },
      choose: (range) => this.chooseRange(range),
      click: (y, time, inGutter) => {
        const row = this.point(y, time);
        if (row?.kind === "folded") return this.toggleFolded();
        if (!row) return;
        this.changed();
        if (inGutter) this.page.say(this.rowSaid(row));
      },
      menu: (y, time, event) => {
        if (!this.point(y, time)) return;
        this.changed();
        this.openMenu(event.clientX, event.clientY);
      },
      hover: (where, x, y, event) =>
        tips.hover(where, where === "rows" || where === "gutter" ? canvas.rows[canvas.rowAt(y)] : undefined, x, event),
    });
    canvas.scroller.addEventListener("blur", () => tips.away());
  }

  // Moves the cursor to the row at that height, if there is one.
  private point(y: number, time: number): TimelineRow | undefined {
    const row = this.canvas.rowAt(y);
    if (this.canvas.rows[row]) this.pointed.cursor = { row, time };
    return this.canvas.rows[row];
  }

  private holdKeys(): void {
    const { canvas, inSight } = this;
    new TimelineKeys(canvas.scroller, this.pointed, {
      whole: inSight.whole,
      sight: () => canvas.sight,
      rows: () => canvas.rows,
      perPixel: () => canvas.perPixel,
      see: (sight, alone) => inSight.see(sight, alone),
      back: () => inSight.back(),
      zoom: (factor) => this.zoomBy(factor),
      seeRange: () => this.seeRange(),
      choose: (range) => this.chooseRange(range),
      toggleFolded: () => this.toggleFolded(),
      menu: (x, y) => this.openMenu(x, y),
      changed: () => this.changed(),
      draw: () => canvas.draw(),
      tell: (row) => this.page.say(this.rowSaid(row)),
      tellMoment: (row, time, number) => this.sayMoment(row, time, number),
    });
  }

  private rowSaid(row: TimelineRow): string {
    const { answers, page: { catalogue } } = this;
    const { name, amount } = rowWords(catalogue, row, answers.cpuTime);
    if (row.kind === "folded") return `${name.slice(2)}: ${placesWords(catalogue, answers.waits)}`;
    const busiest = row.kind === "thread" && row.busiest ? ", busiest" : "";
    const samples = row.kind === "thread" && answers.shown
      ? `, ${countWords(answers.shown.samples[row.thread])} samples`
      : "";
    return `${name}${busiest}${amount ? `, ${amount} CPU time` : ""}${samples}`;
  }

  private sayMoment(row: TimelineRow, at: number, number: number): void {
    const { page, canvas, tips } = this;
    tips.askMoment(row, at, (moment, waited, from, to) => {
      const { plot, perPixel, sight, scroller } = canvas;
      const { brush } = this.pointed;
      const title = tips.titleOf(row);
      const range = brush ? `, ${weightWords(brush.to - brush.from, "ns")} chosen` : "";
      page.say(`${title} at ${timeWords(at, 8 * perPixel)}: ${momentWords(page, moment)}${range}`);
      const box = canvas.canvas.getBoundingClientRect();
      page.tip(momentTip(page, title, from, to, moment, waited, tips.traceAt(row, from, to)),
        box.left + plot.left + (at - sight.from) / perPixel, box.top + (number + 1) * rowHeight - scroller.scrollTop);
    });
  }
}

export const timeline: View = { name, title: "Timeline", place: "above", follows: ["difference"],
  create: (page) => new Timeline(page) };
