// Tooltips of the timeline: marks, folded threads, a thread, a moment of one.
import { Sight } from "../layout/timeline";
import { rowThreads, TimelineRow } from "../layout/timeline_rows";
import { Moment } from "../model/questions/moments";
import { slack } from "../model/questions/segments";
import { everywhere, WaitRows } from "../model/questions/wait_rows";
import { Activity } from "../model/states";
import { traceWords } from "../model/trace_times";
import { OneAtATime } from "./parts/one_at_a_time";
import { shortName } from "./parts/thread_names";
import { listed } from "./parts/wait_words";
import { timeless, TimelineAnswers } from "./timeline_answers";
import { Mark } from "./timeline_events";
import { foldedTip, marksTip, momentTip, threadTip } from "./timeline_words";
import { Page } from "./view";

const markSlack = 5; // pixels
const waiting = [Activity.runnable, Activity.gil, Activity.blocked];

export class TimelineTips {
  private readonly moments = new OneAtATime<[Moment, WaitRows | null]>();
  private key = "";

  // `perPixel`: in ns.
  constructor(private readonly page: Page, private readonly answers: TimelineAnswers, private readonly marks: Mark[],
    private readonly look: { sight(): Sight; perPixel(): number })
  {}

  titleOf(row: TimelineRow): string {
    return row.kind === "thread"
      ? shortName(this.page.catalogue, row.thread)
      : row.kind === "cpu"
      ? `CPU ${row.cpu}`
      : "";
  }

  // The trace for which the row's thread worked then, in words; empty: none, or not known.
  traceAt(row: TimelineRow, from: number, to: number): string {
    return row.kind === "thread" ? traceWords(this.page.catalogue.traces, row.thread, from, to) : "";
  }

  // Calls `use` unless something else was pointed at since.
  askMoment(row: TimelineRow, at: number,
    use: (moment: Moment, waited: WaitRows | null, from: number, to: number) => void): void
  {
    const { page } = this;
    const half = this.look.perPixel() / 2;
    const from = Math.floor(at - half);
    const to = Math.max(from + 1, Math.ceil(at + half));
    const threads = row.kind === "cpu" ? page.catalogue.threads.map((_, i) => i) : rowThreads(row);
    const key = JSON.stringify([row, from, to, timeless(page)]);
    this.key = key;
    const ask = async (): Promise<[Moment, WaitRows | null]> => {
      const moment = await page.ask("moment", { threads, from, to, cpu: row.kind === "cpu" ? row.cpu : -1 },
        timeless(page));
      const waits = row.kind !== "cpu" && waiting.some((activity) => moment.activity[activity] > 0);
      // If the moment is one interval, all of it.
      const [start, end] = moment.only ? [moment.only.start, moment.only.start + moment.only.wall] : [from, to];
      const waited = waits
        ? await page.ask("waitRows", { ...everywhere, ...listed, threads, from: start, to: end }, timeless(page))
        : null;
      // Starts are stored in microseconds: a neighbour may seem to overlap it.
      if (moment.only && waited && waited.rows.length > 1) waited.rows = waited.rows.filter(({ wall }) => wall > slack);
      return [moment, waited];
    };
    this.moments.ask(key, ask, ([moment, waited]) => {
      if (this.key === key) use(moment, waited, from, to);
    });
  }

  // Also drops questions without an answer yet.
  away(): void {
    this.key = "";
    this.page.tip(null, 0, 0);
  }

  // `row`: under the pointer, if any; `x`: pixels from the left edge of the plot.
  hover(where: string, row: TimelineRow | undefined, x: number, { clientX, clientY }: MouseEvent): void {
    const { page, answers } = this;
    const { from } = this.look.sight();
    if (where === "marks") {
      const near = this.marks.filter((mark) => Math.abs((mark.time - from) / this.look.perPixel() - x) <= markSlack);
      this.key = "marks";
      return page.tip(near.length ? marksTip(near) : null, clientX, clientY);
    }
    if (!row || !answers.made) return this.away();
    if (row.kind === "folded") {
      this.key = "folded";
      return page.tip(foldedTip(page, row, answers.waits), clientX, clientY);
    }
    if (row.kind === "process") return this.away();
    if (where === "gutter") {
      this.key = "thread";
      return page.tip(
        row.kind === "thread" && answers.shown ? threadTip(page, row.thread, answers.shown, row.busiest) : null,
        clientX,
        clientY,
      );
    }
    this.askMoment(row, from + x * this.look.perPixel(),
      (moment, waited, start, end) =>
        page.tip(momentTip(page, this.titleOf(row), start, end, moment, waited, this.traceAt(row, start, end)), clientX,
          clientY));
  }
}
