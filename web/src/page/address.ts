// The address of the window, as the store reads and writes it.
import { Address } from "../state/store";

// Browsers bear no more: Safari refuses the hundred-and-first change within thirty seconds, Chromium drops some of two hundred.
const apart = 350; // ms between changes that are no steps of their own, such as those of a zoom while a wheel turns

export function windowAddress(): Address {
  let waiting: string | null = null; // the fragment that will stand there
  let timer = 0;
  let written = -Infinity; // when
  const url = (fragment: string) => (fragment ? `#${fragment}` : window.location.pathname + window.location.search);
  const settle = () => {
    window.clearTimeout(timer);
    timer = 0;
    if (waiting === null) return;
    window.history.replaceState(null, "", url(waiting));
    waiting = null;
    written = performance.now();
  };
  // Back and Forward go from what stands there; the change that waited belonged to the step that is left.
  for (const event of ["popstate", "hashchange"]) window.addEventListener(event, () => { waiting = null; });
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
