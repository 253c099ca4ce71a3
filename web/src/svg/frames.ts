// The frames as elements: boxes with as much of their names as fits. Positions rows; boxes come from the layout, texts
// from the facts.
import { Box, Layout, roundPixels } from "../layout/flame";
import { Found } from "../model/search";
import { labelOf } from "../model/tree";
import { countWords, fitName } from "../words";
import { html, svgElement } from "./elements";
import { Facts } from "./facts";
import { View } from "./fragment";

export const rowHeight = 18; // as in exporters/svg.cpp
export const margin = 10;
const textMargin = 4;

// Text widths in the font of the frames.
export class TextWidths {
  private readonly context = html("canvas").getContext("2d") as CanvasRenderingContext2D;
  private readonly known = new Map<string, number>();
  private font = "";

  // Style sheets may change the font at any time.
  follow(svg: SVGSVGElement): void {
    const probe = svgElement("g", { class: "b" }, svgElement("text"));
    svg.append(probe);
    const font = getComputedStyle(probe.firstElementChild as Element).font;
    probe.remove();
    if (font === this.font) return;
    this.font = font;
    this.context.font = font;
    this.known.clear();
  }

  readonly measure = (text: string): number => {
    let width = this.known.get(text);
    if (width === undefined) {
      width = this.context.measureText(text).width;
      this.known.set(text, width);
    }
    return width;
  };
}

// The position of a drawn layout's rows.
export interface Place {
  drawn: Layout;
  view: View;
  top: number; // top of the frames
}

export function yOf(place: Place, row: number): number {
  return place.top + (place.view === "flame" ? place.drawn.rows - 1 - row : row) * rowHeight;
}

export class Frames {
  readonly element = svgElement("g", { id: "frames" });
  readonly cursorBox = svgElement("rect", { class: "cursor", rx: 2, visibility: "hidden" });

  constructor(private readonly facts: Facts, private readonly widths: TextWidths) {}

  draw(place: Place, found: Found, pageWide: number): void {
    const { drawn } = place;
    const parts = document.createDocumentFragment();
    for (const box of drawn.ancestors) parts.append(this.boxElement(place, found, box, true));
    if (drawn.skipped) {
      const y = yOf(place, drawn.skipped.row);
      parts.append(
        svgElement(
          "g",
          { class: "skip", "data-n": drawn.skipped.node },
          svgElement("rect", { x: margin, y: y + 2, width: pageWide - 2 * margin, height: rowHeight - 5,
            "pointer-events": "all" }),
          svgElement("text", { x: pageWide / 2, y: y + 13 }, `${countWords(drawn.skipped.frames)} frames between`),
        ),
      );
    }
    for (const box of drawn.boxes) parts.append(this.boxElement(place, found, box, false));
    this.element.replaceChildren(parts);
  }

  private boxElement(place: Place, found: Found, box: Box, above: boolean): SVGElement {
    const { tree } = this.facts;
    const hit = found.labels[tree.label[box.node]];
    const group = svgElement("g", { class: `b${above ? " above" : ""}${hit ? " hit" : ""}`, "data-n": box.node });
    const x = roundPixels(margin + box.x);
    const width = roundPixels(box.width >= 2 ? box.width - 0.5 : box.width);
    const y = yOf(place, box.row);
    const rectangle = svgElement("rect", { class: this.facts.classOf(box.node), x, y, width, height: rowHeight - 1 });
    if (box.width >= 8) rectangle.setAttribute("rx", "2");
    group.append(rectangle);
    const { name, full } = labelOf(tree, box.node);
    const text = fitName(name, full, box.width - 2 * textMargin, this.widths.measure);
    if (text) group.append(svgElement("text", { x: roundPixels(x + textMargin), y: y + 12.5 }, text));
    return group;
  }

  placeCursor(place: Place, box: Box | undefined): void {
    this.cursorBox.setAttribute("visibility", box ? "visible" : "hidden");
    if (!box) return;
    this.cursorBox.setAttribute("x", String(roundPixels(margin + box.x)));
    this.cursorBox.setAttribute("y", String(yOf(place, box.row)));
    this.cursorBox.setAttribute("width", String(Math.max(2, roundPixels(box.width - 0.5))));
    this.cursorBox.setAttribute("height", String(rowHeight - 1));
  }

  // -1: no frame.
  nodeAt(target: EventTarget | null): number {
    const group = target instanceof Element ? target.closest("[data-n]") : null;
    return group && this.element.contains(group) ? Number(group.getAttribute("data-n")) : -1;
  }
}
