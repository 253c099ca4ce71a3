// The tooltip of something that a view drew, under the pointer or the keyboard cursor.
import { Page } from "../view";

export class HoverTip<At> {
  private shown: { at: At; x: number; y: number; words: Node } | null = null;

  constructor(private readonly page: Page, private readonly wordsOf: (at: At) => Node) {}

  show(at: At, x: number, y: number): void {
    const words = this.wordsOf(at);
    this.shown = { at, x, y, words };
    this.page.tip(words, x, y);
  }

  // Shows more text, unless another view's tooltip has replaced this one.
  again(): void {
    const { shown } = this;
    if (shown && shown.words === this.page.tipped) this.show(shown.at, shown.x, shown.y);
  }

  away(): void {
    this.shown = null;
    this.page.tip(null, 0, 0);
  }
}
