// Colours of flame graph frames, with their legend: by module, language or self time. One choice for all flame graphs
// of the page.
import { choice, element } from "../../page/dom";
import { Language, languageOf, languages } from "../../model/languages";
import { Label } from "../../model/tree";
import { own, withOwn } from "../../state/state";
import { Page, Picture } from "../view";

type By = "module" | "language" | "heat";
const titles: [By, string][] = [["module", "Module"], ["language", "Language"], ["heat", "Self time"]];
const steps = 5;

const colourBy = (page: Page): By =>
  titles.find(([value]) => value === own(page.state, "colour", "by"))?.[0] ?? "module";
const variableOf = (language: Language) => `--lang-${language.toLowerCase().replace("++", "pp")}`;
// A square root keeps warm frames visible next to hot ones.
const heatStep = (part: number) => (part <= 0 ? 0 : Math.min(steps, Math.max(1, Math.ceil(Math.sqrt(part) * steps))));

// The fill of every node. `self`: self time of each.
export function fills(page: Page, tree: { label: Uint32Array }, labels: Label[],
  self: Float64Array): (node: number) => string
{
  const by = colourBy(page);
  if (by === "module") return (node) => page.fill(labels[tree.label[node]]);
  if (by === "language") return (node) => page.colour(variableOf(languageOf(labels[tree.label[node]])));
  const hottest = self.reduce((most, value, node) => (node ? Math.max(most, value) : most), 0);
  return (node) => page.colour(`--heat-${node && hottest > 0 ? heatStep(self[node] / hottest) : 0}`);
}

export function colourBar(page: Page): { element: HTMLElement; show(): void; legend(): Picture["legend"] } {
  const chosen = choice<By>("Colour", titles,
    (by) => page.change(withOwn(page.state, "colour", "by", by === "module" ? "" : by), "aside"));
  const legend = element("span", "legend");
  const known = new Set<Language>(page.catalogue.functions.language.slice(1));
  const chip = (variable: string, text: string) => {
    const box = element("i", "swatch");
    box.style.background = page.colour(variable);
    return element("span", {}, box, text);
  };
  const entries = (): Picture["legend"] => {
    const by = colourBy(page);
    if (by === "language") return languages.filter((one) => known.has(one)).map((one) => [variableOf(one), one]);
    return by === "heat"
      ? [["--heat-0", "nothing in its own code"], ["--heat-3", "a third of the hottest"], ["--heat-5", "the hottest"]]
      : [];
  };
  return {
    element: element("span", "colours", "Colour by", chosen.element, legend),
    show: () => {
      chosen.show(colourBy(page));
      legend.replaceChildren(...entries().map(([variable, text]) => chip(variable, text)));
    },
    legend: entries,
  };
}
