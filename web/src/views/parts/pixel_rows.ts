// Boxes too narrow for text, drawn as pixels. Drawn one by one, thousands in a row cost a canvas milliseconds each
// time, and boxes in the same pixel overwrite each other. Here a row is an image one pixel high.
import { Coverage } from "../../layout/coverage";

export class PixelRows {
  private coverage = new Coverage(1);
  private scale = 1;
  private tops: number[] = [];
  private heights: number[] = [];
  private readonly canvas = document.createElement("canvas");

  // `width`: in canvas units of `scale` device pixels each.
  start(width: number, scale: number): void {
    const pixels = Math.max(1, Math.round(width * scale));
    if (this.coverage.width === pixels) this.coverage.clear();
    else this.coverage = new Coverage(pixels);
    this.scale = scale;
    [this.tops, this.heights] = [[], []];
  }

  // Starts a new row for the boxes that follow.
  row(y: number, height: number): void {
    this.tops.push(y);
    this.heights.push(height);
    this.coverage.row();
  }

  // `colour`: from rgbOf().
  add(x: number, width: number, colour: number, alpha: number): void {
    this.coverage.add(x * this.scale, width * this.scale, colour, alpha);
  }

  paint(pen: CanvasRenderingContext2D): void {
    const { canvas, coverage: { width, rows }, scale } = this;
    if (!rows) return;
    if (canvas.width !== width || canvas.height < rows) {
      canvas.width = width;
      canvas.height = Math.max(rows, canvas.height);
    }
    const mine = canvas.getContext("2d") as CanvasRenderingContext2D;
    const image = mine.createImageData(width, rows);
    this.coverage.write(image.data);
    mine.putImageData(image, 0, 0);
    pen.globalAlpha = 1;
    pen.imageSmoothingEnabled = false;
    for (let row = 0; row < rows; ++row)
      pen.drawImage(canvas, 0, row, width, 1, 0, this.tops[row], width / scale, this.heights[row]);
  }
}

const known = new Map<string, number>();

// A colour of the style sheet ("#rgb", "#rrggbb" or "rgb(r, g, b)") as one number: red, green, blue.
export function rgbOf(text: string): number {
  let colour = known.get(text);
  if (colour === undefined) {
    const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text)?.[1];
    const digits = hex?.length === 3 ? Array.from(hex, (digit) => digit + digit).join("") : hex;
    const [red, green, blue] = digits
      ? [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16))
      : (text.match(/[\d.]+/g) ?? []).map(Number);
    known.set(text, colour = ((red || 0) << 16) | ((green || 0) << 8) | (blue || 0));
  }
  return colour;
}
