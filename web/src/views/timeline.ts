// The timeline, above every other view: which thread did what, when. Rows are threads, busiest first; the strip on top
// is the whole recording.
import { button, element, setAttribute, setContent, setDisabled, setText } from "../page/dom";
import { gutterWidth, moved, Sight, zoomed } from "../layout/timeline";
import { TimelineRow } from "../layout/timeline_rows";
import { Filter, spansOf } from "../model/filters";
import { filtersIn } from "../state/fragment";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, spanWords, timeWords, weightWords } from "../words";
import { InSight } from "./parts/sight";
import { timeless, TimelineAnswers } from "./timeline_answers";
import { fullOf, threadsOf, TimelineBands } from "./timeline_bands";
import { marksOf } from "./timeline_events";
import { holdTimeline } from "./timeline_hand";
import { holdKeys, Pointed } from "./timeline_keys";
import { legendEntries, timelineLegend } from "./timeline_legend";
import { rangeItems, rowItems } from "./timeline_menu";
import { activityColours, Band, drawHead, drawRows, headHeight, rowHeight, Scene, sized } from "./timeline_picture";
import { TimelineTips } from "./timeline_tips";
import { answerWords, momentTip, momentWords, placesWords, rowWords } from "./timeline_words";
import { MenuItem, Page, Picture, Showing, View } from "./view";

const name = "timeline";
const mostRows = 9; // visible before they scroll, if the window is large enough
const leastRows = 3;
const spare = 3; // rows requested above and below the visible ones
const mostSaved = 600; // rows of a saved picture

type TimeFilter = Filter & { field: "time" };

function create(page: Page): Showing {
  const { catalogue } = page;
  const inSight = new InSight(page);
  const { whole } = inSight;
  const marks = marksOf(catalogue);

  const head = element("canvas", { class: "overview", role: "img",
    "aria-label": "The whole recording, a ruler of time, and what happened" });
  const canvas = element("canvas");
  const spacer = element("div", "spacer", canvas);
  const scroller = element("div", {
    class: "lanes",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label":
      "Timeline. Up and down choose a thread, left and right a moment, with Shift a range; Enter keeps only the range, m opens the menu, plus and minus zoom.",
  }, spacer);
  const answer = element("span", { class: "answer", "aria-live": "polite" });
  const legend = timelineLegend(page);
  const only = button("", () => rowItemsAt()[0]?.run());
  const without = button("", () => rowItemsAt()[1]?.run());
  const toRange = button("Zoom to the range", () => seeRange(), {
    title: "What the filter of time lets pass, as wide as the window",
  });
  const all = button("Whole recording", () => see(whole, true), { title: "Home" });
  const byCpu = button("By CPU", () => page.change(withOwn(page.state, name, "rows", showsCpus() ? "" : "cpus")), {
    title: "A row a CPU in place of a row a thread",
  });
  const fold = button("", () => page.change(withOwn(page.state, name, "hidden", isHidden() ? "" : "yes")), {
    class: "fold",
  });
  const body = element("div", "body", head, scroller);
  const view = element("section", { class: "timeline", "aria-label": "Timeline" },
    element("div", "toolbar", fold, answer, only, without, toRange, all, byCpu, legend.element), body);
  view.hidden = !catalogue.timed;

  const answers = new TimelineAnswers(page, whole, refresh, showWords);
  const bands = new TimelineBands(page, whole);
  const pointed: Pointed = { cursor: null, brush: null, anchor: null };
  let sight = whole;

  // ---- questions ------------------------------------------------------------------------------------------------
  const isHidden = () => own(page.state, name, "hidden") !== "";
  const showsCpus = () => own(page.state, name, "rows") === "cpus";
  const rowsNow = () => (showsCpus() ? bands.cpuRows : answers.made?.rows ?? []);
  const width = () => scroller.clientWidth;
  const gutter = () => gutterWidth(width());
  const plotWidth = () => Math.max(1, width() - gutter());
  const perPixel = () => (sight.to - sight.from) / plotWidth(); // ns
  const tips = new TimelineTips(page, answers, marks, { sight: () => sight, perPixel });
  // The two ranges of a difference, while that view is shown.
  const compared = (): Sight[] => {
    if (page.state.view !== "difference") return [];
    const sides = ["a", "b"].map((side) => filtersIn(own(page.state, "difference", side))[0]);
    return sides.every((side): side is TimeFilter => side?.field === "time") ? (sides as TimeFilter[]) : [];
  };
  const timeFilter = () =>
    page.state.filters.find((filter): filter is TimeFilter => filter.field === "time" && filter.mode === "in");

  function ask(): void {
    answers.askTotals();
    if (!answers.made || !answers.isCurrent) return; // the rows are still being requested
    bands.askStrip(answers.made.threads, plotWidth(), timeless(page), draw);
    answers.askPlaces(answers.made);
    askRows();
  }

  // Densities of the visible rows and a few around them.
  function askRows(): void {
    if (isHidden() || !answers.made) return;
    const first = Math.max(0, Math.floor(scroller.scrollTop / rowHeight) - spare);
    const rows = rowsNow().slice(first, Math.ceil((scroller.scrollTop + scroller.clientHeight) / rowHeight) + spare);
    bands.askRows({ rows, first, cpus: showsCpus(), sight, width: plotWidth() }, () => timeless(page), (cpusCame) => {
      if (cpusCame) arrange();
      draw();
      page.drawn();
    });
  }

  // ---- showing --------------------------------------------------------------------------------------------------
  function refresh(): void {
    // An answer is pending; until it is drawn, rows stay as they are.
    if (!answers.isCurrent) return;
    if (answers.makeRows(own(page.state, name, "idle") === "open")) pointed.cursor = null;
    setTimeout(ask);
    arrange();
    showWords();
    draw();
  }

  // Heights, and which parts are visible.
  function arrange(): void {
    body.hidden = isHidden();
    setText(fold, isHidden() ? "▸ Timeline" : "▾ Timeline");
    setAttribute(fold, "aria-expanded", String(!isHidden()));
    setAttribute(byCpu, "aria-pressed", String(showsCpus()));
    byCpu.hidden =
      legend.element.hidden =
      toRange.hidden =
      all.hidden =
      only.hidden =
      without.hidden =
        isHidden();
    const rows = rowsNow().length;
    const room = Math.max(leastRows, Math.min(mostRows, Math.floor((window.innerHeight * 0.3) / rowHeight)));
    scroller.style.height = `${Math.max(1, Math.min(rows, room)) * rowHeight}px`;
    spacer.style.height = `${rows * rowHeight}px`;
  }

  const totals = () => answers.shown ?? answers.order;
  const cpuTime = (threads: number[]) => threads.reduce((sum, thread) => sum + totals()!.cpu[thread], 0);
  const time = (ns: number) => weightWords(ns, "ns");

  function showWords(): void {
    if (!answers.made) return;
    const words = answerWords(catalogue, answers.made, cpuTime, answers.mostly, answers.waits);
    const text = words.map((word) => (typeof word === "string" ? word : word.textContent)).join("");
    setContent(answer, text, () => words);
    setAttribute(answer, "title", text); // in case not all of it fits
    const row = pointedRow();
    const items = row ? rowItemsAt() : [];
    [only, without].forEach((one, i) => {
      setText(one, items[i]?.text ?? (i ? "Without the thread" : "Only the thread"));
      setDisabled([one], !items[i]);
    });
    setDisabled([toRange], !timeFilter());
    setDisabled([all], inSight.isWhole);
    const known = totals();
    if (known) legend.show(known);
  }

  const lifeOf = (thread: number): Sight => {
    const { start, end } = catalogue.threads[thread];
    return { from: Math.max(whole.from, start), to: end < 0 ? whole.to : end };
  };

  const incidents = catalogue.head.incidents.map(({ time }) => time);
  const stalls = new Map<number, Sight[]>();
  for (const { thread, start, wall } of catalogue.head.stalls)
    stalls.set(thread, [...(stalls.get(thread) ?? []), { from: start, to: start + wall }]);
  const stallsOf = (row: TimelineRow) => (row.kind === "thread" ? stalls.get(row.thread) ?? [] : []);
  const lifesOf = (row: TimelineRow) => (row.kind === "thread" ? [lifeOf(row.thread)] : []);

  function scene(): Scene {
    return { page, whole, sight, gutter: gutter(), width: width(), spans: spansOf(page.state.filters),
      compared: compared(), brush: pointed.brush, cursor: pointed.cursor, incidents };
  }

  function draw(): void {
    if (isHidden() || !answers.made || !width()) return;
    const started = performance.now();
    const now = scene();
    drawHead(sized(head, now.width, headHeight), now, bands.strip, bands.stripMost, marks);
    const rows = rowsNow();
    const height = scroller.clientHeight;
    drawRows(sized(canvas, now.width, height), now, {
      rows,
      height,
      scrollTop: scroller.scrollTop,
      first: bands.firstOf(rows, showsCpus()),
      band: bands.rows,
      words: (row) => rowWords(catalogue, row, cpuTime),
      lifes: lifesOf,
      stalls: stallsOf,
    });
    performance.measure("phlox timeline drawn", { start: started });
  }

  // With all rows, whatever the scroll position.
  function pictures(): Picture[] {
    const known = totals();
    if (isHidden() || !answers.made || !known || !width()) return [];
    const rows = rowsNow().slice(0, mostSaved);
    const now = { ...scene(), brush: null, cursor: null };
    const words = [spanWords(sight.from, sight.to), answer.textContent?.trim() ?? ""];
    if (rows.length < rowsNow().length)
      words.push(`The first ${countWords(rows.length)} of ${countWords(rowsNow().length)} rows.`);
    const height = rows.length * rowHeight;
    return [{
      what: showsCpus() ? "timeline by CPU" : "timeline",
      words: words.filter((text) => text).join(". "),
      width: now.width,
      height: headHeight + height,
      legend: legendEntries(known),
      draw: async (pen) => {
        const band = new Band();
        const bins = plotWidth();
        const { time } = showsCpus()
          ? await page.ask("cpus", { ...now.sight, bins }, timeless(page))
          : await page.ask("densities", { rows: rows.map(threadsOf), ...now.sight, bins }, timeless(page));
        band.paint(page, time, bins, fullOf(rows, (now.sight.to - now.sight.from) / bins), rowHeight - 2, now.sight);
        drawHead(pen, now, bands.strip, bands.stripMost, marks);
        pen.save();
        pen.translate(0, headHeight);
        drawRows(pen, now, { rows, height, scrollTop: 0, first: 0, band,
          words: (row) => rowWords(catalogue, row, cpuTime), lifes: lifesOf, stalls: stallsOf });
        pen.restore();
      },
    }];
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  const see = (next: Sight, alone = false) => inSight.see(next, alone);

  // Replaces the previous range: two that do not overlap would leave nothing.
  function chooseRange({ from, to }: Sight): void {
    const mine = timeFilter();
    const next: TimeFilter = { field: "time", mode: "in", from: Math.round(from), to: Math.round(to) };
    pointed.anchor = null;
    if (mine) page.change({ filters: page.state.filters.map((filter) => (filter === mine ? next : filter)) });
    else page.change(withFilter(page.state, next));
    page.say(`only ${spanWords(next.from, next.to)}`);
  }

  function seeRange(): void {
    const range = timeFilter();
    if (!range) return;
    const air = (range.to - range.from) * 0.03;
    see({ from: Math.max(whole.from, range.from - air), to: Math.min(whole.to, range.to + air) }, true);
  }

  function toggleFolded(): void {
    page.change(withOwn(page.state, name, "idle", own(page.state, name, "idle") === "open" ? "" : "open"));
  }

  const rowAt = (y: number) => Math.floor((y + 0) / rowHeight);
  const pointedRow = () => (pointed.cursor ? rowsNow()[pointed.cursor.row] : undefined);
  const rowItemsAt = (): MenuItem[] => {
    const row = pointedRow();
    return row ? rowItems(page, row, toggleFolded) : [];
  };

  function openMenu(x: number, y: number): void {
    const items = rowItemsAt();
    const range = timeFilter();
    if (range) items.push(...rangeItems(page, range, whole, seeRange));
    tips.away();
    page.menu(items, x, y);
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  holdTimeline(head, canvas, {
    whole: () => whole,
    sight: () => sight,
    plot: () => ({ left: gutter(), width: plotWidth() }),
    edges: () => (timeFilter() ? [timeFilter()!.from, timeFilter()!.to] : []),
    scrolls: () => scroller.scrollHeight > scroller.clientHeight + 1,
    see,
    brush: (range) => {
      pointed.brush = range;
      tips.away();
      draw();
    },
    choose: chooseRange,
    click: (y, at, inGutter) => {
      const row = rowAt(y + scroller.scrollTop);
      if (!rowsNow()[row]) return;
      pointed.cursor = { row, time: at };
      const { kind } = rowsNow()[row];
      if (kind === "folded") return toggleFolded();
      showWords();
      draw();
      if (inGutter) page.say(rowSaid(rowsNow()[row]));
    },
    menu: (y, at, event) => {
      const row = rowAt(y + scroller.scrollTop);
      if (!rowsNow()[row]) return;
      pointed.cursor = { row, time: at };
      showWords();
      draw();
      openMenu(event.clientX, event.clientY);
    },
    hover: (where, x, y, event) =>
      tips.hover(where, where === "rows" || where === "gutter" ? rowsNow()[rowAt(y + scroller.scrollTop)] : undefined,
        x, event),
  });
  scroller.addEventListener("scroll", () => {
    askRows();
    draw();
  });

  // ---- keys -----------------------------------------------------------------------------------------------------
  function rowSaid(row: TimelineRow): string {
    if (row.kind === "folded")
      return `${rowWords(catalogue, row, cpuTime).name.slice(2)}: ${placesWords(catalogue, answers.waits)}`;
    const { name, amount } = rowWords(catalogue, row, cpuTime);
    const samples = row.kind === "thread" && answers.shown
      ? `, ${countWords(answers.shown.samples[row.thread])} samples`
      : "";
    return `${name}${row.kind === "thread" && row.busiest ? ", busiest" : ""}${
      amount ? `, ${amount} CPU time` : ""
    }${samples}`;
  }

  const around = () => (pointed.cursor && pointed.cursor.time >= sight.from && pointed.cursor.time <= sight.to
    ? pointed.cursor.time
    : (sight.from + sight.to) / 2);
  const zoomBy = (factor: number) => see(zoomed(sight, around(), factor, whole));
  const panBy = (share: number) => see(moved(sight, (sight.to - sight.from) * share, whole));

  function sayMoment(row: TimelineRow, at: number, number: number): void {
    tips.askMoment(row, at, (moment, waited, from, to) => {
      const range = pointed.brush ? `, ${time(pointed.brush.to - pointed.brush.from)} chosen` : "";
      page.say(`${tips.titleOf(row)} at ${timeWords(at, 8 * perPixel())}: ${momentWords(page, moment)}${range}`);
      const box = canvas.getBoundingClientRect();
      page.tip(momentTip(page, tips.titleOf(row), from, to, moment, waited),
        box.left + gutter() + (at - sight.from) / perPixel(), box.top + (number + 1) * rowHeight - scroller.scrollTop);
    });
  }

  holdKeys(scroller, pointed, {
    whole,
    sight: () => sight,
    rows: rowsNow,
    perPixel,
    see,
    back: () => inSight.back(),
    zoom: zoomBy,
    seeRange,
    choose: chooseRange,
    toggleFolded,
    menu: openMenu,
    changed: () => {
      showWords();
      draw();
    },
    draw,
    tell: (row) => page.say(rowSaid(row)),
    tellMoment: sayMoment,
  });
  scroller.addEventListener("blur", () => tips.away());

  let colours = "";
  return {
    element: view,
    pictures,
    show: () => {
      sight = inSight.now;
      // The theme switched between dark and light.
      const light = activityColours.map((one) => page.colour(one)).join();
      if (colours && colours !== light) bands.forget();
      colours = light;
      // The view that the user asked for sends its questions first.
      setTimeout(ask);
      refresh();
    },
    keys: [
      { on: "w", shown: "w  s", meaning: "timeline: closer, further away", run: () => zoomBy(0.7) },
      { on: "s", shown: "", meaning: "", run: () => zoomBy(1 / 0.7) },
      { on: "a", shown: "a  d", meaning: "timeline: earlier, later", run: () => panBy(-0.2) },
      { on: "d", shown: "", meaning: "", run: () => panBy(0.2) },
      { on: "e", shown: "e",
        meaning:
          "go to the timeline: arrows (PgUp, PgDn) choose thread and moment, Shift a range, Enter keeps it, z zooms to it, m is the menu, + and − zoom, Esc goes back, Home shows all",
        run: () => scroller.focus() },
    ],
  };
}

export const timeline: View = { name, title: "Timeline", place: "above", follows: ["difference"], create };
