// The timeline: when which thread did what, above every other view. Rows are threads, the busiest first; the strip on top is
// the whole recording.
import { button, element } from "../page/dom";
import { gutterWidth, moved, Sight, zoomed } from "../layout/timeline";
import { rowThreads, timelineRows, TimelineRow, TimelineRows } from "../layout/timeline_rows";
import { Filter, Query, spansOf } from "../model/filters";
import { Densities } from "../model/questions/densities";
import { Moment } from "../model/questions/moments";
import { ThreadTotals } from "../model/questions/threads";
import { Waits } from "../model/questions/waits";
import { activities, Activity } from "../model/states";
import { filtersIn } from "../state/fragment";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, spanWords, timeWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { OneAtATime } from "./parts/one_at_a_time";
import { InSight } from "./parts/sight";
import { marksOf } from "./timeline_events";
import { holdTimeline } from "./timeline_hand";
import { legendEntries, timelineLegend } from "./timeline_legend";
import { rangeItems, rowItems } from "./timeline_menu";
import { activityColours, Band, drawHead, drawRows, headHeight, rowHeight, Scene, sized, strip, stripFull } from "./timeline_picture";
import { answerWords, foldedTip, marksTip, momentTip, momentWords, placesWords, rowWords, shortName, threadTip } from "./timeline_words";
import { MenuItem, Page, Picture, Showing, View } from "./view";

const name = "timeline";
const mostRows = 9; // in sight before they scroll, where the window has room
const leastRows = 3;
const spare = 3; // rows asked for above and below those in sight
const margin = 0.5; // of what is in sight, asked for on both sides, so that a drag finds something there
const markSlack = 5; // pixels
const mostSaved = 600; // rows of a picture that is saved

type TimeFilter = Filter & { field: "time" };

function create(page: Page): Showing {
  const { catalogue } = page;
  const inSight = new InSight(page);
  const { whole } = inSight;
  const marks = marksOf(catalogue);

  const head = element("canvas", { class: "overview", role: "img", "aria-label": "The whole recording, a ruler of time, and what happened" });
  const canvas = element("canvas");
  const spacer = element("div", "spacer", canvas);
  const scroller = element("div", {
    class: "lanes", tabindex: 0, role: "application", "aria-roledescription": "timeline",
    "aria-label": "Timeline. Up and down choose a thread, left and right a moment, with Shift a range; Enter keeps only the range, m opens the menu, plus and minus zoom.",
  }, spacer);
  const answer = element("span", { class: "answer", "aria-live": "polite" });
  const legend = timelineLegend(page);
  const only = button("", () => rowItemsAt()[0]?.run());
  const without = button("", () => rowItemsAt()[1]?.run());
  const toRange = button("Zoom to the range", () => seeRange(), { title: "What the filter of time lets pass, as wide as the window" });
  const all = button("Whole recording", () => see(whole, true), { title: "Home" });
  const byCpu = button("By CPU", () => page.change(withOwn(page.state, name, "rows", showsCpus() ? "" : "cpus")), { title: "A row a CPU in place of a row a thread" });
  const fold = button("", () => page.change(withOwn(page.state, name, "hidden", isHidden() ? "" : "yes")), { class: "fold" });
  const body = element("div", "body", head, scroller);
  const view = element("section", { class: "timeline", "aria-label": "Timeline" },
    element("div", "toolbar", fold, answer, only, without, toRange, all, byCpu, legend.element), body);

  const totalsOf = { order: new Latest<ThreadTotals>(), shown: new Latest<ThreadTotals>(), waits: new Latest<Waits>(), strip: new Latest<Densities>(), busiest: new Latest<Moment>() };
  const moments = new OneAtATime<Moment>();
  const bands = new OneAtATime<Densities & { numbers?: Uint32Array }>();
  let order: ThreadTotals | null = null; // whatever the time
  let orderFor = ""; // what it is the answer to
  let shown: ThreadTotals | null = null; // in the time that the filters let pass
  let made: TimelineRows | null = null;
  let madeFor = "";
  let cpuRows: TimelineRow[] = [];
  let waits: Waits | null = null;
  let mostly: Moment | null = null;
  const stripBand = new Band();
  let stripMost = 1;
  const rowsBand = new Band();
  let bandFirst = 0;
  let bandKey = ""; // which rows it is of
  let sight = whole;
  let brush: Sight | null = null;
  let cursor: { row: number; time: number } | null = null;
  let anchor: number | null = null; // where a range that is chosen by keys began
  let tipKey = "";

  // ---- what is asked --------------------------------------------------------------------------------------------
  // All that threads do, waiting for work too: it is pale, and in nobody's way here. Times stay in sight, beneath a mist.
  const timeless = (): Query => ({ filters: page.state.filters.filter(({ field }) => field !== "time"), show: "everything" });
  const timed = (): Query => ({ filters: page.state.filters, show: "everything" });
  const isHidden = () => own(page.state, name, "hidden") !== "";
  const showsCpus = () => own(page.state, name, "rows") === "cpus";
  const rowsNow = () => (showsCpus() ? cpuRows : made?.rows ?? []);
  const width = () => scroller.clientWidth;
  const gutter = () => gutterWidth(width());
  const plotWidth = () => Math.max(1, width() - gutter());
  // The two ranges of a difference, where that is looked at.
  const compared = (): Sight[] => {
    if (page.state.view !== "difference") return [];
    const sides = ["a", "b"].map((side) => filtersIn(own(page.state, "difference", side))[0]);
    return sides.every((side): side is TimeFilter => side?.field === "time") ? (sides as TimeFilter[]) : [];
  };
  const timeFilter = () => page.state.filters.find((filter): filter is TimeFilter => filter.field === "time" && filter.mode === "in");

  function ask(): void {
    const key = JSON.stringify(timeless());
    totalsOf.order.ask(key, () => page.ask("threads", {}, timeless()), (totals) => {
      order = totals;
      orderFor = key;
      refresh();
    });
    totalsOf.shown.ask(JSON.stringify(timed()), () => page.ask("threads", {}, timed()), (totals) => {
      shown = totals;
      refresh();
    });
    if (!made) return;
    const { threads, busiest } = made;
    const bins = Math.min(4000, plotWidth());
    totalsOf.strip.ask(`${key} ${bins} ${threads.length}`, () => page.ask("densities", { rows: [threads], ...whole, bins }, timeless()), ({ time }) => {
      for (let bin = 0; bin < bins; ++bin) time[bin * activities + Activity.blocked] = time[bin * activities + Activity.unknown] = 0;
      const full = stripFull(time, bins, (whole.to - whole.from) / bins);
      stripMost = full / ((whole.to - whole.from) / bins);
      stripBand.paint(page, time, bins, [full], strip.height, whole);
      draw();
    });
    const folded = made.rows.find((row) => row.kind === "folded");
    if (folded?.kind === "folded") {
      totalsOf.waits.ask(`${key} ${folded.threads.length}`, () => page.ask("waits", { threads: folded.threads }, timeless()), (answer) => {
        waits = answer;
        showWords();
      });
    }
    if (busiest >= 0) {
      totalsOf.busiest.ask(`${JSON.stringify(timed())} ${busiest}`, () => page.ask("moment", { threads: [busiest], ...whole, cpu: -1 }, timed()), (answer) => {
        mostly = answer;
        showWords();
      });
    }
    askRows();
  }

  const threadsOf = (row: TimelineRow) => (row.kind === "process" ? [] : rowThreads(row));
  // ns that fill each row.
  const fullOf = (rows: TimelineRow[], binLength: number) => rows.map((row) => binLength * Math.max(1, rowThreads(row).length));

  // Densities of the rows in sight and a little around them.
  function askRows(): void {
    if (isHidden() || !made) return;
    const first = Math.max(0, Math.floor(scroller.scrollTop / rowHeight) - spare);
    const rows = rowsNow().slice(first, Math.ceil((scroller.scrollTop + scroller.clientHeight) / rowHeight) + spare);
    const extra = (sight.to - sight.from) * margin;
    const range = { from: Math.max(whole.from, sight.from - extra), to: Math.min(whole.to, sight.to + extra) };
    const scale = Math.min(2, window.devicePixelRatio || 1);
    const bins = Math.max(1, Math.round(((plotWidth() * (range.to - range.from)) / (sight.to - sight.from)) * scale));
    const cpus = showsCpus();
    const which = JSON.stringify([timeless(), cpus, rows]);
    const binLength = (range.to - range.from) / bins;
    bands.ask(`${which} ${first} ${range.from} ${range.to} ${bins}`, () => {
      if (cpus) return page.ask("cpus", { ...range, bins }, timeless());
      return page.ask("densities", { rows: rows.map(threadsOf), ...range, bins }, timeless());
    }, ({ time, numbers }) => {
      bandFirst = numbers ? 0 : first;
      bandKey = JSON.stringify([cpus, numbers ? [] : rows]);
      if (numbers) cpuRows = Array.from(numbers, (cpu): TimelineRow => ({ kind: "cpu", cpu }));
      rowsBand.paint(page, time, bins, fullOf(numbers ? cpuRows : rows, binLength), rowHeight - 2, range);
      if (numbers) arrange();
      draw();
      page.drawn();
    });
  }

  // ---- showing --------------------------------------------------------------------------------------------------
  function refresh(): void {
    // What is on its way will be drawn when it comes; until then rows stay what they were.
    if (!order || orderFor !== JSON.stringify(timeless())) return;
    const open = own(page.state, name, "idle") === "open";
    const key = JSON.stringify([timeless(), open]);
    if (key !== madeFor || !made) {
      madeFor = key;
      made = timelineRows(catalogue, order, page.state.filters, open);
      cursor = null;
    }
    setTimeout(ask);
    arrange();
    showWords();
    draw();
  }

  // Heights, and what is to be seen at all.
  function arrange(): void {
    body.hidden = isHidden();
    fold.textContent = isHidden() ? "▸ Timeline" : "▾ Timeline";
    fold.setAttribute("aria-expanded", String(!isHidden()));
    byCpu.setAttribute("aria-pressed", String(showsCpus()));
    byCpu.hidden = legend.element.hidden = toRange.hidden = all.hidden = only.hidden = without.hidden = isHidden();
    const rows = rowsNow().length;
    const room = Math.max(leastRows, Math.min(mostRows, Math.floor((window.innerHeight * 0.3) / rowHeight)));
    scroller.style.height = `${Math.max(1, Math.min(rows, room)) * rowHeight}px`;
    spacer.style.height = `${rows * rowHeight}px`;
  }

  const cpuTime = (threads: number[]) => threads.reduce((sum, thread) => sum + ((shown ?? order) as ThreadTotals).cpu[thread], 0);
  const time = (ns: number) => weightWords(ns, "ns");

  function showWords(): void {
    if (!made) return;
    answer.replaceChildren(...answerWords(catalogue, made, cpuTime, mostly, waits));
    answer.title = answer.textContent ?? ""; // where there is no room for all of it
    const row = cursor ? rowsNow()[cursor.row] : undefined;
    const items = row ? rowItemsAt() : [];
    [only, without].forEach((one, i) => {
      one.textContent = items[i]?.text ?? (i ? "Without the thread" : "Only the thread");
      one.disabled = !items[i];
    });
    toRange.disabled = !timeFilter();
    all.disabled = inSight.isWhole;
    const totals = shown ?? order;
    if (totals) legend.show(totals);
  }

  const lifeOf = (thread: number): Sight => {
    const { start, end } = catalogue.threads[thread];
    return { from: Math.max(whole.from, start), to: end < 0 ? whole.to : end };
  };

  const lifesOf = (row: TimelineRow) => (row.kind === "thread" ? [lifeOf(row.thread)] : []);

  function scene(): Scene {
    return { page, whole, sight, gutter: gutter(), width: width(), spans: spansOf(page.state.filters), compared: compared(), brush, cursor };
  }

  function draw(): void {
    if (isHidden() || !made || !width()) return;
    const started = performance.now();
    const now = scene();
    drawHead(sized(head, now.width, headHeight), now, stripBand, stripMost, marks);
    const rows = rowsNow();
    const height = scroller.clientHeight;
    const fits = bandKey === JSON.stringify([showsCpus(), showsCpus() ? [] : rows.slice(bandFirst, bandFirst + rowsBand.rows)]);
    drawRows(sized(canvas, now.width, height), now, {
      rows, height, scrollTop: scroller.scrollTop, first: fits ? bandFirst : rows.length, band: rowsBand,
      words: (row) => rowWords(catalogue, row, cpuTime),
      lifes: lifesOf,
    });
    performance.measure("phlox timeline drawn", { start: started });
  }

  // With all rows, whatever is scrolled to.
  function pictures(): Picture[] {
    const totals = shown ?? order;
    if (isHidden() || !made || !totals || !width()) return [];
    const rows = rowsNow().slice(0, mostSaved);
    const now = { ...scene(), brush: null, cursor: null };
    const words = [spanWords(sight.from, sight.to), answer.textContent?.trim() ?? ""];
    if (rows.length < rowsNow().length) words.push(`The first ${countWords(rows.length)} of ${countWords(rowsNow().length)} rows.`);
    const height = rows.length * rowHeight;
    return [{
      what: showsCpus() ? "timeline by CPU" : "timeline", words: words.filter((text) => text).join(". "), width: now.width, height: headHeight + height, legend: legendEntries(totals),
      draw: async (pen) => {
        const band = new Band();
        const bins = plotWidth();
        const { time } = showsCpus() ? await page.ask("cpus", { ...now.sight, bins }, timeless()) : await page.ask("densities", { rows: rows.map(threadsOf), ...now.sight, bins }, timeless());
        band.paint(page, time, bins, fullOf(rows, (now.sight.to - now.sight.from) / bins), rowHeight - 2, now.sight);
        drawHead(pen, now, stripBand, stripMost, marks);
        pen.save();
        pen.translate(0, headHeight);
        drawRows(pen, now, { rows, height, scrollTop: 0, first: 0, band, words: (row) => rowWords(catalogue, row, cpuTime), lifes: lifesOf });
        pen.restore();
      },
    }];
  }

  // ---- changing -------------------------------------------------------------------------------------------------
  const see = (next: Sight, alone = false) => inSight.see(next, alone);

  // In place of the range that was chosen before: of two that do not overlap nothing would be left.
  function chooseRange({ from, to }: Sight): void {
    const mine = timeFilter();
    const next: TimeFilter = { field: "time", mode: "in", from: Math.round(from), to: Math.round(to) };
    anchor = null;
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
  const rowItemsAt = (): MenuItem[] => {
    const row = cursor ? rowsNow()[cursor.row] : undefined;
    return row ? rowItems(page, row, toggleFolded) : [];
  };

  function openMenu(x: number, y: number): void {
    const items = rowItemsAt();
    const range = timeFilter();
    if (range) items.push(...rangeItems(page, range, whole, seeRange));
    page.tip(null, 0, 0);
    page.menu(items, x, y);
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  const inNanoseconds = (pixels: number) => (pixels / plotWidth()) * (sight.to - sight.from);

  function titleOf(row: TimelineRow): string {
    return row.kind === "thread" ? shortName(catalogue, row.thread) : row.kind === "cpu" ? `CPU ${row.cpu}` : "";
  }

  function askMoment(row: TimelineRow, at: number, use: (moment: Moment, from: number, to: number) => void): void {
    const from = Math.floor(at - inNanoseconds(0.5));
    const to = Math.max(from + 1, Math.ceil(at + inNanoseconds(0.5)));
    const threads = row.kind === "cpu" ? catalogue.threads.map((_, i) => i) : rowThreads(row);
    const key = JSON.stringify([row, from, to, timeless()]);
    tipKey = key;
    moments.ask(key, () => page.ask("moment", { threads, from, to, cpu: row.kind === "cpu" ? row.cpu : -1 }, timeless()), (moment) => {
      if (tipKey === key) use(moment, from, to);
    });
  }

  function hover(where: string, x: number, y: number, event: MouseEvent): void {
    const [clientX, clientY] = [event.clientX, event.clientY];
    const away = () => {
      tipKey = "";
      page.tip(null, 0, 0);
    };
    if (where === "marks") {
      const near = marks.filter((mark) => Math.abs((mark.time - sight.from) / inNanoseconds(1) - x) <= markSlack);
      tipKey = "marks";
      return page.tip(near.length ? marksTip(near) : null, clientX, clientY);
    }
    const row = where === "rows" || where === "gutter" ? rowsNow()[rowAt(y)] : undefined;
    if (!row || !made) return away();
    if (row.kind === "folded") {
      tipKey = "folded";
      return page.tip(foldedTip(page, row, waits), clientX, clientY);
    }
    if (row.kind === "process") return away();
    if (where === "gutter") {
      tipKey = "thread";
      return page.tip(row.kind === "thread" && shown ? threadTip(page, row.thread, shown, row.busiest) : null, clientX, clientY);
    }
    askMoment(row, sight.from + inNanoseconds(x), (moment, from, to) => page.tip(momentTip(page, titleOf(row), from, to, moment), clientX, clientY));
  }

  holdTimeline(head, canvas, {
    whole: () => whole,
    sight: () => sight,
    plot: () => ({ left: gutter(), width: plotWidth() }),
    edges: () => (timeFilter() ? [timeFilter()!.from, timeFilter()!.to] : []),
    scrolls: () => scroller.scrollHeight > scroller.clientHeight + 1,
    see,
    brush: (range) => {
      brush = range;
      page.tip(null, 0, 0);
      draw();
    },
    choose: chooseRange,
    click: (y, at, inGutter) => {
      const row = rowAt(y + scroller.scrollTop);
      if (!rowsNow()[row]) return;
      cursor = { row, time: at };
      const { kind } = rowsNow()[row];
      if (kind === "folded") return toggleFolded();
      showWords();
      draw();
      if (inGutter) page.say(rowSaid(rowsNow()[row]));
    },
    menu: (y, at, event) => {
      const row = rowAt(y + scroller.scrollTop);
      if (!rowsNow()[row]) return;
      cursor = { row, time: at };
      showWords();
      draw();
      openMenu(event.clientX, event.clientY);
    },
    hover: (where, x, y, event) => hover(where, x, y + scroller.scrollTop, event),
  });
  scroller.addEventListener("scroll", () => {
    askRows();
    draw();
  });

  // ---- keys -----------------------------------------------------------------------------------------------------
  function rowSaid(row: TimelineRow): string {
    if (row.kind === "folded") return `${rowWords(catalogue, row, cpuTime).name.slice(2)}: ${placesWords(catalogue, waits)}`;
    const { name, amount } = rowWords(catalogue, row, cpuTime);
    const samples = row.kind === "thread" && shown ? `, ${countWords(shown.samples[row.thread])} samples` : "";
    return `${name}${row.kind === "thread" && row.busiest ? ", busiest" : ""}${amount ? `, ${amount} CPU time` : ""}${samples}`;
  }

  function moveCursor(rows: number, pixels: number, choosing: boolean): void {
    const list = rowsNow();
    if (!list.length) return;
    const before = cursor ?? { row: rows > 0 ? -1 : 0, time: (sight.from + sight.to) / 2 };
    const row = Math.max(0, Math.min(list.length - 1, before.row + rows));
    const at = Math.max(whole.from, Math.min(whole.to, before.time + inNanoseconds(pixels)));
    if (choosing) anchor ??= before.time;
    else if (pixels) anchor = null;
    cursor = { row, time: at };
    brush = anchor === null ? null : { from: Math.round(Math.min(anchor, at)), to: Math.round(Math.max(anchor, at)) };
    const top = row * rowHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + rowHeight > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + rowHeight - scroller.clientHeight;
    if (at < sight.from || at > sight.to) see(moved(sight, at - (sight.from + sight.to) / 2, whole));
    showWords();
    draw();
    const here = list[row];
    if (!pixels) return page.say(rowSaid(here));
    if (here.kind !== "thread" && here.kind !== "cpu") return;
    askMoment(here, at, (moment, from, to) => {
      const range = brush ? `, ${time(brush.to - brush.from)} chosen` : "";
      page.say(`${titleOf(here)} at ${timeWords(at, inNanoseconds(8))}: ${momentWords(page, moment)}${range}`);
      const box = canvas.getBoundingClientRect();
      page.tip(momentTip(page, titleOf(here), from, to, moment), box.left + gutter() + (at - sight.from) / inNanoseconds(1), box.top + top + rowHeight - scroller.scrollTop);
    });
  }

  const around = () => (cursor && cursor.time >= sight.from && cursor.time <= sight.to ? cursor.time : (sight.from + sight.to) / 2);
  const zoomBy = (factor: number) => see(zoomed(sight, around(), factor, whole));
  const panBy = (share: number) => see(moved(sight, (sight.to - sight.from) * share, whole));

  scroller.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { shiftKey } = event;
    const run: Record<string, () => void> = {
      ArrowUp: () => moveCursor(-1, 0, false),
      ArrowDown: () => moveCursor(1, 0, false),
      PageUp: () => moveCursor(-leastRows * 2, 0, false),
      PageDown: () => moveCursor(leastRows * 2, 0, false),
      ArrowLeft: () => moveCursor(0, -8, shiftKey),
      ArrowRight: () => moveCursor(0, 8, shiftKey),
      Home: () => see(whole, true),
      "+": () => zoomBy(0.7),
      "=": () => zoomBy(0.7),
      "-": () => zoomBy(1 / 0.7),
      z: seeRange,
      m: () => menuAtCursor(),
      ContextMenu: () => menuAtCursor(),
      Enter: () => {
        const row = cursor ? rowsNow()[cursor.row] : undefined;
        if (brush && brush.to > brush.from) {
          const range = brush;
          brush = null;
          chooseRange(range);
        } else if (row?.kind === "folded") toggleFolded();
        else menuAtCursor();
      },
      Escape: () => {
        if (!brush) return inSight.back();
        brush = anchor = null;
        draw();
      },
    };
    if (!run[event.key]) return;
    run[event.key]();
    event.preventDefault();
    event.stopPropagation();
  });
  scroller.addEventListener("blur", () => page.tip(null, 0, 0));

  function menuAtCursor(): void {
    if (!cursor) return;
    const box = scroller.getBoundingClientRect();
    openMenu(box.left + 60, box.top + (cursor.row + 1) * rowHeight - scroller.scrollTop);
  }

  let colours = "";
  return {
    element: view,
    pictures,
    show: () => {
      sight = inSight.now;
      // It became dark or light: pictures are made of numbers that are not kept.
      const light = activityColours.map((one) => page.colour(one)).join();
      if (colours && colours !== light) {
        totalsOf.strip = new Latest();
        bandKey = "";
      }
      colours = light;
      // Whoever shows what was asked for asks first.
      setTimeout(ask);
      refresh();
    },
    keys: [
      { on: "w", shown: "w  s", meaning: "timeline: closer, further away", run: () => zoomBy(0.7) },
      { on: "s", shown: "", meaning: "", run: () => zoomBy(1 / 0.7) },
      { on: "a", shown: "a  d", meaning: "timeline: earlier, later", run: () => panBy(-0.2) },
      { on: "d", shown: "", meaning: "", run: () => panBy(0.2) },
      { on: "e", shown: "e", meaning: "go to the timeline: arrows (PgUp, PgDn) choose thread and moment, Shift a range, Enter keeps it, z zooms to it, m is the menu, + and − zoom, Esc goes back, Home shows all", run: () => scroller.focus() },
    ],
  };
}

export const timeline: View = { name, title: "Timeline", place: "above", follows: ["difference"], create };
