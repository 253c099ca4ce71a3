// Assembles head, views and model, and passes each change to the views that it affects. The same script runs in the
// model's worker.
import { labelsOf } from "../model/catalogue";
import { CallTree } from "../model/call_tree";
import { Catalogue } from "../model/catalogue";
import { Filter, Query } from "../model/filters";
import { By, Head, weightsOf } from "../model/head";
import { AnswerOf, ArgumentsOf, QuestionName } from "../model/questions";
import { Matches } from "../model/questions/matches";
import { Amount } from "../model/selection";
import { Label } from "../model/tree";
import { runWorker } from "../model/worker";
import { parseFragment } from "../state/fragment";
import { initialState, State, withFilter } from "../state/state";
import { Store } from "../state/store";
import { Latest } from "../views/parts/latest";
import { views } from "../views/registry";
import { Key, MenuItem, Page, Picture, Showing, View } from "../views/view";
import { windowAddress } from "./address";
import { Client } from "./client";
import { Choice, choice, element, setAttribute } from "./dom";
import { Fills } from "./fills";
import { Menu, Tip } from "./floating";
import { filterMenu } from "./filter_menu";
import { frameItems } from "./frame_items";
import { Header } from "./header";
import { download, fileName, svgOf } from "./saved";

const mains = views.filter((view) => view.place === "main");

class Assembly implements Page {
  matches: Matches | null = null;
  shown: Amount | null = null;
  private readonly labelLists = new Map<By, Label[]>();
  private readonly shapes = new Map<By, Promise<CallTree>>();
  private readonly showings = new Map<View, Showing>();
  private readonly fills = new Fills(() => this.showViews());
  private readonly tipBox = new Tip();
  private readonly menuBox = new Menu();
  private readonly help = element("div", { class: "help", hidden: true });
  private readonly spoken = element("div", { class: "spoken", "aria-live": "polite" });
  private readonly above = element("div", "above");
  private readonly main = element("main");
  private readonly header: Header;
  private readonly offered: View[]; // main views
  private readonly switcher: Choice<string>;
  private readonly totals = new Latest<{ shown: Amount; recorded: Amount }>();
  private readonly finding = new Latest<Matches | null>();
  private recorded: Amount | null = null;
  private pending = 0;
  private willShow = false;
  private concerned: string | null = null; // the view to be shown; null: all

  constructor(readonly catalogue: Catalogue, private readonly client: Client, private readonly store: Store) {
    this.header = new Header(catalogue, {
      change: (part, how) => this.change(part, how),
      copyAddress: () => {
        store.settle();
        this.copy(window.location.href);
      },
      filterMenu: (x, y) => {
        const set = (filter: Filter) => this.change(withFilter(this.state, filter));
        this.menu(filterMenu(catalogue, set, (items) => this.menu(items, x, y)), x, y);
      },
      saveMenu: (x, y) => this.menu(this.saveItems(), x, y),
      toggleHelp: () => this.toggleHelp(),
      next: (step) => this.runKey(step > 0 ? "n" : "N"),
    });
    this.offered = mains.filter((view) => view.isOffered?.(catalogue) ?? true);
    this.switcher = choice("Views", this.offered.map((view) => [view.name, view.title] as const),
      (view) => this.change({ view }));
    const bar = element("nav", { class: "views", "aria-label": "Views" }, this.switcher.element);
    this.header.element.append(this.help);
    document.body.append(this.header.element, this.above, bar, this.main, this.tipBox.element, this.menuBox.element,
      this.spoken);
    for (const view of views) if (view.place === "above") this.above.append(this.showing(view).element);
    store.listen((state, before) => {
      if (state.inherited !== before.inherited && catalogue.inherits) {
        store.settle();
        window.location.reload();
        return;
      }
      this.show(changedBy(state, before));
    });
    window.addEventListener("resize", () => this.showViews());
    // Elements above it may grow: a timeline with more rows, the list of keys.
    new ResizeObserver(() => this.showViews()).observe(this.main);
    window.addEventListener("popstate", () => store.returned());
    window.addEventListener("hashchange", () => store.returned());
    window.addEventListener("keydown", (event) => this.key(event));
    this.show();
  }

  get state(): State {
    return this.store.state;
  }

  private get query(): Query {
    return { filters: this.state.filters, show: this.state.show };
  }

  labels(by: By): Label[] {
    let labels = this.labelLists.get(by);
    if (!labels) this.labelLists.set(by, labels = labelsOf(this.catalogue, by));
    return labels;
  }

  shape(by: By): Promise<CallTree> {
    let shape = this.shapes.get(by);
    if (!shape) this.shapes.set(by, shape = this.ask("shape", { by }));
    return shape;
  }

  ask<N extends QuestionName>(name: N, args: ArgumentsOf<N>, query: Query = this.query): Promise<AnswerOf<N>> {
    this.busy(1);
    const answer = this.client.ask(name, query, args);
    // Only after the caller has drawn the answer, in the next frame at the latest.
    const done = () => this.soon(() => void setTimeout(() => this.busy(-1)));
    answer.then(done, (error: Error) => {
      done();
      complain(error);
    });
    return answer;
  }

  // In the next frame; a hidden page has none.
  private soon(run: () => void): void {
    if (document.hidden) setTimeout(run);
    else requestAnimationFrame(run);
  }

  private busy(more: number): void {
    this.pending += more;
    setAttribute(document.body, "aria-busy", String(this.pending > 0));
  }

  change(part: Partial<State>, how?: "step" | "aside"): void {
    this.store.change(part, how);
  }

  fill(label: Label): string {
    return this.fills.of(label);
  }

  changeFill(step: number): string {
    return this.fills.ofChange(step);
  }

  colour(name: string): string {
    return this.fills.variable(name);
  }

  tip(content: Node | null, x: number, y: number): void {
    this.tipBox.show(content, x, y);
  }

  get tipped(): Node | null {
    return this.tipBox.content;
  }

  menu(items: MenuItem[], x: number, y: number): void {
    this.menuBox.open(items, x, y);
  }

  frameItems(by: By, path: number[]): MenuItem[] {
    if (!path.length) return [];
    const ours = frameItems({
      catalogue: this.catalogue,
      labels: (which) => this.labels(which),
      filter: (filter) => this.change(withFilter(this.state, filter)),
      search: (search) => this.change({ search }),
      copy: (text) => this.copy(text),
    }, by, path);
    return [...ours, ...views.flatMap((view) => view.items?.(this, by, path) ?? [])];
  }

  drawn(): void {
    performance.mark("phlox drawn");
  }

  say(text: string): void {
    this.spoken.textContent = text;
  }

  copy(text: string): void {
    const said = () => this.say("copied");
    const byHand = () => {
      // A page from disk may be refused the clipboard; selecting a field always works.
      const field = element("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
      said();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(said, byHand);
    else byHand();
  }

  // ---- saving ---------------------------------------------------------------------------------------------------
  private saveItems(): MenuItem[] {
    const inSight = [this.current, ...views.filter((view) => view.place === "above")];
    const pictures = inSight.flatMap((view) => this.showing(view).pictures?.() ?? []);
    return [
      ...pictures.map((picture) => ({ text: `Picture of the ${picture.what} (SVG)`,
        run: () => void this.savePicture(picture) })
      ),
      ...this.stackItems(),
    ];
  }

  // For two recordings one item each, unless one is chosen already.
  private stackItems(): MenuItem[] {
    const { recordings } = this.catalogue;
    const sides = recordings.length > 1 && !this.state.filters.some((filter) => filter.field === "recording")
      ? recordings
      : [null];
    return sides.flatMap((side, i): MenuItem[] => {
      const state = side
        ? { ...this.state, ...withFilter(this.state, { field: "recording", mode: "in", values: [i] }) }
        : this.state;
      const of = side ? ` of ${side.name}` : "";
      return [
        { text: `Collapsed stacks${of}, for flame graph scripts`, run: () => void this.saveStacks("collapsed", state) },
        { text: `Threads in the order of time${of}, for speedscope`,
          run: () => void this.saveStacks("speedscope", state) },
      ];
    });
  }

  private async savePicture(picture: Picture): Promise<void> {
    const { catalogue, state } = this;
    const around = { catalogue, state, whole: this.header.wholeWords, found: this.header.foundWords,
      colour: (name: string) => this.colour(name) };
    this.save(fileName(catalogue, state, picture.what, ".svg"), await svgOf(picture, around), "image/svg+xml");
  }

  private async saveStacks(format: "collapsed" | "speedscope", state: State): Promise<void> {
    const { by, weight, filters, show } = state;
    const args = { by, weight, title: this.catalogue.head.title };
    const text = await this.ask(format, args, { filters, show });
    const collapsed = format === "collapsed";
    this.save(
      fileName(this.catalogue, state, collapsed ? "stacks" : "threads",
        collapsed ? ".collapsed.txt" : ".speedscope.json"),
      text,
      collapsed ? "text/plain" : "application/json",
    );
  }

  private save(name: string, parts: string[], type: string): void {
    download(name, parts, type);
    this.say(`saved ${name}`);
  }

  // ---- showing --------------------------------------------------------------------------------------------------
  private showing(view: View): Showing {
    let showing = this.showings.get(view);
    if (!showing) this.showings.set(view, showing = view.create(this));
    return showing;
  }

  private get current(): View {
    return this.offered.find((view) => view.name === this.state.view) ?? mains[0];
  }

  // `only`: the view whose own choice changed, which affects no other.
  private show(only: string | null = null): void {
    const { state } = this;
    this.header.show(state);
    this.switcher.show(this.current.name);
    const { element: wanted } = this.showing(this.current);
    if (this.main.firstElementChild !== wanted) {
      this.main.replaceChildren(wanted);
      this.tip(null, 0, 0); // its frame is gone
    }
    this.totals.ask(JSON.stringify(this.query), () => this.ask("totals", {}), (totals) => {
      this.shown = totals.shown;
      this.recorded = totals.recorded;
      this.showNumbers();
      this.showViews();
    });
    const search =
      () => (this.state.search ? this.ask("matches", { pattern: this.state.search }) : Promise.resolve(null));
    this.finding.ask(JSON.stringify([this.query, state.search]), search, (matches) => {
      this.matches = matches;
      this.showNumbers();
      this.showViews();
    });
    this.showNumbers();
    this.showViews(only);
  }

  private showNumbers(): void {
    if (this.shown && this.recorded) this.header.showTotals(this.state, this.shown, this.recorded);
    this.header.showMatches(this.state, this.state.search ? this.matches : null, this.shown);
  }

  // At most once a frame. `only`: the view of this name, and those that follow it.
  private showViews(only: string | null = null): void {
    this.concerned = this.willShow && this.concerned !== only ? null : only;
    if (this.willShow) return;
    this.willShow = true;
    this.busy(1);
    this.soon(() => {
      this.willShow = false;
      setTimeout(() => this.busy(-1));
      const { concerned } = this;
      for (const view of views) {
        const inSight = view.place === "above" || view === this.current;
        if (inSight && (concerned === null || view.name === concerned || view.follows?.includes(concerned)))
          this.showing(view).show();
      }
    });
  }

  // ---- keys -----------------------------------------------------------------------------------------------------
  private get keys(): Key[] {
    const inSight = views.filter((view) => view.place === "above" || view === this.current);
    const ours: Key[] = [
      { on: "/", shown: "/  Ctrl-F",
        meaning: "search; there Enter and Shift-Enter go to the next and previous match, Esc ends it",
        run: () => this.header.input.select() },
      ...this.offered.map((view, i) => ({ on: String(i + 1), shown: String(i + 1),
        meaning: `view: ${view.title.toLowerCase()}`, run: () => this.change({ view: view.name }) })
      ),
      { on: "f", shown: "f", meaning: "filter by thread, process, language or state",
        run: () => this.header.openFilters() },
      { on: "S", shown: "S", meaning: "save what is shown: a picture, collapsed stacks, speedscope",
        run: () => this.header.openSave() },
      { on: "?", shown: "?", meaning: "these keys", run: () => this.toggleHelp() },
    ];
    // If several define a key, the last wins: the main view before those above it, a view before the page.
    return [...ours, ...inSight.flatMap((view) => this.showing(view).keys ?? [])];
  }

  private runKey(on: string): boolean {
    const key = this.keys.reverse().find((one) => one.on === on);
    key?.run();
    return key !== undefined;
  }

  private key(event: KeyboardEvent): void {
    const command = event.ctrlKey || event.metaKey;
    if (event.altKey || (command && event.key !== "f")) return;
    const { target } = event;
    const inField = target instanceof Element && target.closest("input, textarea, select, [role=menu]") !== null;
    // Buttons and summaries keep their own Enter and Space.
    const inButton = target instanceof Element && target.closest("button, summary") !== null;
    if (inField || (inButton && (event.key === "Enter" || event.key === " "))) return;
    if (event.key === "Escape" && !this.help.hidden) {
      this.toggleHelp();
      event.preventDefault();
    } else if (this.runKey(command ? "/" : event.key)) {
      event.preventDefault();
    }
  }

  private toggleHelp(): void {
    this.help.hidden = !this.help.hidden;
    const shown = this.keys.filter((key) => key.shown);
    this.help.replaceChildren(
      ...shown.map((key) => element("div", {}, element("kbd", {}, key.shown), ` ${key.meaning}`)),
    );
    this.showViews();
  }
}

// The one view whose own choices are all that changed; null: more changed.
function changedBy(state: State, before: State): string | null {
  const { own, ...rest } = state;
  const { own: ownBefore, ...restBefore } = before;
  if (JSON.stringify(rest) !== JSON.stringify(restBefore)) return null;
  const changed = Object.keys({ ...own, ...ownBefore }).filter((key) => own[key] !== ownBefore[key]).map((key) =>
    key.slice(0, key.indexOf("."))
  );
  // A choice that several views share ("colour") belongs to no single view.
  return new Set(changed).size === 1 && views.some((view) => view.name === changed[0]) ? changed[0] : null;
}

function complain(error: Error): void {
  const box = document.querySelector(".failure") ?? element("p", { class: "failure", role: "alert" });
  box.textContent = `This page cannot be shown: ${error.message}`;
  document.body.prepend(box);
}

const text = (id: string) => {
  const found = document.getElementById(id);
  const content = found?.textContent ?? "";
  found?.remove(); // ten megabytes, needed only once
  return content;
};

async function start(): Promise<void> {
  const head = JSON.parse(text("phlox-head")) as Head;
  document.body.setAttribute("aria-busy", "true");
  const script = (document.getElementById("phlox-script") as HTMLElement).textContent ?? "";
  const client = await Client.start(script);
  // Changing this choice changes every stack and number, so the page is reloaded with its current address.
  const { inherited } = parseFragment(window.location.hash, initialState(head, ""), weightsOf(head));
  const catalogue = await client.open(head, text("phlox-columns"), inherited);
  // Two recordings are opened to see their difference.
  const first = catalogue.recordings.length > 1 ? "difference" : mains[0].name;
  new Assembly(catalogue, client, new Store(initialState(head, first), windowAddress(), weightsOf(head)));
}

if (typeof document === "undefined") runWorker(globalThis as unknown as Parameters<typeof runWorker>[0]);
else start().catch(complain);
