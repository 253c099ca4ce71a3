// The waits of a frame in its tooltip, requested when it is pointed at.
import { everywhere, Where, WaitRows } from "../../model/questions/wait_rows";
import { Page } from "../view";
import { OneAtATime } from "./one_at_a_time";
import { listed, waitList } from "./wait_words";

export class HoverWaits {
  private readonly asking = new OneAtATime<WaitRows>();
  private known: { key: string; waited: WaitRows } | null = null;

  constructor(private readonly page: Page) {}

  // Returns nothing until the answer arrives and `came` is called. `key`: what the answer depends on besides `where`.
  of(key: string, where: Partial<Where>, came: () => void): Node[] {
    const asked = JSON.stringify([key, where]);
    if (this.known?.key === asked) return waitList(this.page, this.known.waited);
    this.asking.ask(asked, () => this.page.ask("waitRows", { ...everywhere, ...listed, ...where }), (waited) => {
      this.known = { key: asked, waited };
      came();
    });
    return [];
  }
}
