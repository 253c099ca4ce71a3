// The interface between views and the page. A view is one file in this folder and one line in registry.ts;
// web/README.md explains how to write one. Views know the state and the model's answers, and nothing of each other.
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

// A keyboard key, listed by "?". `on`: as in KeyboardEvent.key, such as "ArrowUp", "n", "N".
export interface Key {
  on: string;
  shown: string; // in the list: "↑"
  meaning: string; // empty: belongs to the previous entry
  run(): void;
}

// A drawing to be saved as a file: all of it, not only the visible part.
export interface Picture {
  what: string; // "flame graph"
  words: string; // text in addition to the choices common to all views; "": nothing
  width: number;
  height: number;
  legend: [string, string][]; // CSS variables or colours, and what they mean
  draw(pen: SvgPen): void | Promise<void>;
}

// The page's services for views.
export interface Page {
  readonly catalogue: Catalogue;
  readonly state: State; // current
  readonly matches: Matches | null; // what the search finds; null: no search
  readonly shown: Amount | null; // the whole that shares refer to; null: not known yet
  labels(by: By): Label[]; // by id
  shape(by: By): Promise<CallTree>; // of the whole recording; answers of "column" refer to it
  // `query`: default from the state.
  ask<N extends QuestionName>(name: N, args: ArgumentsOf<N>, query?: Query): Promise<AnswerOf<N>>;
  change(part: Partial<State>, how?: "step" | "aside"): void;
  fill(label: Label): string; // the canvas colour of this label in the current theme
  changeFill(step: number): string; // for a difference: -5 shrank most, 5 grew most, 0 no certain difference
  colour(name: string): string; // of a CSS variable: colour("--ink")
  tip(content: Node | null, x: number, y: number): void; // next to the pointer, in pixels of the window; null: hide
  readonly tipped: Node | null; // the tooltip's content
  menu(items: MenuItem[], x: number, y: number): void;
  // Menu items of a frame: filter, exclude, copy. `path`: labels, root first.
  frameItems(by: By, path: number[]): MenuItem[];
  drawn(): void; // called by a view once it has drawn its last answer
  say(text: string): void; // to screen readers
  copy(text: string): void;
}

export interface Showing {
  readonly element: HTMLElement;
  readonly keys?: Key[]; // while the view is visible
  pictures?(): Picture[]; // as currently drawn
  // Called when the view becomes visible and whenever the state, the matches, the window size or the colours change. It
  // may be called often and must not repeat a question: keep the key of the last one.
  show(): void;
}

export interface View {
  readonly name: string; // in the address
  readonly title: string; // on its button
  readonly place: "above" | "main"; // always visible above the others, or one of those to choose from
  // Views whose own choices this one depends on. If only one view's own choices change, only that view and those that
  // follow it are shown again.
  readonly follows?: readonly string[];
  // Whether a recording has data for this view; otherwise it has no button. Default: always.
  isOffered?(catalogue: Catalogue): boolean;
  create(page: Page): Showing;
  // Items for the menu of a frame in every view: "Callers and callees". path: labels, root first.
  items?(page: Page, by: By, path: number[]): MenuItem[];
}
