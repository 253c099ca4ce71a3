// Pictures are drawn with a canvas or with this class. It has the part of a canvas that views use, and writes SVG with
// text that can be read, searched and copied. A canvas measures the text, so that it is truncated as on the page.

interface Settings {
  fillStyle: string;
  strokeStyle: string;
  lineWidth: number;
  globalAlpha: number;
  font: string;
  textAlign: "left" | "right" | "center";
  left: number; // the offset from translate()
  top: number;
  clips: number; // groups still to be closed
}

const number = (value: number) => String(Math.round(value * 100) / 100);

// XML cannot represent control characters and unpaired surrogates.
export const escapedXml = (text: string) =>
  text
    .replace(
      /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
      "\ufffd",
    )
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

export class SvgPen {
  fillStyle = "#000";
  strokeStyle = "#000";
  lineWidth = 1;
  globalAlpha = 1;
  font = "10px sans-serif";
  textAlign: Settings["textAlign"] = "left";
  textBaseline: CanvasTextBaseline = "middle"; // the only one supported
  private left = 0;
  private top = 0;
  private clips = 0;
  private readonly kept: Settings[] = [];
  private readonly parts: string[] = [];
  private readonly fonts = new Map<string, string>(); // its class
  private readonly measurer = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  private dashes = "";
  private path = "";
  private clipCount = 0;

  // ---- canvas interface -----------------------------------------------------------------------------------------
  save(): void {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, left, top, clips } = this;
    this.kept.push({ fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, left, top, clips });
    this.clips = 0;
  }

  restore(): void {
    this.parts.push("</g>".repeat(this.clips));
    const before = this.kept.pop();
    if (before) Object.assign(this, before);
  }

  translate(x: number, y: number): void {
    this.left += x;
    this.top += y;
  }

  beginPath(): void {
    this.path = "";
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${this.x(x)} ${this.y(y)}h${number(width)}v${number(height)}h${number(-width)}z`;
  }

  moveTo(x: number, y: number): void {
    this.path += `M${this.x(x)} ${this.y(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `L${this.x(x)} ${this.y(y)}`;
  }

  clip(): void {
    const id = `c${++this.clipCount}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`);
    ++this.clips;
  }

  fill(): void {
    this.parts.push(`<path d="${this.path}"${this.filled}/>`);
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.parts.push(`<rect${this.box(x, y, width, height)}${this.filled}/>`);
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    const dashes = this.dashes ? ` stroke-dasharray="${this.dashes}"` : "";
    this.parts.push(
      `<rect${this.box(x, y, width, height)} fill="none" stroke="${escapedXml(this.strokeStyle)}" stroke-width="${
        number(this.lineWidth)
      }"${dashes}${this.opacity}/>`,
    );
  }

  setLineDash(lengths: number[]): void {
    this.dashes = lengths.join(" ");
  }

  // Viewers disagree about the middle of a line, so the baseline is given in numbers.
  fillText(text: string, x: number, y: number): void {
    const size = Number(/(\d+(?:\.\d+)?)px/.exec(this.font)?.[1] ?? 12);
    const anchor = this.textAlign === "left" ? "" : ` text-anchor="${this.textAlign === "right" ? "end" : "middle"}"`;
    this.parts.push(
      `<text class="${this.fontClass()}" x="${this.x(x)}" y="${this.y(y + size * 0.35)}"${anchor}${this.filled}>${
        escapedXml(text)
      }</text>`,
    );
  }

  measureText(text: string): TextMetrics {
    if (this.measurer.font !== this.font) this.measurer.font = this.font;
    return this.measurer.measureText(text);
  }

  // ---- beyond the canvas interface ------------------------------------------------------------------------------
  // Until close(): one group, whose title viewers show as a tooltip.
  open(words: string): void {
    this.parts.push(`<g><title>${escapedXml(words)}</title>`);
  }

  close(): void {
    this.parts.push("</g>");
  }

  // Pixels as shapes of one colour each.
  pixels({ data, width, height }: ImageData, x: number, y: number, wide: number, high: number): void {
    const words = new Uint32Array(data.buffer);
    const shapes = new Map<number, string>();
    const [stepX, stepY] = [wide / width, high / height];
    for (const [colour, from, to, top, bottom] of rectangles(words, width, height)) {
      const d = `M${this.x(x + from * stepX)} ${this.y(y + top * stepY)}H${this.x(x + to * stepX)}V${
        this.y(y + bottom * stepY)
      }H${this.x(x + from * stepX)}z`;
      shapes.set(colour, (shapes.get(colour) ?? "") + d);
    }
    for (const [colour, d] of shapes) {
      const hex = [colour & 255, (colour >>> 8) & 255, (colour >>> 16) & 255].map((part) =>
        part.toString(16).padStart(2, "0")
      ).join("");
      this.parts.push(`<path d="${d}" fill="#${hex}" shape-rendering="crispEdges"/>`);
    }
  }

  // The whole file. `picture`: the bounds of the picture itself.
  file(width: number, height: number, title: string, paper: string, picture: number[]): string[] {
    const styles = Array.from(this.fonts, ([font, name]) => `.${name}{font:${font}}`).join("");
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${number(width)}" height="${number(height)}" viewBox="0 0 ${
        number(width)
      } ${number(height)}" role="img" data-picture="${picture.map(number).join(" ")}">`,
      `<title>${escapedXml(title)}</title><style>text{white-space:pre}${
        escapedXml(styles).replace(/&quot;/g, "\"")
      }</style>`,
      `<rect width="100%" height="100%" fill="${escapedXml(paper)}"/>`,
      ...this.parts,
      "</svg>\n",
    ];
  }

  // ---- writing SVG ----------------------------------------------------------------------------------------------
  private x(value: number): string {
    return number(this.left + value);
  }

  private y(value: number): string {
    return number(this.top + value);
  }

  private box(x: number, y: number, width: number, height: number): string {
    return ` x="${this.x(x)}" y="${this.y(y)}" width="${number(Math.max(0, width))}" height="${
      number(Math.max(0, height))
    }"`;
  }

  private get opacity(): string {
    return this.globalAlpha < 1 ? ` opacity="${number(this.globalAlpha)}"` : "";
  }

  private get filled(): string {
    return ` fill="${escapedXml(this.fillStyle)}"${this.opacity}`;
  }

  private fontClass(): string {
    let name = this.fonts.get(this.font);
    if (!name) this.fonts.set(this.font, name = `f${this.fonts.size}`);
    return name;
  }
}

export type Pen = CanvasRenderingContext2D | SvgPen;

// Pixels of one colour as [colour, from column, to column, from row, to row]: runs down each column, merged with equal
// neighbours. Transparent pixels are omitted.
function* rectangles(words: Uint32Array, width: number,
  height: number): Generator<[number, number, number, number, number]>
{
  let open = new Map<string, [number, number, number, number]>(); // from the previous column: colour, from column, rows
  for (let x = 0; x <= width; ++x) {
    const next: typeof open = new Map();
    for (let y = 0; x < width && y < height;) {
      const colour = words[y * width + x];
      const top = y;
      while (y < height && words[y * width + x] === colour) ++y;
      if (colour >>> 24) next.set(`${colour} ${top} ${y}`, [colour, x, top, y]);
    }
    for (const [key, [colour, from, top, bottom]] of open) {
      const goesOn = next.get(key);
      if (goesOn) goesOn[1] = from;
      else yield [colour, from, x, top, bottom];
    }
    open = next;
  }
}
