// The two sides of a difference: chosen here, as filters, and kept as text for the address.
import { button, Choice, choice, element } from "../../page/dom";
import { Catalogue, processName } from "../../model/catalogue";
import { Filter } from "../../model/filters";
import { Sides } from "../../model/questions/difference";
import { ThreadTotals } from "../../model/questions/threads";
import { busyTimes } from "../../layout/timeline_rows";
import { filtersIn, formatFilter } from "../../state/fragment";
import { spanWords } from "../../words";
import { Page } from "../view";

export type Kind = "recordings" | "times" | "threads" | "processes";

const titles: Record<Kind, string> = { recordings: "Recordings", times: "Times", threads: "Threads",
  processes: "Processes" };

export interface Chosen {
  kind: Kind;
  sides: Sides;
  words: [string, string]; // short, for column heads: "before", "after"
  names: [string, string]; // in full
}

const second = 1e9;

export function possibleKinds(page: Page): Kind[] {
  const { recordings, threads, processes } = page.catalogue;
  const kinds: Kind[] = recordings.length > 1 ? ["recordings"] : [];
  kinds.push("times");
  if (threads.length > 1) kinds.push("threads");
  if (processes.length > 1) kinds.push("processes");
  return kinds;
}

// The two busiest in the whole recording, in list order: the first ones may be a master that sleeps.
export type Busiest = Record<"threads" | "processes", [number, number]>;

export function busiestTwo({ threads, processes }: Pick<Catalogue, "threads" | "processes">,
  totals: ThreadTotals): Busiest
{
  const byThread = busyTimes(totals);
  const byProcess = new Float64Array(processes.length);
  threads.forEach(({ process }, thread) => process >= 0 && (byProcess[process] += byThread[thread]));
  const two = (busy: Float64Array): [number, number] => {
    const [a = 0, b = 1] = Array.from(busy.keys()).sort((x, y) => busy[y] - busy[x] || x - y);
    return a < b ? [a, b] : [b, a];
  };
  return { threads: two(byThread), processes: two(byProcess) };
}

// The initial sides of a kind: halves of the time, both recordings, the two busiest threads or processes.
function first(page: Page, kind: Kind, busiest: Busiest): [Filter, Filter] {
  const { start, end } = page.catalogue;
  if (kind === "times") {
    const middle = Math.round((start + end) / 2);
    return [{ field: "time", mode: "in", from: start, to: middle }, { field: "time", mode: "in", from: middle,
      to: end + 1 }];
  }
  if (kind === "recordings")
    return [{ field: "recording", mode: "in", values: [0] }, { field: "recording", mode: "in", values: [1] }];
  const field = kind === "threads" ? "thread" : "process";
  const [a, b] = busiest[kind];
  return [{ field, mode: "in", values: [a] }, { field, mode: "in", values: [b] }];
}

const fieldOf: Record<Kind, Filter["field"]> = { recordings: "recording", times: "time", threads: "thread",
  processes: "process" };

export function chosenSides(page: Page, texts: [string, string], busiest: Busiest): Chosen {
  const kinds = possibleKinds(page);
  const read = texts.map((text) => filtersIn(text)[0] as Filter | undefined);
  const kind = kinds.find((one) => read.every((filter) => filter?.field === fieldOf[one])) ?? kinds[0];
  const [a, b] = read.every((filter) => filter?.field === fieldOf[kind])
    ? (read as [Filter, Filter])
    : first(page, kind, busiest);
  const name = (filter: Filter): string => {
    const { recordings, threads, processes } = page.catalogue;
    if (filter.field === "time") return spanWords(filter.from, filter.to);
    const id = Number(filter.values[0]);
    if (filter.field === "recording")
      return recordings[id]
        ? `${recordings[id].name}: ${recordings[id].title}`
        : "(none)";
    return (filter.field === "thread" ? threads[id]?.label : processes[id] && processName(processes[id])) ?? "(none)";
  };
  const words: [string, string] = kind === "recordings"
    ? [page.catalogue.recordings[recordingOf(a)]?.name ?? "", page.catalogue.recordings[recordingOf(b)]?.name ?? ""]
    : ["first", "second"];
  return { kind, sides: { before: [a], after: [b] }, words, names: [name(a), name(b)] };
}

const recordingOf = (filter: Filter) => (filter.field === "recording" ? filter.values[0] : 0);

// Milliseconds, and finer for short ranges.
export function secondsText(ns: number, length: number): string {
  const digits = Math.max(3, Math.min(9, Math.ceil(Math.log10((100 * second) / Math.max(1, length)))));
  return String(Number((ns / second).toFixed(digits)));
}

type TimeFilter = Filter & { field: "time" };

// The controls.
export class SidesBar {
  readonly element: HTMLElement;
  private readonly kinds: Choice<Kind>;
  private readonly room = element("span", "sides");
  private readonly swap = button("Swap", () => undefined, { title: "The first becomes the second" });
  private shown = "";

  // `set`: called with both sides as text.
  constructor(private readonly page: Page, busiest: () => Busiest,
    private readonly set: (a: string, b: string) => void)
  {
    this.kinds = choice<Kind>("What is compared", possibleKinds(page).map((kind) => [kind, titles[kind]] as const),
      (kind) => this.give(...first(page, kind, busiest())));
    this.element = element("div", "toolbar", "Compare", this.kinds.element, this.room, this.swap);
  }

  show({ kind, sides, names }: Chosen): void {
    this.kinds.show(kind);
    const [a] = sides.before;
    const [b] = sides.after;
    this.swap.onclick = () => this.give(b, a);
    const key = JSON.stringify(sides);
    if (key === this.shown) return;
    this.shown = key;
    this.room.replaceChildren(...this.controls(kind, a, b, names));
  }

  private give(a: Filter, b: Filter): void {
    this.set(formatFilter(a), formatFilter(b));
  }

  private controls(kind: Kind, a: Filter, b: Filter, names: [string, string]): (Node | string)[] {
    const { catalogue } = this.page;
    if (a.field === "time" && b.field === "time")
      return [range("First", a, (filter) => this.give(filter, b)), " against ",
        range("Second", b, (filter) => this.give(a, filter)), " ", this.ends()];
    if (kind === "recordings")
      return [element("b", { title: names[0] }, names[0]), " against ", element("b", { title: names[1] }, names[1])];
    const field = kind === "threads" ? "thread" : "process";
    const labels = kind === "threads"
      ? catalogue.threads.map((one) => one.label)
      : catalogue.processes.map(processName);
    const filter = (id: number): Filter => ({ field, mode: "in", values: [id] });
    const id = (one: Filter) => (one.field === "thread" || one.field === "process" ? one.values[0] : 0);
    return [select("First", labels, id(a), (value) => this.give(filter(value), b)), " against ",
      select("Second", labels, id(b), (value) => this.give(a, filter(value)))];
  }

  // Chooses the beginning and the end of the recording.
  private ends(): Node {
    const { start, end } = this.page.catalogue;
    const share = end - start >= 20 * second ? 0.5 : 0.1;
    const length = Math.round(Math.min(10 * second, (end - start) * share));
    const isTenth = share < 0.5 && (end - start) * share < 10 * second;
    return button(isTenth ? "First and last tenth" : "First and last 10 s",
      () =>
        this.give({ field: "time", mode: "in", from: start, to: start + length }, { field: "time", mode: "in",
          from: end - length, to: end + 1 }));
  }
}

function select(label: string, names: string[], at: number, choose: (id: number) => void): Node {
  const box = element("select", { "aria-label": label },
    ...names.map((name, id) => element("option", { value: id }, name)));
  box.value = String(at);
  box.addEventListener("change", () => choose(Number(box.value)));
  return box;
}

// `length`: of the range, which determines the digits needed to distinguish its ends.
function seconds(label: string, value: number, length: number, choose: (ns: number) => void): Node {
  const box = element("input", { type: "number", step: "any", min: 0, "aria-label": label,
    value: secondsText(value, length) });
  box.addEventListener("change", () => box.value !== "" && choose(Math.round(Number(box.value) * second)));
  return box;
}

function range(label: string, filter: TimeFilter, choose: (filter: Filter) => void): Node {
  const to = (from: number, until: number) => from < until && choose({ ...filter, from, to: until });
  const length = filter.to - filter.from;
  return element("span", { class: "range", role: "group", "aria-label": label },
    seconds(`${label}, from second`, filter.from, length, (from) => to(from, filter.to)), " to ",
    seconds(`${label}, to second`, filter.to, length, (until) => to(filter.from, until)), " s");
}
