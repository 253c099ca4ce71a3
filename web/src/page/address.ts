// The window's address, as the store reads and writes it.
import { Address } from "../state/store";

// Browsers limit changes: Safari refuses the 101st within thirty seconds, Chromium drops some of two hundred.
const apart = 350; // ms between changes that are not history entries of their own, such as those of a wheel zoom

export function windowAddress(): Address {
  let waiting: string | null = null; // the fragment to be written
  let timer = 0;
  let written = -Infinity; // when it was last written
  const url = (fragment: string) => (fragment ? `#${fragment}` : window.location.pathname + window.location.search);
  const settle = () => {
    window.clearTimeout(timer);
    timer = 0;
    if (waiting === null) return;
    window.history.replaceState(null, "", url(waiting));
    waiting = null;
    written = performance.now();
  };
  // Back and Forward start from the current address; the pending change belonged to the entry being left.
  for (const event of ["popstate", "hashchange"])
    window.addEventListener(event, () => {
      waiting = null;
    });
  window.addEventListener("pagehide", settle);
  return {
    read: () => window.location.hash,
    write: (fragment, step) => {
      if (step) {
        settle();
        window.history.pushState(null, "", url(fragment));
        return;
      }
      waiting = fragment;
      if (performance.now() - written > apart) settle();
      else if (!timer) timer = window.setTimeout(settle, apart);
    },
    settle,
  };
}
