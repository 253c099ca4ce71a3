// The flame chart: what ran after what. One or several threads, busiest first, over the timeline's visible range and
// aligned with it.
import { choice, element, factTable, setText } from "../page/dom";
import { boxAt, ChartBox, Lane, laneOf } from "../layout/flame_chart";
import { gutterWidth, moved, Sight, timeAt, within, xOf, zoomed } from "../layout/timeline";
import { busyTimes } from "../layout/timeline_rows";
import { CallTree, pathTo } from "../model/call_tree";
import { functionOf } from "../model/catalogue";
import { By } from "../model/head";
import { Segments } from "../model/questions/segments";
import { ThreadTotals } from "../model/questions/threads";
import { activities, activityWords } from "../model/states";
import { Label, placeOf } from "../model/tree";
import { own, withFilter, withOwn } from "../state/state";
import { countWords, fit, fitName, spanWords, timeWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { OneAtATime } from "./parts/one_at_a_time";
import { InSight } from "./parts/sight";
import { PixelRows, rgbOf } from "./parts/pixel_rows";
import { Pen, SvgPen } from "./parts/svg_pen";
import { Monospaced, textWidth } from "./parts/text_widths";
import { shortName } from "./parts/thread_names";
import { afterWheel } from "./parts/time_wheel";
import { HoverWaits } from "./parts/hover_waits";
import { HoverTip } from "./parts/hover_tip";
import { activityColours, sized } from "./timeline_picture";
import { Page, Picture, Showing, View } from "./view";

const name = "chart";
const rowHeight = 17;
const titleHeight = 4; // above a lane
const lineHeight = 5; // of its activity
const gap = 8; // between lanes
const margin = 0.5; // of the visible range, requested in addition on both sides
const mostRows = 512;
const mostOfSeveral = 24; // rows per thread if there are several
const binPixels = 2; // where there are more intervals than pixels
const clickSlack = 3;
const faded = 0.42;

interface Drawn {
  by: By;
  tree: CallTree;
  threads: number[];
  segments: Segments;
  lanes: Lane[];
  tops: number[]; // of the lanes, in pixels
  height: number;
}

interface At {
  lane: number;
  row: number;
  index: number; // of the box in its row
}

function create(page: Page): Showing {
  const { catalogue } = page;
  const inSight = new InSight(page);
  const { whole } = inSight;
  const canvas = element("canvas");
  const spacer = element("div", "spacer", canvas);
  const scroller = element("div", {
    class: "lanes",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "flame chart",
    "aria-label":
      "Flame chart, in the order of time. Arrow keys move from frame to frame, Enter shows a frame as wide as the window, m opens its menu.",
  }, spacer);
  const counts = choice("Threads", [["1", "1 thread"], ["3", "3"], ["8", "8"]] as const,
    (value) => page.change(withOwn(page.state, name, "threads", value === "3" ? "" : value)), { 1: "The busiest thread",
    3: "The three busiest threads", 8: "The eight busiest threads" });
  const notes = element("span", "notes");
  const view = element("section", { class: "chart", "aria-label": "Flame chart" },
    element("div", "toolbar", counts.element, notes), scroller);

  const orders = new Latest<ThreadTotals>();
  const answers = new OneAtATime<[CallTree, Segments, By, number[]]>();
  let totals: ThreadTotals | null = null;
  let totalsFor = "";
  let drawn: Drawn | null = null;
  const hover = new HoverTip(page, tipOf);
  const waits = new HoverWaits(page);
  let labels: Label[] = [];
  let hits = new Uint8Array(0);
  let hitsOf: Page["matches"] = null;
  let cursor: At | null = null;
  const narrow = new PixelRows();
  let sight = whole;

  const width = () => scroller.clientWidth;
  const plot = () => Math.max(1, width() - gutterWidth(width()));
  const queryKey = () => JSON.stringify([page.state.filters, page.state.show]);
  const wanted = () => Number(own(page.state, name, "threads")) || 3;
  const time = (ns: number) => weightWords(ns, "ns");
  const hasTime = (thread: number) =>
    (totals as ThreadTotals).activity.subarray(thread * activities, (thread + 1) * activities).some((ns) => ns > 0);

  function shownThreads(): number[] {
    if (!totals) return [];
    const busy = busyTimes(totals);
    return catalogue.threads.map((_, thread) => thread).filter(hasTime).sort((a, b) => busy[b] - busy[a] || a - b)
      .slice(0, wanted());
  }

  // ---- questions ------------------------------------------------------------------------------------------------
  function ask(): void {
    const key = queryKey();
    orders.ask(key, () => page.ask("threads", {}), (answer) => {
      totals = answer;
      totalsFor = key;
      askSegments();
    });
    askSegments();
  }

  function askSegments(): void {
    if (!totals || totalsFor !== queryKey() || !width()) return;
    const threads = shownThreads();
    const { by } = page.state;
    const extra = (sight.to - sight.from) * margin;
    const range = { from: Math.max(whole.from, sight.from - extra), to: Math.min(whole.to, sight.to + extra) };
    const bins = Math.max(1, Math.round((plot() * (range.to - range.from)) / (sight.to - sight.from) / binPixels));
    const key = `${totalsFor} ${by} ${threads} ${range.from} ${range.to} ${bins}`;
    answers.ask(key,
      () => Promise.all([page.shape(by), page.ask("segments", { threads, ...range, bins, by }), by, threads]),
      ([tree, segments, ofBy, ofThreads]) => use(tree, segments, ofBy, ofThreads));
  }

  function use(tree: CallTree, segments: Segments, by: By, threads: number[]): void {
    labels = page.labels(by);
    const most = threads.length > 1 ? mostOfSeveral : mostRows;
    const lanes = threads.map((_, at) => laneOf(tree, segments, at, most));
    const tops: number[] = [];
    let height = 0;
    for (const lane of lanes) {
      tops.push(height);
      height += titleHeight + lineHeight + Math.max(2, lane.rows.length) * rowHeight + gap;
    }
    drawn = { by, tree, threads, segments, lanes, tops, height };
    if (cursor && !drawn.lanes[cursor.lane]?.rows[cursor.row]?.[cursor.index]) cursor = null;
    spacer.style.height = `${height}px`;
    refresh();
    page.drawn();
  }

  function refresh(): void {
    if (!drawn) return;
    if (hitsOf !== page.matches || hits.length !== labels.length) {
      hitsOf = page.matches;
      hits = Uint8Array.from(labels,
        (_, id) => (hitsOf ? hitsOf.functions[functionOf(catalogue, (drawn as Drawn).by, id)] : 0));
    }
    const { threads, segments, lanes } = drawn;
    const there = totals ? catalogue.threads.filter((_, thread) => hasTime(thread)).length : 0;
    const words: string[] = [];
    if (!threads.length) words.push("Nothing is left of any thread.");
    else if (there > threads.length)
      words.push(
        `The ${threads.length === 1 ? "busiest" : `${threads.length} busiest`} of ${
          countWords(there)
        } threads: “Only thread” in a menu of the timeline shows another.`,
      );
    if (!Array.from(segments.exact).every((one) => one))
      words.push("Too much to show each sample: every column is the stack with most of its time. Zoom in for each.");
    const deeper = Math.max(0, ...lanes.map((lane) => lane.deeper));
    if (deeper)
      words.push(
        `Up to ${countWords(deeper)} rows deeper: ${threads.length > 1 ? "choose one thread" : "they are left out"}.`,
      );
    setText(notes, words.join(" "));
    draw();
  }

  // ---- drawing --------------------------------------------------------------------------------------------------
  const rowTop = (lane: number, row: number) =>
    (drawn as Drawn).tops[lane] + titleHeight + lineHeight + row * rowHeight;

  function draw(): void {
    if (!drawn || !width()) return;
    const started = performance.now();
    const [wide, high] = [width(), scroller.clientHeight];
    paint(sized(canvas, wide, high), wide, scroller.scrollTop, high);
    performance.measure("phlox chart drawn", { start: started });
  }

  // The part that begins `scrolled` pixels from the top and is `high` pixels high.
  function paint(pen: Pen, wide: number, scrolled: number, high: number): void {
    if (!drawn) return;
    const left = gutterWidth(wide);
    const hasHits = page.matches !== null && page.matches.count > 0;
    drawn.lanes.forEach((lane, at) => {
      const top = (drawn as Drawn).tops[at] - scrolled;
      const bottom = rowTop(at, Math.max(2, lane.rows.length)) - scrolled;
      if (bottom < 0 || top > high) return;
      drawTitle(pen, at, top, left);
      pen.save();
      pen.beginPath();
      pen.rect(left, 0, wide - left, high);
      pen.clip();
      pen.translate(left, 0);
      narrow.start(wide - left, window.devicePixelRatio || 1);
      drawActivity(pen, at, top + titleHeight, wide - left);
      pen.font = page.colour("--mono");
      const font = new Monospaced(pen);
      lane.rows.forEach((boxes, row) => {
        const y = rowTop(at, row) - scrolled;
        if (y > -rowHeight && y < high) drawRow(pen, font, boxes, y, wide - left, hasHits);
      });
      if (!(pen instanceof SvgPen)) narrow.paint(pen);
      if (cursor?.lane === at && !(pen instanceof SvgPen))
        drawCursor(pen, lane.rows[cursor.row]?.[cursor.index], rowTop(at, cursor.row) - scrolled, wide - left);
      pen.restore();
    });
  }

  function pictures(): Picture[] {
    if (!drawn || !width()) return [];
    const { height, segments } = drawn;
    const there = new Set(segments.activity);
    return [{
      what: "flame chart",
      words: [spanWords(sight.from, sight.to), notes.textContent].filter((text) => text).join(". "),
      width: width(),
      height,
      legend: activityColours.map((colour, i): [string, string] => [colour, activityWords[i]]).filter((_, i) =>
        there.has(i)
      ),
      draw: (pen) => {
        pen.textBaseline = "middle";
        paint(pen, width(), 0, height);
      },
    }];
  }

  function drawTitle(pen: Pen, at: number, y: number, left: number): void {
    const { threads, lanes } = drawn as Drawn;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillStyle = page.colour("--ink");
    const measure = (text: string) => textWidth(pen, text);
    pen.fillText(fit(shortName(catalogue, threads[at]), left - 12, measure), 0,
      y + titleHeight + lineHeight + rowHeight / 2);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = page.colour("--faint");
    if (totals)
      pen.fillText(`${time(totals.cpu[threads[at]])} CPU time`, 0, y + titleHeight + lineHeight + rowHeight * 1.5);
    if (lanes[at].rows.length === 0)
      pen.fillText("nothing of it here", left, y + titleHeight + lineHeight + rowHeight / 2);
  }

  // As in the thread's timeline row.
  function drawActivity(pen: Pen, at: number, y: number, wide: number): void {
    const { first, start, end, activity } = (drawn as Drawn).segments;
    narrow.row(y, lineHeight - 1);
    for (let i = first[at]; i < first[at + 1]; ++i) {
      const a = xOf(start[i], sight, wide);
      const b = xOf(end[i], sight, wide);
      if (b < 0 || a > wide) continue;
      const colour = page.colour(activityColours[activity[i]]);
      if (!(pen instanceof SvgPen)) {
        narrow.add(a, Math.max(0.5, b - a), rgbOf(colour), 1);
        continue;
      }
      pen.fillStyle = colour;
      pen.fillRect(a, y, Math.max(0.5, b - a), lineHeight - 1);
    }
  }

  function drawRow(pen: Pen, font: Monospaced, boxes: readonly ChartBox[], y: number, wide: number,
    hasHits: boolean): void
  {
    const { tree } = drawn as Drawn;
    const room = 2 * font.character;
    let done = -1; // pixels up to here are drawn
    narrow.row(y, rowHeight - 1);
    for (let i = firstInSight(boxes); i < boxes.length && boxes[i].from < sight.to; ++i) {
      const box = boxes[i];
      const from = Math.max(-2, xOf(box.from, sight, wide));
      const to = Math.min(wide + 2, xOf(box.to, sight, wide));
      if (to - done < 0.5) continue; // of several in one pixel, draw the first
      done = to;
      const id = tree.label[box.node];
      const hit = hasHits && hits[id] === 1;
      const alpha = hit ? 1 : hasHits ? 0.38 : box.waits ? faded : 1;
      const colour = hit ? page.colour("--hit") : page.fill(labels[id]);
      const width = Math.max(0.6, to - from - (to - from >= 3 ? 0.6 : 0));
      const inner = Math.min(wide, to) - Math.max(0, from) - 6;
      if (inner < room && !(pen instanceof SvgPen)) {
        narrow.add(from, width, rgbOf(colour), alpha);
        continue;
      }
      pen.globalAlpha = alpha;
      pen.fillStyle = colour;
      if (pen instanceof SvgPen)
        pen.open(
          `${labels[id].full}, from ${timeWords(box.from, (sight.to - sight.from) / 100)}, for ${
            time(box.to - box.from)
          }`,
        );
      pen.fillRect(from, y, width, rowHeight - 1);
      if (inner >= room) {
        pen.globalAlpha = hasHits && !hit ? 0.75 : 1;
        pen.fillStyle = page.colour(hit ? "--hit-ink" : "--ink");
        pen.fillText(fitName(labels[id].name, labels[id].full, inner, font.width), Math.max(0, from) + 3,
          y + rowHeight / 2);
      }
      if (pen instanceof SvgPen) pen.close();
    }
    pen.globalAlpha = 1;
  }

  function firstInSight(boxes: readonly ChartBox[]): number {
    let low = 0;
    let high = boxes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (boxes[middle].to > sight.from) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  function drawCursor(pen: Pen, box: ChartBox | undefined, y: number, wide: number): void {
    if (!box) return;
    const [a, b] = [Math.max(0, xOf(box.from, sight, wide)), Math.min(wide, xOf(box.to, sight, wide))];
    pen.strokeStyle = page.colour("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(a + 1, y + 1, Math.max(2, b - a - 2), rowHeight - 3);
    pen.lineWidth = 1;
  }

  // ---- pointing -------------------------------------------------------------------------------------------------
  const boxOf = ({ lane, row, index }: At) => (drawn as Drawn).lanes[lane].rows[row][index];

  function under(event: MouseEvent): At | null {
    if (!drawn) return null;
    const frame = scroller.getBoundingClientRect();
    const x = event.clientX - frame.left - gutterWidth(width());
    const y = event.clientY - frame.top + scroller.scrollTop;
    if (x < 0 || x > plot()) return null;
    for (let lane = 0; lane < drawn.lanes.length; ++lane) {
      const row = Math.floor((y - rowTop(lane, 0)) / rowHeight);
      if (row < 0 || row >= drawn.lanes[lane].rows.length) continue;
      const index = boxAt(drawn.lanes[lane].rows[row], timeAt(x, sight, plot()));
      if (index >= 0) return { lane, row, index };
    }
    return null;
  }

  function tipOf(at: At): Node {
    const { tree, threads, segments } = drawn as Drawn;
    const box = boxOf(at);
    const label = labels[tree.label[box.node]];
    const tip = element("div", {}, element("div", "name", label.full));
    if (placeOf(label)) tip.append(element("div", "place", placeOf(label)));
    const facts: [string, ...string[]][] = [["thread", shortName(catalogue, threads[at.lane])], ["from",
      timeWords(box.from, (sight.to - sight.from) / 100)], ["for", time(box.to - box.from)]];
    const sums = new Float64Array(activities);
    for (let i = segments.first[at.lane]; i < segments.first[at.lane + 1]; ++i) {
      const part = Math.min(segments.end[i], box.to) - Math.max(segments.start[i], box.from);
      if (part > 0) sums[segments.activity[i]] += part;
    }
    sums.forEach((ns, activity) => ns > 0 && facts.push([activityWords[activity], time(ns)]));
    tip.append(factTable(facts),
      ...waits.of(JSON.stringify([page.state.filters, page.state.show]), { by: (drawn as Drawn).by, node: box.node,
        threads: [threads[at.lane]], from: box.from, to: box.to }, () => hover.again()));
    if (!segments.exact[at.lane]) tip.append(element("div", "place", "Zoom in for each sample"));
    return tip;
  }

  function seeBox(at: At): void {
    const box = boxOf(at);
    const air = (box.to - box.from) * 0.02;
    inSight.see(within({ from: box.from - air, to: box.to + air }, whole), true);
  }

  function openMenu(at: At, x: number, y: number): void {
    const { by, tree, threads } = drawn as Drawn;
    const thread = threads[at.lane];
    hover.away();
    page.menu([
      { text: "As wide as the window", run: () => seeBox(at) },
      { text: "Only this time", run: () =>
        page.change(
          withFilter(page.state, { field: "time", mode: "in", from: Math.round(boxOf(at).from),
            to: Math.round(boxOf(at).to) }),
        ) },
      { text: `Only thread ${shortName(catalogue, thread)}`,
        run: () => page.change(withFilter(page.state, { field: "thread", mode: "in", values: [thread] })) },
      ...page.frameItems(by, pathTo(tree, boxOf(at).node)),
    ], x, y);
  }

  let dragged = false;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const start = event.clientX;
    const [from, length] = [sight, sight.to - sight.from];
    const [startY, startTop] = [event.clientY, scroller.scrollTop];
    dragged = false;
    canvas.setPointerCapture(event.pointerId);
    const follow = (next: PointerEvent) => {
      if (!dragged && Math.hypot(next.clientX - start, next.clientY - startY) < clickSlack) return;
      dragged = true;
      hover.away();
      scroller.scrollTop = startTop + startY - next.clientY;
      inSight.see(moved(from, ((start - next.clientX) / plot()) * length, whole));
    };
    const stop = () => {
      for (const type of ["pointerup", "pointercancel"]) canvas.removeEventListener(type, stop);
      canvas.removeEventListener("pointermove", follow);
    };
    canvas.addEventListener("pointermove", follow);
    for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, stop);
  });
  canvas.addEventListener("click", (event) => {
    const at = dragged ? null : under(event);
    if (!at) return;
    cursor = at;
    seeBox(at);
  });
  canvas.addEventListener("contextmenu", (event) => {
    event.preventDefault();
    const at = under(event);
    if (!at) return;
    cursor = at;
    draw();
    openMenu(at, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const at = under(event);
    canvas.style.cursor = at ? "pointer" : "grab";
    if (at) hover.show(at, event.clientX, event.clientY);
    else hover.away();
  });
  canvas.addEventListener("pointerleave", () => hover.away());
  canvas.addEventListener("wheel", (event) => {
    const x = event.clientX - scroller.getBoundingClientRect().left - gutterWidth(width());
    const next = afterWheel(event, x, plot(), sight, whole, scroller.scrollHeight > scroller.clientHeight + 1);
    if (!next) return;
    event.preventDefault();
    inSight.see(next);
  }, { passive: false });
  scroller.addEventListener("scroll", draw);

  // ---- keys -----------------------------------------------------------------------------------------------------
  // The outermost visible box of the first lane that has any.
  function firstBox(): At | null {
    for (let lane = 0; lane < (drawn?.lanes.length ?? 0); ++lane) {
      const row = (drawn as Drawn).lanes[lane].rows[0];
      const index = row ? firstInSight(row) : -1;
      if (row?.[index]) return { lane, row: 0, index };
    }
    return null;
  }

  function move(key: string): void {
    if (!drawn) return;
    if (!cursor) return focusBox(firstBox());
    const { lane, row, index } = cursor;
    const { rows } = drawn.lanes[lane];
    const box = boxOf(cursor);
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const next = index + (key === "ArrowRight" ? 1 : -1);
      return focusBox(rows[row][next] ? { lane, row, index: next } : null);
    }
    if (key === "ArrowUp") {
      if (row > 0) return focusBox({ lane, row: row - 1, index: boxAt(rows[row - 1], box.from) });
      return focusBox(
        lane > 0 && drawn.lanes[lane - 1].rows[0]
          ? { lane: lane - 1, row: 0, index: Math.max(0, boxAt(drawn.lanes[lane - 1].rows[0], box.from)) }
          : null,
      );
    }
    // Its longest visible callee; from the innermost frame on to the next thread.
    const inner = (rows[row + 1] ?? []).map((one, at) => ({ one, at })).filter(({ one }) =>
      one.from >= box.from && one.to <= box.to
    );
    const longest = inner.reduce<{ one: ChartBox; at: number } | null>(
      (best, next) => (best && best.one.to - best.one.from >= next.one.to - next.one.from ? best : next),
      null,
    );
    if (longest) return focusBox({ lane, row: row + 1, index: longest.at });
    const below = drawn.lanes[lane + 1]?.rows[0];
    if (below) focusBox({ lane: lane + 1, row: 0, index: Math.max(0, boxAt(below, box.from)) });
  }

  function focusBox(at: At | null): void {
    if (!at || !drawn || at.index < 0) return;
    cursor = at;
    const box = boxOf(at);
    const y = rowTop(at.lane, at.row);
    if (y < scroller.scrollTop + titleHeight) scroller.scrollTop = y - titleHeight - lineHeight;
    if (y + rowHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = y + 2 * rowHeight - scroller.clientHeight;
    if (box.to < sight.from || box.from > sight.to)
      inSight.see(moved(sight, box.from - (sight.from + sight.to) / 2, whole));
    draw();
    const frame = scroller.getBoundingClientRect();
    const x = Math.max(0,
      Math.min(plot(), xOf((Math.max(box.from, sight.from) + Math.min(box.to, sight.to)) / 2, sight, plot())));
    hover.show(at, frame.left + gutterWidth(width()) + x, frame.top + y - scroller.scrollTop + rowHeight / 2);
    page.say(
      `${labels[drawn.tree.label[box.node]].name}, from ${timeWords(box.from, (sight.to - sight.from) / 100)}, for ${
        time(box.to - box.from)
      }, thread ${shortName(catalogue, drawn.threads[at.lane])}`,
    );
  }

  function stepMatch(direction: 1 | -1): void {
    if (!drawn) return;
    const boxes = drawn.lanes.flatMap((lane, at) =>
      lane.rows.flatMap((row, depth) => row.map((box, index) => ({ box, at: { lane: at, row: depth, index } })))
    )
      .filter(({ box }) => hits[(drawn as Drawn).tree.label[box.node]] && box.to > sight.from && box.from < sight.to)
      .sort((a, b) => a.at.lane - b.at.lane || a.box.from - b.box.from || a.at.row - b.at.row);
    if (!boxes.length) return;
    const here = cursor ? boxes.findIndex(({ at }) => JSON.stringify(at) === JSON.stringify(cursor)) : -1;
    focusBox(
      boxes[(here < 0 ? (direction > 0 ? 0 : boxes.length - 1) : here + direction + boxes.length) % boxes.length].at,
    );
  }

  const around = () => (cursor && drawn
    ? Math.max(sight.from, Math.min(sight.to, boxOf(cursor).from))
    : (sight.from + sight.to) / 2);

  return {
    element: view,
    show: () => {
      const now: Sight = inSight.now;
      if (now.from !== sight.from || now.to !== sight.to) hover.away();
      sight = now;
      counts.show(String(wanted()) as "1" | "3" | "8");
      setTimeout(ask);
      refresh();
    },
    pictures,
    keys: [
      ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((on, i) => ({
        on,
        shown: i ? "" : "← → ↑ ↓",
        meaning: i ? "" : "move from frame to frame",
        run: () => move(on),
      })),
      { on: "Enter", shown: "Enter", meaning: "the frame as wide as the window", run: () => cursor && seeBox(cursor) },
      { on: "Escape", shown: "Esc", meaning: "one zoom back", run: () => inSight.back() },
      { on: "Home", shown: "Home", meaning: "the whole recording", run: () => inSight.see(whole, true) },
      { on: "+", shown: "+  -", meaning: "closer, further away",
        run: () => inSight.see(zoomed(sight, around(), 0.7, whole)) },
      { on: "-", shown: "", meaning: "", run: () => inSight.see(zoomed(sight, around(), 1 / 0.7, whole)) },
      { on: "m", shown: "m", meaning: "menu of the frame", run: () => {
        if (!cursor) return;
        const frame = scroller.getBoundingClientRect();
        openMenu(cursor, frame.left + gutterWidth(width()) + Math.max(0, xOf(boxOf(cursor).from, sight, plot())) + 8,
          frame.top + rowTop(cursor.lane, cursor.row + 1) - scroller.scrollTop);
      } },
      { on: "n", shown: "n  N", meaning: "next, previous match in time", run: () => stepMatch(1) },
      { on: "N", shown: "", meaning: "", run: () => stepMatch(-1) },
      { on: "c", shown: "c", meaning: "copy the frame's name",
        run: () => cursor && drawn && page.copy(labels[drawn.tree.label[boxOf(cursor).node]].full) },
    ],
  };
}

export const flameChart: View = { name, title: "Flame chart", place: "main", follows: ["timeline"], create };
