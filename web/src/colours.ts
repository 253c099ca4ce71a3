// Which colour class a box gets: by its package or module, so that the same code has the same colour in every picture, on
// every machine. exporters/flame_colours.cpp computes the same; the fills are in flame.css. No DOM.
import { isInterpreter, Kind, Label } from "./model/tree";

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
  const family = label.kind === Kind.native && !isInterpreter(label.module) ? "n" : "p";
  return family + pick(label.module, hues) + "abc"[pick(label.name, 3)];
}

// Of a difference: "r1" to "r5" for a share that grew, "b1" to "b5" for one that shrank, "d0" for neither.
export function differenceClass(step: number): string {
  return step === 0 ? "d0" : (step > 0 ? "r" : "b") + Math.abs(step);
}
