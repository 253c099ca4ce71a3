// The arrow keys of a view, one entry in the list of keys.
import { Key } from "../view";

export const arrowKeys = (meaning: string, run: (key: string) => void): Key[] =>
  ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].map((on, i) => ({
    on,
    shown: i ? "" : "← → ↑ ↓",
    meaning: i ? "" : meaning,
    run: () => run(on),
  }));
