// The modules with most self time, with their colours; for a difference, what the colours mean.
import { Column } from "../model/tree";
import { shareWords } from "../words";
import { html, svgElement } from "./elements";
import { Facts } from "./facts";

function chip(className: string, text: string): HTMLButtonElement {
  const swatch = svgElement("svg", { viewBox: "0 0 10 10" },
    svgElement("rect", { class: className, width: 10, height: 10, rx: 2 }));
  return html("button", "chip", swatch, text);
}

export function fillLegend(legend: HTMLElement, facts: Facts, columns: Column, find: (search: string) => void): void {
  legend.replaceChildren();
  if (facts.difference) {
    for (const [className, text] of [["b5", "less than before"], ["b2", ""], ["d0", "alike"], ["r2", ""], ["r5",
      "more than before"]])
    {
      legend.append(chip(className, text));
    }
    return;
  }
  for (const { module, self, className } of facts.greatestModules(columns, 6)) {
    const name = module.length > 24 ? module.slice(0, 23) + "…" : module;
    const button = chip(className, `${name} ${shareWords(self, columns.total[0])}`);
    button.title = `Time in the code of ${module} itself. Click to find it.`;
    button.addEventListener("click", () => find(`module:^${module.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`));
    legend.append(button);
  }
}
