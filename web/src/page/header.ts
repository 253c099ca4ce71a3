// The page's head, always visible: what was recorded and how reliable it is, the choices that apply to every view, the
// filters, the search.
import { Catalogue } from "../model/catalogue";
import { eventOf, Head, Incident, isAwait, unitOf, Weight, weightName, weightsOf } from "../model/head";
import { Matches } from "../model/questions/matches";
import { Amount } from "../model/selection";
import { Show } from "../model/tree";
import { State, withoutFilter, withOwn } from "../state/state";
import { countWords, shareWords, timeWords, weightWords } from "../words";
import { button, Choice, choice, element, setContent, setText } from "./dom";
import { filterWords } from "./filter_words";

const amountWords = (head: Head, amount: Amount, weight: Weight) => weightWords(amount[weight], unitOf(head, weight));

const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

const showMeanings: Record<Show, string> = {
  work: "What threads compute, and their waiting, but for that of threads that have nothing to do",
  computing: "While threads ran, or would have, had they had a CPU or the GIL",
  waiting: "While threads were blocked",
  everything: "All time of all threads",
};

const inheritedMeanings: Record<"hidden" | "shown", string> = {
  hidden: "Stacks of forked children begin where they were forked",
  shown: "Stacks of forked children have the frames that their parent had at the fork; its functions count them in",
};

interface Actions {
  change(part: Partial<State>, how?: "step" | "aside"): void;
  copyAddress(): void;
  filterMenu(x: number, y: number): void;
  saveMenu(x: number, y: number): void;
  toggleHelp(): void;
  next(step: 1 | -1): void;
}

// What the choice "work" omits, and what it includes although it may be idle.
function leftOutWords({ leftOut, notKnown }: Head): string {
  const said = leftOut ? [`Not shown: ${leftOut}; “Everything” has it.`] : [];
  if (notKnown) said.push(`Waiting, idle or at work not known: ${notKnown}.`);
  return said.join(" ");
}

// One line, to leave room for the views: a recording may have several loops, a pair twice as many. The others appear
// when it is opened.
function folded(lines: (Node | string)[][], which: string, title: string): Node[] {
  if (!lines.length) return [];
  const [first, ...others] = lines;
  if (!others.length) return [element("p", which, ...first)];
  const more = element("span", "more", `and ${countWords(others.length)} more`);
  return [
    element("details", "loops", element("summary", { title }, element("span", which, ...first), more),
      ...others.map((line) => element("p", which, ...line))),
  ];
}

const aroundIncident = 1e9; // ns, shown on either side

export class Header {
  readonly element: HTMLElement;
  readonly input = element("input", {
    type: "search",
    placeholder: "Search (regex)   /",
    spellcheck: "false",
    "aria-label": "Search",
    title:
      "A regular expression, looked for in module.name; file:… looks in files, module:… in modules. Capitals make case count.",
  });
  private readonly found = element("span", { class: "found", "aria-live": "polite" });
  private readonly whole = element("span", "whole");
  private readonly chips = element("div", { class: "chips", role: "list", "aria-label": "Filters" });
  private readonly shows: Choice<Show>;
  private readonly leftOut = element("p", { class: "left-out", hidden: true });
  private readonly weights: Choice<Weight>;
  private readonly bys: Choice<"function" | "line">;
  private readonly inherited: Choice<"hidden" | "shown">;
  private readonly filter = button("Filter…", () => this.openFilters(), { "aria-haspopup": "menu",
    title: "By thread, process, language or state; by function and module in the menu of a frame (f)" });
  private readonly save = button("Save…", () => this.openSave(), { "aria-haspopup": "menu",
    title: "What is shown as a picture (SVG), as collapsed stacks or for speedscope (S)" });
  private state: State | null = null;

  constructor(private readonly catalogue: Catalogue, private readonly actions: Actions) {
    const { head } = catalogue;
    this.shows = choice<Show>("What is shown", [["work", "Work"], ["computing", "Computing"], ["waiting", "Waiting"], [
      "everything",
      "Everything",
    ]], (show) => actions.change({ show }), showMeanings);
    // The name of an event is as in perf.
    const called = (weight: Weight) =>
      eventOf(weight) && !isAwait(head, weight) ? weightName(head, weight) : capital(weightName(head, weight));
    this.weights = choice<Weight>("What counts", weightsOf(head).map((weight) => [weight, called(weight)]),
      (weight) => actions.change({ weight }));
    this.bys = choice<"function" | "line">("What a frame is", [["function", "Functions"], ["line", "Lines"]],
      (by) => actions.change({ by }));
    this.inherited = choice<"hidden" | "shown">("Frames that forked children inherited", [["hidden",
      "From the fork on"], ["shown", "With inherited frames"]],
      (value) => actions.change({ inherited: value === "shown" }), inheritedMeanings);
    this.inherited.element.hidden = !catalogue.inherits;
    this.input.addEventListener("input", () => actions.change({ search: this.input.value }, "aside"));
    this.input.addEventListener("keydown", (event) => this.searchKey(event));
    const help = button("?", () => actions.toggleHelp(), { title: "Keys (?)", "aria-label": "Keys" });
    const link = button("Copy link", () => actions.copyAddress(), {
      title: "The address of exactly this view, for whoever has the same file",
    });
    const bad = head.warning !== "" || head.unfinished;
    const words = element("div", "words", element("h1", { title: head.title }, head.title),
      element("p", "subtitle", head.subtitle));
    const quality = element("p", "quality",
      element("span", { class: bad ? "dot bad" : "dot", role: "img", "aria-label": bad ? "take care" : "good" }),
      head.quality.join(" — "));
    this.element = element("header", "head",
      element("div", "top", words, element("div", "tools", this.input, link, this.save, help)), quality);
    if (head.warning) this.element.append(element("p", { class: "warning", role: "note" }, `⚠ ${head.warning}`));
    if (head.merged)
      this.element.append(element("p", { class: "warning merged", role: "note" }, mergedWords(catalogue)));
    this.element.append(
      ...folded(head.incidents.map((incident) => this.incidentLine(incident)), "incident loop-words",
        "Why this recording was written"),
    );
    this.element.append(
      ...folded(head.loops.map((words) => [capital(words)]), "loop-words",
        "Event loops, and pools without a worker to spare"),
    );
    this.element.append(
      element("div", "choices", this.shows.element, this.weights.element, this.bys.element, this.inherited.element,
        this.filter, this.whole, this.found),
      this.leftOut,
      this.chips,
    );
  }

  private incidentLine({ time, kind, words }: Incident): (Node | string)[] {
    const see = (event: MouseEvent) => {
      event.preventDefault(); // of the summary that it may be in
      const [from, to] = [time - aroundIncident, time + aroundIncident].map(Math.round);
      this.actions.change(withOwn(this.state as State, "timeline", "zoom", `${from}-${to}`));
    };
    return [
      button(`Incident at ${timeWords(time, aroundIncident / 100)}`, see, {
        title: "Show this moment in the timeline",
      }),
      ` ${kind}: ${words}`,
    ];
  }

  openFilters(): void {
    const box = this.filter.getBoundingClientRect();
    this.actions.filterMenu(box.left, box.bottom);
  }

  openSave(): void {
    const box = this.save.getBoundingClientRect();
    this.actions.saveMenu(box.left, box.bottom);
  }

  // The displayed text of the whole and of the search results.
  get wholeWords(): string {
    return this.whole.textContent ?? "";
  }

  get foundWords(): string {
    return this.found.textContent ?? "";
  }

  private searchKey(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape") {
      this.actions.change({ search: "" }, "aside");
      this.input.value = "";
      this.input.blur();
    } else if (event.key === "Enter") {
      this.actions.next(event.shiftKey ? -1 : 1);
    } else if (event.key === "f" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.input.select();
    }
  }

  show(state: State): void {
    const before = this.state;
    this.state = state;
    this.shows.show(state.show);
    const left = aboutWeight(this.catalogue.head, state) ||
      (state.show === "work" ? leftOutWords(this.catalogue.head) : "");
    this.leftOut.hidden = !left;
    setText(this.leftOut, left);
    this.weights.show(state.weight);
    this.bys.show(state.by);
    this.inherited.show(state.inherited ? "shown" : "hidden");
    if (document.activeElement !== this.input) this.input.value = state.search;
    if (before?.filters !== state.filters) this.showChips(state);
  }

  private showChips(state: State): void {
    this.chips.replaceChildren(...state.filters.map((filter, i) => {
      const words = filterWords(this.catalogue, filter);
      const remove = () => this.actions.change(withoutFilter(this.state as State, i));
      return element("span", { class: `chip ${filter.mode}`, role: "listitem" },
        element("span", { title: words }, words),
        button("×", remove, { "aria-label": `Take back: ${words}`, title: "Take this filter back" }));
    }));
    if (state.filters.length > 1)
      this.chips.append(button("Take all back", () => this.actions.change({ filters: [] }), { class: "all" }));
    this.chips.hidden = state.filters.length === 0;
  }

  showTotals(state: State, shown: Amount, recorded: Amount): void {
    const { weight } = state;
    const { head } = this.catalogue;
    const amount = amountWords(head, shown, weight);
    const part = ` of ${amountWords(head, recorded, weight)}: ${shareWords(shown[weight], recorded[weight])} of ${
      this.catalogue.recordings.length > 1 ? "both recordings" : "the recording"
    }`;
    const whose = isAwait(head, weight) ? "tasks" : "threads";
    const all = weight === "samples"
      ? " of all threads"
      : ` ${unitOf(head, weight) === "bytes" ? "of " : ""}${weightName(head, weight)} of all ${whose}`;
    const words = (shown[weight] !== recorded[weight] ? part : all) +
      (weight === "wall" || weight === "cpu" ? `, ${countWords(shown.samples)} samples` : "");
    setContent(this.whole, amount + words, () => [element("b", {}, amount), words]);
  }

  showMatches(state: State, matches: Matches | null, shown: Amount | null): void {
    this.input.classList.toggle("bad", matches !== null && matches.error !== "");
    this.found.replaceChildren();
    if (!matches) return;
    if (matches.error) {
      this.found.append("Not a regular expression");
      return;
    }
    const share = shown ? shareWords(matches.amount[state.weight], shown[state.weight]) : "";
    this.found.append("Matched ", element("b", {}, share),
      `, ${amountWords(this.catalogue.head, matches.amount, state.weight)}, in ${countWords(matches.count)} ${
        matches.count === 1 ? "function" : "functions"
      }`);
  }
}

// What is to be known of await time; empty: it is not the weight.
function aboutWeight(head: Head, { weight, filters }: State): string {
  if (!isAwait(head, weight)) return "";
  if (filters.some(({ field }) => field === "time" || field === "trace"))
    return "Await time is known for the whole recording, not for a part of it: take the filter by time or trace back.";
  return "How long the tasks of event loops waited, all together, in the whole recording; sampled. Timeline, flame chart and waits show threads.";
}

function mergedWords(catalogue: Catalogue): string {
  const merged = catalogue.head.merged as NonNullable<typeof catalogue.head.merged>;
  const sizes = `${countWords(merged.stretchesBefore)} intervals became ${countWords(merged.stretchesAfter)}`;
  const time = `Merged to fit ${(merged.limit / 1e6).toFixed(0)} MB: within ${
    weightWords(merged.window, "ns")
  } of a thread's time the order is lost (${sizes}).`;
  if (!merged.rareShare) return time;
  const share = shareWords(merged.rareShare, 1);
  return `${time} Stacks with less than ${share} of the time lack their inner frames: ${
    weightWords(merged.cutWall, "ns")
  } in all.`;
}
