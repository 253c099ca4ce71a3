// A tooltip beside something that a view drew, under the pointer or the keyboard cursor.
import { Page } from "../view";

export class HoverTip<At> {
  private told: { at: At; x: number; y: number; words: Node } | null = null;

  constructor(private readonly page: Page, private readonly wordsOf: (at: At) => Node) {}

  tell(at: At, x: number, y: number): void {
    const words = this.wordsOf(at);
    this.told = { at, x, y, words };
    this.page.tip(words, x, y);
  }

  // Shows more text, unless another view's tooltip has replaced this one.
  again(): void {
    const { told } = this;
    if (told && told.words === this.page.tipped) this.tell(told.at, told.x, told.y);
  }

  away(): void {
    this.told = null;
    this.page.tip(null, 0, 0);
  }
}
