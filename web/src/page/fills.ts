// Colours for canvases, read from the style sheet, which defines them once for SVG and page, light and dark.
import { colourClass, differenceClass, hues } from "../colours";
import { Label } from "../model/tree";

export class Fills {
  private readonly fills = new Map<string, string>();
  private readonly variables = new Map<string, string>();
  private byLabel = new WeakMap<Label, string>(); // finding a class hashes two names
  private readonly classes: string[] = ["m", "k"];

  // `changed`: called when the theme switches between dark and light.
  constructor(changed: () => void) {
    for (let hue = 0; hue < hues; ++hue) {
      for (const tint of "abc") this.classes.push(`p${hue}${tint}`, `n${hue}${tint}`);
    }
    for (let step = -5; step <= 5; ++step) this.classes.push(differenceClass(step));
    this.read();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.read();
      changed();
    });
  }

  private read(): void {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    svg.setAttribute("hidden", "");
    const boxes = this.classes.map((name) => {
      const box = document.createElementNS(space, "rect");
      box.setAttribute("class", name);
      svg.append(box);
      return box;
    });
    document.body.append(svg);
    boxes.forEach((box, i) => this.fills.set(this.classes[i], getComputedStyle(box).fill));
    svg.remove();
    this.variables.clear();
    this.byLabel = new WeakMap();
  }

  of(label: Label): string {
    let fill = this.byLabel.get(label);
    if (fill === undefined) this.byLabel.set(label, fill = this.fills.get(colourClass(label)) as string);
    return fill;
  }

  ofChange(step: number): string {
    return this.fills.get(differenceClass(step)) as string;
  }

  variable(name: string): string {
    let value = this.variables.get(name);
    if (value === undefined)
      this.variables.set(name, value = getComputedStyle(document.body).getPropertyValue(name).trim());
    return value;
  }
}
