// The tooltip of the frame under the pointer, placed so that it can be read.
import { Kind, labelOf, placeOf } from "../model/tree";
import { html, svgElement } from "./elements";
import { Facts } from "./facts";
import { State } from "./fragment";

// The visible part of the picture.
export interface Sight {
  left: number;
  top: number;
  width: number;
  height: number;
}

export class Tip {
  private readonly words = html("div", "tip");
  readonly element = svgElement("foreignObject", { class: "tipbox", id: "tip", visibility: "hidden", width: 10,
    height: 10 }, this.words);

  constructor(private readonly facts: Facts) {
    this.words.setAttribute("role", "status");
  }

  show(state: State, node: number, x: number, y: number, sight: Sight): void {
    this.fill(state, node);
    const { element } = this;
    // Maximum size first, so that the text takes what it needs before it is measured.
    element.setAttribute("width", String(Math.min(580, sight.width)));
    element.setAttribute("height", "600");
    const { width, height } = this.words.getBoundingClientRect();
    let left = Math.min(x + 14, sight.left + sight.width - width - 8);
    let upper = y + 18;
    if (upper + height > sight.top + sight.height - 4) upper = y - height - 12;
    left = Math.max(left, sight.left + 4);
    upper = Math.max(upper, sight.top + 4);
    element.setAttribute("x", String(left));
    element.setAttribute("y", String(upper));
    element.setAttribute("width", String(Math.ceil(width) + 24));
    element.setAttribute("height", String(Math.ceil(height) + 24));
    element.setAttribute("visibility", "visible");
  }

  readonly hide = (): void => this.element.setAttribute("visibility", "hidden");

  private fill(state: State, node: number): void {
    const label = labelOf(this.facts.tree, node);
    this.words.replaceChildren(html("div", "name", label.full));
    const library = label.kind === Kind.native ? label.module : "";
    const where = [library, placeOf(label)].filter((word) => word).join(": ");
    if (where) this.words.append(html("div", "place", where));
    const table = html("table");
    for (const { cells, className } of this.facts.rowsOf(state, node)) {
      const row = html("tr", "", ...cells.map((cell) => html("td", "", cell)));
      if (className !== undefined) row.setAttribute("class", className);
      table.append(row);
    }
    this.words.append(table);
  }
}
