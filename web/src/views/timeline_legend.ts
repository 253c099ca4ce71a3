// The timeline's colours that occur, with the time of each.
import { button, element } from "../page/dom";
import { ThreadTotals } from "../model/questions/threads";
import { activities, activityWords } from "../model/states";
import { shareWords, weightWords } from "../words";
import { activityItems } from "./timeline_menu";
import { activityColours } from "./timeline_picture";
import { Page, Picture } from "./view";

function sumsOf(totals: ThreadTotals): Float64Array {
  const sums = new Float64Array(activities);
  totals.activity.forEach((ns, i) => {
    sums[i % activities] += ns;
  });
  return sums;
}

export function legendEntries(totals: ThreadTotals): Picture["legend"] {
  const sums = sumsOf(totals);
  return activityColours.map((colour, i): [string, string] => [colour, activityWords[i]]).filter((_, i) => sums[i] > 0);
}

export function timelineLegend(page: Page): { element: HTMLElement; show(totals: ThreadTotals): void } {
  const legend = element("span", { class: "legend", role: "group", "aria-label": "What threads did" });
  let shown = "";
  // Sums over all selected threads.
  function show(totals: ThreadTotals): void {
    const sums = sumsOf(totals);
    const key = sums.join();
    if (key === shown) return;
    shown = key;
    const sum = sums.reduce((a, b) => a + b, 0);
    const there = Array.from(sums.keys()).filter((activity) => sums[activity] > 0);
    const had = legend.childElementCount;
    const entries = there.map((activity) => {
      const swatch = element("i", {});
      swatch.style.background = `var(${activityColours[activity]})`;
      const entry = button("", (event) => {
        const box = entry.getBoundingClientRect();
        page.menu(activityItems(page, activity), event.clientX || box.left, event.clientY || box.bottom);
      }, { title: `${weightWords(sums[activity], "ns")}, ${shareWords(sums[activity], sum)} of all threads' time`,
        "data-activity": String(activity) });
      entry.append(swatch, activityWords[activity]);
      return entry;
    });
    // Keep the focus.
    if (had === entries.length && legend.contains(document.activeElement)) return;
    legend.replaceChildren(...entries);
  }
  return { element: legend, show };
}
