// The visible time range, shared by the timeline and the views aligned with it, kept in the address as "timeline.zoom".
import { Sight, sightOf, sightText, wholeOf } from "../../layout/timeline";
import { own, withOwn } from "../../state/state";
import { Page } from "../view";

const gesture = 800; // ms without a change that end a gesture; Back undoes a whole gesture

export class InSight {
  readonly whole: Sight;
  private trail: string[] = []; // previous ranges, as in the address
  private changedAt = -Infinity;

  constructor(private readonly page: Page) {
    this.whole = wholeOf(page.catalogue);
  }

  private get text(): string {
    return own(this.page.state, "timeline", "zoom");
  }

  get now(): Sight {
    return sightOf(this.text, this.whole);
  }

  get isWhole(): boolean {
    return sightText(this.now, this.whole) === "";
  }

  // A gesture of many changes is one step for Back; `alone`: a step of its own.
  // `filters`: chosen in the same step.
  see(next: Sight, alone = false, filters = this.page.state.filters): void {
    const before = this.text;
    const text = sightText(next, this.whole);
    if (text === before && filters === this.page.state.filters) return;
    const now = performance.now();
    const step = alone || now - this.changedAt > gesture;
    this.changedAt = alone ? -Infinity : now;
    if (step) this.trail.push(before);
    this.page.tip(null, 0, 0);
    this.page.change({ filters, ...withOwn(this.page.state, "timeline", "zoom", text) }, step ? "step" : "aside");
  }

  back(): void {
    const before = this.trail.pop();
    if (before !== undefined) this.page.change(withOwn(this.page.state, "timeline", "zoom", before));
    else this.see(this.whole, true);
  }
}
