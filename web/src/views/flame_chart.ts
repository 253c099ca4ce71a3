// The flame chart: what ran after what. One or several threads, busiest first, over the timeline's visible range and
// aligned with it.
import { choice, element, factTable, setText } from "../page/dom";
import { At, ChartRows, lineHeight, rowHeight, titleHeight } from "../layout/chart_rows";
import { laneOf } from "../layout/flame_chart";
import { gutterWidth, moved, timeAt, within, xOf, zoomed } from "../layout/timeline";
import { busyTimes } from "../layout/timeline_rows";
import { CallTree, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { By } from "../model/head";
import { Segments } from "../model/questions/segments";
import { ThreadTotals } from "../model/questions/threads";
import { activities, activityWords } from "../model/states";
import { placeOf } from "../model/tree";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, spanWords, timeWords, weightWords } from "../words";
import { holdChart } from "./flame_chart_hand";
import { boxWords, ChartPicture, ChartScene, Drawn } from "./flame_chart_picture";
import { arrowKeys } from "./parts/arrow_keys";
import { HoverTip } from "./parts/hover_tip";
import { HoverWaits } from "./parts/hover_waits";
import { Latest } from "./parts/latest";
import { OneAtATime } from "./parts/one_at_a_time";
import { InSight } from "./parts/sight";
import { shortName } from "./parts/thread_names";
import { activityColours, sized } from "./timeline_picture";
import { Key, Page, Picture, Showing, View } from "./view";

const name = "chart";
const margin = 0.5; // of the visible range, requested in addition on both sides
const mostRows = 512;
const mostOfSeveral = 24; // rows per thread if there are several
const binPixels = 2; // where there are more intervals than pixels

const time = (ns: number) => weightWords(ns, "ns");

// What the notes say of an answer; `there`: how many threads have something to show.
function notesOf({ threads, segments, rows }: Drawn, there: number): string {
  const words: string[] = [];
  const busiest = threads.length === 1 ? "busiest" : `${threads.length} busiest`;
  if (!threads.length) words.push("Nothing is left of any thread.");
  else if (there > threads.length) {
    words.push(
      `The ${busiest} of ${countWords(there)} threads: “Only thread” in a menu of the timeline shows another.`,
    );
  }
  if (!segments.exact.every((one) => one))
    words.push("Too much to show each sample: every column is the stack with most of its time. Zoom in for each.");
  const deeper = Math.max(0, ...rows.lanes.map((lane) => lane.deeper));
  const way = threads.length > 1 ? "choose one thread" : "they are left out";
  if (deeper) words.push(`Up to ${countWords(deeper)} rows deeper: ${way}.`);
  return words.join(" ");
}

// Time of each activity of a thread within a box.
function activityIn({ first, start, end, activity }: Segments, at: number,
  box: { from: number; to: number }): Float64Array
{
  const sums = new Float64Array(activities);
  for (let i = first[at]; i < first[at + 1]; ++i)
    sums[activity[i]] += Math.max(0, Math.min(end[i], box.to) - Math.max(start[i], box.from));
  return sums;
}

class FlameChart implements Showing {
  readonly element: HTMLElement;
  readonly keys: Key[];
  private readonly canvas = element("canvas");
  private readonly spacer = element("div", "spacer", this.canvas);
  private readonly scroller = element("div", {
    class: "lanes",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "flame chart",
    "aria-label":
      "Flame chart, in the order of time. Arrow keys move from frame to frame, Enter shows a frame as wide as the window, m opens its menu.",
  }, this.spacer);
  private readonly notes = element("span", "notes");
  private readonly counts = choice("Threads", [["1", "1 thread"], ["3", "3"], ["8", "8"]] as const,
    (value) => this.page.change(withOwn(this.page.state, name, "threads", value === "3" ? "" : value)), {
    1: "The busiest thread",
    3: "The three busiest threads",
    8: "The eight busiest threads",
  });

  private readonly inSight = new InSight(this.page);
  private readonly whole = this.inSight.whole;
  private readonly orders = new Latest<ThreadTotals>();
  private readonly answers = new OneAtATime<[CallTree, Segments, By, number[]]>();
  private readonly hover = new HoverTip<At>(this.page, (at) => this.tipOf(at));
  private readonly waits = new HoverWaits(this.page);
  private readonly picture = new ChartPicture(this.page);
  private totals: ThreadTotals | null = null;
  private totalsFor = "";
  private busiest: number[] = []; // threads that have any time, busiest first
  private drawn: Drawn | null = null;
  private hits = new Uint8Array(0); // by label
  private hitsOf: Page["matches"] = null;
  private cursor: At | null = null;
  private sight = this.whole;

  constructor(private readonly page: Page) {
    this.element = element("section", { class: "chart", "aria-label": "Flame chart" },
      element("div", "toolbar", this.counts.element, this.notes), this.scroller);
    this.keys = this.makeKeys();
    this.scroller.addEventListener("scroll", () => this.draw());
    holdChart(this.canvas, this.scroller, {
      whole: this.whole,
      sight: () => this.sight,
      plot: () => this.plot,
      under: (x, y) =>
        x < 0 || x > this.plot.width ? null : this.drawn?.rows.under(y, timeAt(x, this.sight, this.plot.width)) ?? null,
      see: (sight) => this.inSight.see(sight),
      point: (at, x, y) => (at ? this.hover.show(at, x, y) : this.hover.away()),
      click: (at) => {
        this.cursor = at;
        this.seeBox(at);
      },
      menu: (at, x, y) => {
        this.cursor = at;
        this.draw();
        this.openMenu(at, x, y);
      },
    });
  }

  show(): void {
    const now = this.inSight.now;
    if (now.from !== this.sight.from || now.to !== this.sight.to) this.hover.away();
    this.sight = now;
    this.counts.show(String(this.wanted) as "1" | "3" | "8");
    setTimeout(() => this.ask());
    this.refresh();
  }

  pictures(): Picture[] {
    if (!this.drawn || !this.width) return [];
    const { rows: { height }, segments } = this.drawn;
    const there = new Set(segments.activity);
    const words = [spanWords(this.sight.from, this.sight.to), this.notes.textContent];
    return [{
      what: "flame chart",
      words: words.filter((text) => text).join(". "),
      width: this.width,
      height,
      legend: activityColours.map((colour, i): [string, string] => [colour, activityWords[i]]).filter((_, i) =>
        there.has(i)
      ),
      draw: (pen) => {
        pen.textBaseline = "middle";
        this.picture.paint(pen, this.scene(this.drawn as Drawn), 0, height);
      },
    }];
  }

  private get width(): number {
    return this.scroller.clientWidth;
  }

  private get plot(): { left: number; width: number } {
    const left = gutterWidth(this.width);
    return { left, width: Math.max(1, this.width - left) };
  }

  private get wanted(): number {
    return Number(own(this.page.state, name, "threads")) || 3;
  }

  private get queryKey(): string {
    return JSON.stringify([this.page.state.filters, this.page.state.show]);
  }

  // ---- questions ------------------------------------------------------------------------------------------------
  private ask(): void {
    const key = this.queryKey;
    this.orders.ask(key, () => this.page.ask("threads", {}), (answer) => {
      this.totals = answer;
      this.totalsFor = key;
      this.busiest = this.threadsOf(answer);
      this.askSegments();
    });
    this.askSegments();
  }

  private threadsOf(totals: ThreadTotals): number[] {
    const busy = busyTimes(totals);
    const hasTime = (thread: number) =>
      totals.activity.subarray(thread * activities, (thread + 1) * activities).some((ns) => ns > 0);
    return this.page.catalogue.threads.map((_, thread) => thread).filter(hasTime)
      .sort((a, b) => busy[b] - busy[a] || a - b);
  }

  private askSegments(): void {
    if (!this.totals || this.totalsFor !== this.queryKey || !this.width) return;
    const { page, sight, whole } = this;
    const threads = this.busiest.slice(0, this.wanted);
    const { by } = page.state;
    const length = sight.to - sight.from;
    const range = { from: Math.max(whole.from, sight.from - length * margin),
      to: Math.min(whole.to, sight.to + length * margin) };
    const bins = Math.max(1, Math.round((this.plot.width * (range.to - range.from)) / length / binPixels));
    const key = `${this.totalsFor} ${by} ${threads} ${range.from} ${range.to} ${bins}`;
    this.answers.ask(key,
      () => Promise.all([page.shape(by), page.ask("segments", { threads, ...range, bins, by }), by, threads]),
      (answer) => this.use(...answer));
  }

  private use(tree: CallTree, segments: Segments, by: By, threads: number[]): void {
    const most = threads.length > 1 ? mostOfSeveral : mostRows;
    const rows = new ChartRows(threads.map((_, at) => laneOf(tree, segments, at, most)));
    this.drawn = { by, tree, labels: this.page.labels(by), threads, segments, rows };
    if (this.cursor && !rows.has(this.cursor)) this.cursor = null;
    this.spacer.style.height = `${rows.height}px`;
    this.refresh();
    this.page.drawn();
  }

  private refresh(): void {
    if (!this.drawn) return;
    const { by, labels } = this.drawn;
    const { catalogue, matches } = this.page;
    if (this.hitsOf !== matches || this.hits.length !== labels.length) {
      this.hitsOf = matches;
      this.hits = Uint8Array.from(labels, (_, id) => (matches ? matches.functions[functionOf(catalogue, by, id)] : 0));
    }
    setText(this.notes, notesOf(this.drawn, this.busiest.length));
    this.draw();
  }

  // ---- drawing --------------------------------------------------------------------------------------------------
  private scene(drawn: Drawn): ChartScene {
    const { page: { matches }, sight, width, cursor } = this;
    const hits = matches !== null && matches.count > 0 ? this.hits : null;
    return { ...drawn, totals: this.totals as ThreadTotals, sight, width, hits, cursor };
  }

  private draw(): void {
    if (!this.drawn || !this.width) return;
    const started = performance.now();
    const { scrollTop, clientHeight } = this.scroller;
    this.picture.paint(sized(this.canvas, this.width, clientHeight), this.scene(this.drawn), scrollTop, clientHeight);
    performance.measure("phlox chart drawn", { start: started });
  }

  // ---- what is pointed at ---------------------------------------------------------------------------------------
  private tipOf(at: At): Node {
    const { by, tree, labels, threads, segments, rows } = this.drawn as Drawn;
    const box = rows.box(at);
    const thread = threads[at.lane];
    const label = labels[tree.label[box.node]];
    const tip = element("div", {}, element("div", "name", label.full));
    if (placeOf(label)) tip.append(element("div", "place", placeOf(label)));
    const facts: [string, ...string[]][] = [
      ["thread", shortName(this.page.catalogue, thread)],
      ["from", timeWords(box.from, (this.sight.to - this.sight.from) / 100)],
      ["for", time(box.to - box.from)],
    ];
    activityIn(segments, at.lane, box).forEach((ns, activity) =>
      ns > 0 && facts.push([activityWords[activity], time(ns)])
    );
    const where = { by, node: box.node, threads: [thread], from: box.from, to: box.to };
    tip.append(factTable(facts), ...this.waits.of(this.queryKey, where, () => this.hover.again()));
    if (!segments.exact[at.lane]) tip.append(element("div", "place", "Zoom in for each sample"));
    return tip;
  }

  private seeBox(at: At): void {
    const { from, to } = (this.drawn as Drawn).rows.box(at);
    const air = (to - from) * 0.02;
    this.inSight.see(within({ from: from - air, to: to + air }, this.whole), true);
  }

  private openMenu(at: At, x: number, y: number): void {
    const { page } = this;
    const { by, tree, threads, rows } = this.drawn as Drawn;
    const { from, to, node } = rows.box(at);
    const thread = threads[at.lane];
    const only = (filter: Parameters<typeof withFilter>[1]) => () => page.change(withFilter(page.state, filter));
    this.hover.away();
    page.menu([
      { text: "As wide as the window", run: () => this.seeBox(at) },
      { text: "Only this time", run: only({ field: "time", mode: "in", from: Math.round(from), to: Math.round(to) }) },
      { text: `Only thread ${shortName(page.catalogue, thread)}`,
        run: only({ field: "thread", mode: "in", values: [thread] }) },
      ...page.frameItems(by, pathTo(tree, node)),
    ], x, y);
  }

  // ---- keys -----------------------------------------------------------------------------------------------------
  private focusBox(at: At | null): void {
    if (!at || !this.drawn) return;
    this.cursor = at;
    const { scroller, sight, plot } = this;
    const { tree, labels, threads, rows } = this.drawn;
    const box = rows.box(at);
    const y = rows.top(at.lane, at.row);
    const { clientHeight } = scroller;
    if (y < scroller.scrollTop + titleHeight) scroller.scrollTop = y - titleHeight - lineHeight;
    if (y + rowHeight > scroller.scrollTop + clientHeight) scroller.scrollTop = y + 2 * rowHeight - clientHeight;
    if (box.to < sight.from || box.from > sight.to)
      this.inSight.see(moved(sight, box.from - (sight.from + sight.to) / 2, this.whole));
    this.draw();
    const middle = (Math.max(box.from, this.sight.from) + Math.min(box.to, this.sight.to)) / 2;
    const x = Math.max(0, Math.min(plot.width, xOf(middle, this.sight, plot.width)));
    const frame = scroller.getBoundingClientRect();
    this.hover.show(at, frame.left + plot.left + x, frame.top + y - scroller.scrollTop + rowHeight / 2);
    const thread = shortName(this.page.catalogue, threads[at.lane]);
    this.page.say(`${boxWords(labels[tree.label[box.node]].name, box, this.sight)}, thread ${thread}`);
  }

  private move(key: string): void {
    const rows = this.drawn?.rows;
    if (rows) this.focusBox(this.cursor ? rows.next(this.cursor, key) : rows.first(this.sight));
  }

  private stepMatch(direction: 1 | -1): void {
    if (!this.drawn) return;
    const { tree, rows } = this.drawn;
    const found = rows.inOrder(this.sight, (box) => this.hits[tree.label[box.node]] === 1);
    const here = found.findIndex((at) => JSON.stringify(at) === JSON.stringify(this.cursor));
    const first = direction > 0 ? 0 : found.length - 1;
    this.focusBox(found[here < 0 ? first : (here + direction + found.length) % found.length] ?? null);
  }

  private zoomBy(factor: number): void {
    const { sight, cursor, drawn } = this;
    const around = cursor && drawn
      ? Math.max(sight.from, Math.min(sight.to, drawn.rows.box(cursor).from))
      : (sight.from + sight.to) / 2;
    this.inSight.see(zoomed(sight, around, factor, this.whole));
  }

  private menuOfCursor(): void {
    if (!this.cursor || !this.drawn) return;
    const { cursor, plot, scroller, drawn: { rows } } = this;
    const frame = scroller.getBoundingClientRect();
    const x = Math.max(0, xOf(rows.box(cursor).from, this.sight, plot.width));
    this.openMenu(cursor, frame.left + plot.left + x + 8,
      frame.top + rows.top(cursor.lane, cursor.row + 1) - scroller.scrollTop);
  }

  private copyName(): void {
    if (!this.cursor || !this.drawn) return;
    const { tree, labels, rows } = this.drawn;
    this.page.copy(labels[tree.label[rows.box(this.cursor).node]].full);
  }

  private makeKeys(): Key[] {
    const { inSight, whole } = this;
    return [
      ...arrowKeys("move from frame to frame", (key) => this.move(key)),
      { on: "Enter", shown: "Enter", meaning: "the frame as wide as the window",
        run: () => this.cursor && this.seeBox(this.cursor) },
      { on: "Escape", shown: "Esc", meaning: "one zoom back", run: () => inSight.back() },
      { on: "Home", shown: "Home", meaning: "the whole recording", run: () => inSight.see(whole, true) },
      { on: "+", shown: "+  -", meaning: "closer, further away", run: () => this.zoomBy(0.7) },
      { on: "-", shown: "", meaning: "", run: () => this.zoomBy(1 / 0.7) },
      { on: "m", shown: "m", meaning: "menu of the frame", run: () => this.menuOfCursor() },
      { on: "n", shown: "n  N", meaning: "next, previous match in time", run: () => this.stepMatch(1) },
      { on: "N", shown: "", meaning: "", run: () => this.stepMatch(-1) },
      { on: "c", shown: "c", meaning: "copy the frame's name", run: () => this.copyName() },
    ];
  }
}

export const flameChart: View = { name, title: "Flame chart", place: "main", follows: ["timeline"],
  create: (page) => new FlameChart(page) };
