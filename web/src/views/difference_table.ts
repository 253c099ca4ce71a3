// The difference as a table: one row a function or line, with both sides, the change and the verdict.
import { functionOf } from "../model/catalogue";
import { DifferenceRows, Part, Which } from "../model/difference_rows";
import { By } from "../model/head";
import { Changes } from "../model/questions/difference";
import { Label, placeOf } from "../model/tree";
import { shareWords } from "../words";
import { capital, DifferenceWords } from "./difference_words";
import { numberColumn, RowTable, TableColumn, textColumn } from "./parts/row_table";
import { Page } from "./view";

// What is shown.
export interface Tabled {
  rows: DifferenceRows;
  labels: Label[];
  by: By;
  part: Part;
}

export class DifferenceTable {
  table: RowTable;
  private heads = ["first", "second"]; // of the sides
  private now: Tabled | null = null;

  constructor(private readonly page: Page, private readonly words: DifferenceWords,
    private readonly sort: (text: string) => void)
  {
    this.table = this.make("first", "second");
  }

  show(room: HTMLElement, now: Tabled, which: Which, heads: [string, string], sort: string): void {
    this.now = now;
    if (this.heads.join(" ") !== heads.join(" ")) this.table = this.make(...heads);
    this.heads = heads;
    if (room.firstElementChild !== this.table.element) room.replaceChildren(this.table.element);
    this.table.show(now.rows.rows(which), sort);
  }

  private get tabled(): Tabled {
    return this.now as Tabled;
  }

  private get changes(): Changes {
    return this.tabled.rows.found[this.tabled.part];
  }

  private make(first: string, second: string): RowTable {
    const { page } = this;
    return new RowTable("Difference", this.columns(first, second), {
      sort: this.sort,
      menu: (row, x, y) => page.menu(page.frameItems(this.tabled.by, [row]), x, y),
      choose: (row) => page.frameItems(this.tabled.by, [row])[0]?.run(),
      mark: (row) =>
        page.matches !== null && page.matches.functions[functionOf(page.catalogue, this.tabled.by, row)] === 1,
      dim: (row) => !this.changes.certain[row],
    });
  }

  private change(value: number): string {
    return this.words.change(value, this.tabled.rows.found.per);
  }

  private columns(first: string, second: string): TableColumn[] {
    const { words } = this;
    const interval = (row: number) => `${this.change(this.changes.low[row])} to ${this.change(this.changes.high[row])}`;
    const side = (side: "before" | "after", called: string) => {
      const value = (row: number) => this.changes[side][row];
      return [
        numberColumn(side, capital(called), `Share of all that is shown of ${called}`,
          (row) => this.tabled.rows.share(row, this.tabled.part, side),
          (row) => shareWords(value(row), this.tabled.rows.found[side].total)),
        numberColumn(`${side}-time`, "Time", `In ${called}`, value, (row) => words.time(value(row))),
      ];
    };
    return [
      numberColumn("size", "Change",
        "Of the time, or of the time in each second of recording: the greatest first, then what is not seen to differ",
        (row) => this.tabled.rows.size(row, this.tabled.part), (row) => this.change(this.changes.difference[row])),
      numberColumn("interval", "99 %", "99 % interval of the change", (row) => this.changes.low[row],
        (row) => (words.isAwait ? "-" : interval(row))),
      textColumn("verdict", "Verdict",
        "Whether these two differ by more than sampling makes in one of a hundred comparisons, and by more than a tenth; same: they do not; inconclusive: too few samples to say",
        (row) => this.tabled.rows.verdict(row, this.tabled.part)),
      ...side("before", first),
      ...side("after", second),
      textColumn("name", "Function", "By name", (row) => this.tabled.labels[row].full),
      textColumn("module", "Module", "Top package or module; native: the library",
        (row) => this.tabled.labels[row].module),
      textColumn("place", "Place", "File and line", (row) => placeOf(this.tabled.labels[row])),
    ];
  }
}
