// Paints what threads did when: the strip of the whole recording, and the visible rows with a few around them. Asks the
// model for densities and keeps the pictures; timeline_picture positions them.
import { Sight } from "../layout/timeline";
import { rowThreads, TimelineRow } from "../layout/timeline_rows";
import { Query } from "../model/filters";
import { Densities } from "../model/questions/densities";
import { Latest } from "./parts/latest";
import { OneAtATime } from "./parts/one_at_a_time";
import { Band, rowHeight, strip, stripFull } from "./timeline_picture";
import { Page } from "./view";

const margin = 0.5; // of the visible range, requested in addition on both sides for drags

export const threadsOf = (row: TimelineRow) => (row.kind === "process" ? [] : rowThreads(row));
// ns that fill each row.
export const fullOf = (rows: TimelineRow[], binLength: number) =>
  rows.map((row) => binLength * Math.max(1, rowThreads(row).length));

export class TimelineBands {
  readonly strip = new Band();
  stripMost = 1;
  readonly rows = new Band();
  cpuRows: TimelineRow[] = [];
  private first = 0;
  private key = ""; // the rows in the picture
  private stripAsked = new Latest<Densities>();
  private rowsAsked = new OneAtATime<Densities & { numbers?: Uint32Array }>();

  constructor(private readonly page: Page, private readonly whole: Sight) {}

  askStrip(threads: number[], width: number, query: Query, then: () => void): void {
    const { page, whole } = this;
    const bins = Math.min(4000, width);
    this.stripAsked.ask(`${JSON.stringify(query)} ${bins} ${threads.length}`,
      () => page.ask("densities", { rows: [threads], busy: true, ...whole, bins }, query), ({ time }) => {
      const full = stripFull(time, bins, (whole.to - whole.from) / bins);
      this.stripMost = full / ((whole.to - whole.from) / bins);
      this.strip.paint(page, time, bins, [full], strip.height, whole);
      then();
    });
  }

  // `rows`: from number `first` on. With `cpus`, the answer determines the rows.
  askRows(
    { rows, first, cpus, sight, width }: { rows: TimelineRow[]; first: number; cpus: boolean; sight: Sight;
      width: number },
    query: () => Query,
    then: (cpusCame: boolean) => void,
  ): void {
    const { page, whole } = this;
    const extra = (sight.to - sight.from) * margin;
    const range = { from: Math.max(whole.from, sight.from - extra), to: Math.min(whole.to, sight.to + extra) };
    const scale = Math.min(2, window.devicePixelRatio || 1);
    const bins = Math.max(1, Math.round(((width * (range.to - range.from)) / (sight.to - sight.from)) * scale));
    const which = JSON.stringify([query(), cpus, rows]);
    const binLength = (range.to - range.from) / bins;
    this.rowsAsked.ask(`${which} ${first} ${range.from} ${range.to} ${bins}`, () => {
      if (cpus) return page.ask("cpus", { ...range, bins }, query());
      return page.ask("densities", { rows: rows.map(threadsOf), ...range, bins }, query());
    }, ({ time, numbers }) => {
      this.first = numbers ? 0 : first;
      this.key = JSON.stringify([cpus, numbers ? [] : rows]);
      if (numbers) this.cpuRows = Array.from(numbers, (cpu): TimelineRow => ({ kind: "cpu", cpu }));
      this.rows.paint(page, time, bins, fullOf(numbers ? this.cpuRows : rows, binLength), rowHeight - 2, range);
      then(numbers !== undefined);
    });
  }

  // Which of these rows is the picture's first; the number of rows if the picture has other rows.
  firstOf(rows: TimelineRow[], cpus: boolean): number {
    const fits = this.key === JSON.stringify([cpus, cpus ? [] : rows.slice(this.first, this.first + this.rows.rows)]);
    return fits ? this.first : rows.length;
  }

  // The colours changed: pictures are requested again, since their numbers are not kept.
  forget(): void {
    this.stripAsked = new Latest();
    this.rowsAsked = new OneAtATime();
    this.key = "";
  }
}
