// What floats above the page: the tooltip and the menu.
import { MenuItem } from "../views/view";
import { element } from "./dom";

const gap = 14; // pixels from the pointer

function placeNextTo(box: HTMLElement, x: number, y: number): void {
  const { width, height } = box.getBoundingClientRect();
  const below = y + gap + height <= window.innerHeight - 4;
  box.style.left = `${Math.max(4, Math.min(x + gap, window.innerWidth - width - 8))}px`;
  box.style.top = `${Math.max(4, below ? y + gap : y - gap - height)}px`;
}

export class Tip {
  readonly element = element("div", { class: "tip", role: "tooltip", hidden: true });
  content: Node | null = null; // null: hidden

  show(content: Node | null, x: number, y: number): void {
    this.content = content;
    this.element.hidden = content === null;
    if (!content) return;
    this.element.replaceChildren(content);
    placeNextTo(this.element, x, y);
  }
}

export class Menu {
  readonly element = element("div", { class: "menu", role: "menu", hidden: true });
  private before: Element | null = null; // had the focus

  constructor() {
    this.element.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.hidden && !this.element.contains(event.target as Node)) this.close();
    });
    window.addEventListener("blur", () => this.close());
  }

  open(items: MenuItem[], x: number, y: number): void {
    if (!items.length) return;
    if (this.element.hidden) this.before = document.activeElement;
    const rows = items.map((item) => {
      const row = element("button", { type: "button", role: "menuitem", tabindex: -1 }, item.text);
      row.addEventListener("click", () => {
        this.close();
        item.run();
      });
      return row;
    });
    this.element.replaceChildren(...rows);
    this.element.hidden = false;
    placeNextTo(this.element, x - gap, y - gap);
    rows[0].focus();
  }

  close(): void {
    if (this.element.hidden) return;
    this.element.hidden = true;
    if (this.before instanceof HTMLElement) this.before.focus();
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    const rows = Array.from(this.element.children) as HTMLElement[];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    const to: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1 + rows.length, Home: 0,
      End: rows.length - 1 };
    if (event.key === "Escape" || event.key === "Tab") this.close();
    else if (event.key in to) rows[to[event.key] % rows.length].focus();
    else return;
    event.preventDefault();
  }
}
