// What the timeline knows of threads: which there are, in which order, what they did, and where those that hardly ever
// run wait. Asks the model, keeps the answers, draws nothing.
import { Sight } from "../layout/timeline";
import { timelineRows, TimelineRows } from "../layout/timeline_rows";
import { Query } from "../model/filters";
import { Moment } from "../model/questions/moments";
import { ThreadTotals } from "../model/questions/threads";
import { Waits } from "../model/questions/waits";
import { Latest } from "./parts/latest";
import { Page } from "./view";

// Everything that threads do, including waiting for work, which is pale and does not disturb here. Times outside the
// time filters, and of a filter by trace, stay visible, dimmed.
export const timeless = (page: Page): Query => ({
  filters: page.state.filters.filter(({ field }) => field !== "time" && field !== "trace"),
  show: "everything",
});
const timed = (page: Page): Query => ({ filters: page.state.filters, show: "everything" });

export class TimelineAnswers {
  order: ThreadTotals | null = null; // regardless of time filters
  shown: ThreadTotals | null = null; // within the time filters
  made: TimelineRows | null = null;
  waits: Waits | null = null; // of the folded threads
  mostly: Moment | null = null; // of the busiest thread
  private orderFor = ""; // the question it answers
  private orderAsked: Promise<ThreadTotals> | null = null;
  private madeFor = "";
  private readonly asked = { order: new Latest<ThreadTotals>(), shown: new Latest<ThreadTotals>(),
    waits: new Latest<Waits>(), busiest: new Latest<Moment>() };

  // `came`: the times of threads arrived; `more`: so did the details for a sentence.
  constructor(private readonly page: Page, private readonly whole: Sight, private readonly came: () => void,
    private readonly more: () => void)
  {}

  // The order answers the current question.
  get isCurrent(): boolean {
    return this.order !== null && this.orderFor === JSON.stringify(timeless(this.page));
  }

  // The times to show; null: none has come.
  get totals(): ThreadTotals | null {
    return this.shown ?? this.order;
  }

  readonly cpuTime = (threads: number[]) =>
    threads.reduce((sum, thread) => sum + (this.totals as ThreadTotals).cpu[thread], 0);

  askTotals(): void {
    const { page } = this;
    const key = JSON.stringify(timeless(page));
    const timedKey = JSON.stringify(timed(page));
    this.asked.order.ask(key, () => (this.orderAsked = page.ask("threads", {}, timeless(page))), (totals) => {
      this.order = totals;
      this.orderFor = key;
      this.came();
    });
    this.asked.shown.ask(timedKey,
      () => (timedKey === key && this.orderAsked ? this.orderAsked : page.ask("threads", {}, timed(page))),
      (totals) => {
        this.shown = totals;
        this.came();
      });
  }

  // Call once there are rows.
  askPlaces({ rows, busiest }: TimelineRows): void {
    const { page, whole } = this;
    const folded = rows.find((row) => row.kind === "folded");
    if (folded?.kind === "folded") {
      this.asked.waits.ask(`${JSON.stringify(timeless(page))} ${folded.threads.length}`, () =>
        page.ask("waits", { threads: folded.threads }, timeless(page)), (answer) => {
        this.waits = answer;
        this.more();
      });
    }
    if (busiest >= 0) {
      this.asked.busiest.ask(`${JSON.stringify(timed(page))} ${busiest}`, () =>
        page.ask("moment", { threads: [busiest], ...whole, cpu: -1 }, timed(page)), (answer) => {
        this.mostly = answer;
        this.more();
      });
    }
  }

  // Makes rows from the current order. True: they changed.
  makeRows(open: boolean): boolean {
    const key = JSON.stringify([timeless(this.page), open]);
    if (!this.order || (key === this.madeFor && this.made)) return false;
    this.madeFor = key;
    this.made = timelineRows(this.page.catalogue, this.order, this.page.state.filters, open);
    return true;
  }
}
