// What a view is, gets and gives. A view is one file in this folder and one line in registry.ts; web/README.md tells how to
// write one. Views know the state and the model's answers, and nothing of each other.
import { CallTree } from "../model/call_tree";
import { Catalogue } from "../model/catalogue";
import { Query } from "../model/filters";
import { Matches } from "../model/questions/matches";
import { AnswerOf, ArgumentsOf, QuestionName } from "../model/questions";
import { By } from "../model/head";
import { Amount } from "../model/selection";
import { Label } from "../model/tree";
import { State } from "../state/state";
import { SvgPen } from "./parts/svg_pen";

export interface MenuItem {
  text: string;
  run(): void;
}

// A key of the keyboard, listed by "?". `on`: as KeyboardEvent.key says it, such as "ArrowUp", "n", "N".
export interface Key {
  on: string;
  shown: string; // in the list: "↑"
  meaning: string; // empty: belongs to the entry before
  run(): void;
}

// What a view draws, to be saved as a file: all of it, beyond what is scrolled to.
export interface Picture {
  what: string; // "flame graph"
  words: string; // what is to be said of it beside the choices that hold for every view; "": nothing
  width: number;
  height: number;
  legend: [string, string][]; // CSS variables or colours, and what they mean
  draw(pen: SvgPen): void | Promise<void>;
}

// What the page does for views.
export interface Page {
  readonly catalogue: Catalogue;
  readonly state: State; // at this moment
  readonly matches: Matches | null; // what the search finds; null: nothing is searched
  readonly shown: Amount | null; // of what everything is the whole; null: not known yet
  labels(by: By): Label[]; // by id
  shape(by: By): Promise<CallTree>; // of the whole recording; answers of "column" are over it
  ask<N extends QuestionName>(name: N, args: ArgumentsOf<N>, query?: Query): Promise<AnswerOf<N>>; // query: the state's
  change(part: Partial<State>, how?: "step" | "aside"): void;
  fill(label: Label): string; // a colour of the canvas, for this label, in this light
  changeFill(step: number): string; // of a difference: -5 shrank most, 5 grew most, 0 not seen to differ
  colour(name: string): string; // of a CSS variable: colour("--ink")
  tip(content: Node | null, x: number, y: number): void; // beside the pointer, in pixels of the window; null: away with it
  readonly tipped: Node | null; // what it shows
  menu(items: MenuItem[], x: number, y: number): void;
  frameItems(by: By, path: number[]): MenuItem[]; // what can be done with a frame: filter, exclude, copy; path: labels, root first
  drawn(): void; // told by a view when it has drawn what was asked for last
  say(text: string): void; // to whoever listens instead of looking
  copy(text: string): void;
}

export interface Showing {
  readonly element: HTMLElement;
  readonly keys?: Key[]; // while the view is in sight
  pictures?(): Picture[]; // as it is drawn now
  // Called when it comes into sight and whenever the state, the matches, the size of the window or the colours changed. It
  // may be called often and must not ask the same question twice: keep the key of what was asked last.
  show(): void;
}

export interface View {
  readonly name: string; // in the address
  readonly title: string; // on its button
  readonly place: "above" | "main"; // always there above the others, or one of those that are chosen from
  // Views whose own choices it looks at. When nothing but one view's own choices changed, only that one and those that follow it
  // are told.
  readonly follows?: readonly string[];
  // Whether a recording has anything for it: else it has no button. Without it: every recording has.
  isOffered?(catalogue: Catalogue): boolean;
  create(page: Page): Showing;
  // What it adds to the menu of a frame in every view: "Callers and callees". path: labels, root first.
  items?(page: Page, by: By, path: number[]): MenuItem[];
}
