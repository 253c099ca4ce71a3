// Text widths, measured by a canvas once per font and text: measuring is slow, and the same texts are drawn repeatedly.
import { Pen } from "./svg_pen";

const most = 20_000; // then all are dropped: a million frames have too many names to keep
const known = new Map<string, Map<string, number>>(); // by font

// In the pen's font.
export function textWidth(pen: Pen, text: string): number {
  let widths = known.get(pen.font);
  if (!widths) known.set(pen.font, widths = new Map());
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size >= most) widths.clear();
    widths.set(text, width = pen.measureText(text).width);
  }
  return width;
}

// A monospaced font: ASCII text, with or without a final "…", need not be measured.
export class Monospaced {
  readonly character: number;
  private readonly dots: number;

  // In the pen's current font.
  constructor(private readonly pen: Pen) {
    this.character = textWidth(pen, "0123456789") / 10;
    this.dots = textWidth(pen, "…");
  }

  readonly width = (text: string): number => {
    const plain = /^[\x20-\x7e]*(…?)$/.exec(text);
    if (!plain) return textWidth(this.pen, text);
    return plain[1] ? (text.length - 1) * this.character + this.dots : text.length * this.character;
  };
}
