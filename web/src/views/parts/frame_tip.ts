// The tooltip of a frame in a flame graph: its name, its place, and facts.
import { element, factTable } from "../../page/dom";
import { Kind, Label, placeOf } from "../../model/tree";

export function frameTip(label: Label, facts: [string, ...string[]][]): HTMLElement {
  const tip = element("div", {}, element("div", "name", label.full));
  const place = [label.kind === Kind.native ? label.module : "", placeOf(label)].filter((text) => text).join(": ");
  if (place) tip.append(element("div", "place", place));
  tip.append(factTable(facts));
  return tip;
}
