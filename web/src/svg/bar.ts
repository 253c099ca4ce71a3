// The bar above the frames: title, search, buttons, and text about what is shown and omitted. It decides nothing: it
// reports presses to its owner.
import { Layout } from "../layout/flame";
import { Found, matchedWeight } from "../model/search";
import { Column, labelOf, Show } from "../model/tree";
import { countWords, fit, shareWords, weightWords } from "../words";
import { html, svgElement } from "./elements";
import { Facts } from "./facts";
import { State } from "./fragment";
import { fillLegend } from "./legend";

export interface Hands {
  reset(): void;
  turn(): void;
  swapWidths(): void;
  help(): void;
  show(show: Show): void;
  search(text: string): void;
}

const meanings: readonly (readonly [Show, string, string])[] = [
  ["work", "Work", "What threads compute, and their waiting, but for that of threads that have nothing to do"],
  ["computing", "Computing", "While threads ran, or would have, had they had a CPU or the GIL"],
  ["waiting", "Waiting", "While threads were blocked"],
  ["everything", "Everything", "All time of all threads"],
];

function labelled<E extends HTMLElement>(element: E, label: string): E {
  element.setAttribute("aria-label", label);
  return element;
}

function searchBox(): HTMLInputElement {
  const input = labelled(html("input"), "Search");
  input.type = "search";
  input.placeholder = "Search (regex)   /";
  input.title =
    "A regular expression, looked for in module.name; file:… looks in files, module:… in modules. Capitals make case count.";
  input.spellcheck = false;
  return input;
}

export class Bar {
  readonly input = searchBox();
  private readonly reset = html("button", "reset", "Reset zoom");
  private readonly turn = html("button", "turn");
  private readonly widths = html("button", "widths");
  private readonly help = labelled(html("button", "", "?"), "Keys");
  private readonly showButtons = new Map<Show, HTMLElement>();
  private readonly zoomWords = html("span", "zoomed");
  private readonly foundWords = html("span", "found");
  private readonly leftOutWords = html("p", "facts left-out");
  private readonly status = html("div", "status", this.zoomWords, this.foundWords);
  private readonly legend = html("span", "legend");
  private readonly helpBox = html("div", "help");
  private readonly bar: HTMLElement;
  readonly element: SVGForeignObjectElement;

  constructor(private readonly facts: Facts, private readonly hands: Hands) {
    const { picture, tree, difference } = facts;
    this.help.title = "Keys";
    this.status.setAttribute("aria-live", "polite");
    this.helpBox.hidden = true;
    const quality = html("p", "facts quality", html("span", picture.warning ? "dot bad" : "dot"),
      picture.quality.join(" — "));
    const words = html("div", "words", html("h1", "", picture.title), html("p", "", picture.subtitle));
    words.title = picture.title;
    const choices = [...(difference ? [this.widths] : []), ...(tree.shows ? [this.showGroup(tree.shows)] : [])];
    const tools = html("div", "tools", this.input, this.reset, ...choices, this.turn, this.help);
    this.bar = html("div", "bar", html("div", "top", words, tools), quality);
    if (picture.warning) this.bar.append(html("div", "warning", `⚠ ${picture.warning}`));
    this.bar.append(this.leftOutWords, this.status, this.helpBox);
    this.element = svgElement("foreignObject", { id: "bar", x: 0, y: 0, width: 100, height: 100 }, this.bar);
    this.fillHelp();
    this.reset.addEventListener("click", hands.reset);
    this.turn.addEventListener("click", hands.turn);
    this.widths.addEventListener("click", hands.swapWidths);
    this.help.addEventListener("click", hands.help);
    this.input.addEventListener("input", () => hands.search(this.input.value));
  }

  private fillHelp(): void {
    for (const [keys, meaning] of [
      ["← → ↑ ↓", "move from frame to frame"],
      ["Enter", "zoom into the frame"],
      ["Esc", "one step back"],
      ["Home", "reset the zoom"],
      ["/  Ctrl-F", "search"],
      ["n  N", "next, previous match"],
      ["i", "flame graph or icicle"],
      ["c", "copy the frame's name"],
      ...(this.facts.difference ? [["w", "widths by before or after"]] : []),
      ...(this.facts.tree.shows ? [["s", "show work, computing, waiting, everything"]] : []),
      ["?", "these keys"],
    ]) {
      this.helpBox.append(html("div", "", html("kbd", "", keys), ` ${meaning}`));
    }
  }

  private showGroup(shows: Record<Show, Column>): HTMLElement {
    const group = labelled(html("span", "shows"), "What is shown");
    group.setAttribute("role", "group");
    for (const [show, name, meaning] of meanings) {
      const button = html("button", "", name);
      button.title = `${meaning}: ${shareWords(shows[show].total[0], shows.everything.total[0])} of all time (s)`;
      button.addEventListener("click", () => this.hands.show(show));
      this.showButtons.set(show, button);
      group.append(button);
    }
    return group;
  }

  // The next choice, selected by the key.
  showAfter(show: Show): Show {
    const all = Array.from(this.showButtons.keys());
    return all[(all.indexOf(show) + 1) % all.length];
  }

  fillLegend(state: State): void {
    fillLegend(this.legend, this.facts, this.facts.column(state), this.hands.search);
    if (this.legend.childNodes.length) this.status.append(this.legend);
  }

  // `measure` returns the width of a text.
  show(state: State, found: Found, drawn: Layout, helpOpen: boolean, measure: (text: string) => number): void {
    const { facts } = this;
    this.reset.disabled = state.zoom === 0;
    this.turn.textContent = state.view === "flame" ? "Icicle" : "Flame graph";
    this.turn.title = state.view === "flame" ? "Root on top (i)" : "Root at the bottom (i)";
    this.widths.textContent = state.widths === "after" ? "Widths: after" : "Widths: before";
    this.widths.title = "Whose time makes the widths (w). Before shows what has vanished.";
    for (const [show, button] of this.showButtons)
      button.setAttribute("aria-pressed", String(show === facts.showing(state)));
    this.sayZoom(state, measure);
    this.sayFound(state, found);
    this.leftOutWords.textContent = facts.leftOut(state, drawn);
    this.leftOutWords.hidden = this.leftOutWords.textContent === "";
    this.helpBox.hidden = !helpOpen;
  }

  private sayZoom(state: State, measure: (text: string) => number): void {
    const { facts, zoomWords } = this;
    const column = facts.column(state);
    zoomWords.replaceChildren();
    if (!state.zoom) return;
    zoomWords.append("Zoomed into ", html("b", "", fit(labelOf(facts.tree, state.zoom).name, 420, measure)));
    zoomWords.append(
      `: ${shareWords(column.total[state.zoom], column.total[0])} of all, ${facts.weightOf(column, state.zoom)}`,
    );
  }

  private sayFound(state: State, found: Found): void {
    const { facts, foundWords } = this;
    const total = facts.column(state).total;
    foundWords.replaceChildren();
    this.input.classList.toggle("bad", found.error !== "");
    if (found.error) {
      foundWords.append("Not a regular expression");
    } else if (state.search) {
      const weight = matchedWeight(facts.tree, total, found, state.zoom);
      foundWords.append("Matched ", html("b", "", shareWords(weight, total[state.zoom])));
      foundWords.append(state.zoom ? " of the zoomed frame" : " of all",
        `, ${weightWords(weight, facts.picture.unit)}`);
      foundWords.append(
        ` in ${countWords(found.frames)} ${found.frames === 1 ? "different frame" : "different frames"}`,
      );
    }
  }

  // The height of the bar at that width.
  layOut(width: number): number {
    this.element.setAttribute("width", String(width));
    const height = Math.ceil(this.bar.getBoundingClientRect().height);
    this.element.setAttribute("height", String(height));
    return height;
  }

  height(): number {
    return this.bar.getBoundingClientRect().height;
  }
}
