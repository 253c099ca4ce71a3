// Menu items of a frame, the same in every view.
import { Catalogue, functionOf } from "../model/catalogue";
import { Filter, Mode } from "../model/filters";
import { By } from "../model/head";
import { Kind, Label, placeOf } from "../model/tree";
import { MenuItem } from "../views/view";

interface Doer {
  catalogue: Catalogue;
  labels(by: By): Label[];
  filter(filter: Filter): void;
  search(text: string): void;
  copy(text: string): void;
}

// A search pattern for exactly this text.
export const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

export function frameItems(page: Doer, by: By, path: number[]): MenuItem[] {
  if (!path.length) return [];
  const labels = page.labels(by);
  const f = functionOf(page.catalogue, by, path[path.length - 1]);
  const label = page.labels("function")[f];
  const short = label.name.length > 60 ? `${label.name.slice(0, 59)}…` : label.name;
  const through = (mode: Mode) => () => page.filter({ field: "function", mode, values: [f] });
  const module = (mode: Mode) => () => page.filter({ field: "module", mode, values: [label.module] });
  const items: MenuItem[] = [
    { text: `Only stacks through ${short}`, run: through("in") },
    { text: `Without stacks through ${short}`, run: through("out") },
  ];
  if (label.module && label.kind !== Kind.marker) {
    items.push({ text: `Only stacks through module ${label.module}`, run: module("in") });
    items.push({ text: `Without stacks through module ${label.module}`, run: module("out") });
  }
  items.push({ text: `Search ${short}`, run: () => page.search(`^${escaped(label.full)}$`) });
  items.push({ text: "Copy the name", run: () => page.copy(label.full) });
  if (label.file)
    items.push({ text: "Copy file and line", run: () => page.copy(placeOf(labels[path[path.length - 1]])) });
  if (path.length > 1) {
    const lines = path.map((id) => `${labels[id].full}${labels[id].file ? ` (${placeOf(labels[id])})` : ""}`);
    items.push({ text: "Copy the stack, outermost first", run: () => page.copy(lines.join("\n")) });
  }
  return items;
}
