// The colour class of a box, from its package or module: the same code has the same colour in every picture and on
// every machine. exporters/flame_colours.cpp computes the same classes; the fills are in flame.css. No DOM.
import { isInterpreter, Kind, Label } from "./model/tree";

export const hues = 20; // the palette in flame.css

// FNV-1a over UTF-8: small, and identical in C++ and TypeScript.
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0;
  return value;
}

// For short, similar names FNV's low bits are close together, so mix in the upper half.
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

// For a difference: "r1" to "r5" for a share that grew, "b1" to "b5" for one that shrank, "d0" for no change.
export function differenceClass(step: number): string {
  return step === 0 ? "d0" : (step > 0 ? "r" : "b") + Math.abs(step);
}
