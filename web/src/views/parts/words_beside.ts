// Words beside something that a view has drawn, under the pointer or the keyboard's cursor.
import { Page } from "../view";

export class WordsBeside<At> {
  private told: { at: At; x: number; y: number; words: Node } | null = null;

  constructor(private readonly page: Page, private readonly wordsOf: (at: At) => Node) {}

  tell(at: At, x: number, y: number): void {
    const words = this.wordsOf(at);
    this.told = { at, x, y, words };
    this.page.tip(words, x, y);
  }

  // There is more to say, if what was said is still in sight: another view may be by now.
  again(): void {
    const { told } = this;
    if (told && told.words === this.page.tipped) this.tell(told.at, told.x, told.y);
  }

  away(): void {
    this.told = null;
    this.page.tip(null, 0, 0);
  }
}
