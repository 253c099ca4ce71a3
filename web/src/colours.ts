// Which colour class a box gets: by its package or module, so that the same code has the same colour in every picture, on
// every machine. exporters/flame_colours.cpp computes the same; the fills are in flame.css. No DOM.
import { Kind, Label } from "./tree";

export const hues = 20; // of the palette in flame.css

// FNV-1a over UTF-8: small, and the same in both languages.
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}

// FNV's low bits of short, similar names lie close together; the upper half decides as well.
function pick(text: string, choices: number): number {
  const value = hash(text);
  return ((value >>> 16) ^ (value & 0xffff)) % choices;
}

export function colourClass(label: Label): string {
  if (label.kind === Kind.marker) return "m";
  if (label.kind === Kind.kernel) return "k";
  const family = label.kind === Kind.native ? "n" : "p";
  return family + pick(label.module, hues) + "abc"[pick(label.name, 3)];
}

// Of a difference, by how much a share grew (+) or shrank (-): "r1".."r5" and "b1".."b5", "d0" for no change to speak of.
// `change` and `scale` are shares of a whole recording. A square root keeps small changes visible beside one big one.
export function differenceClass(change: number, scale: number): string {
  const size = scale > 0 ? Math.sqrt(Math.min(Math.abs(change) / scale, 1)) : 0;
  const step = Math.ceil(size * 5 - 0.5);
  if (step <= 0) return "d0";
  return (change > 0 ? "r" : "b") + step;
}
