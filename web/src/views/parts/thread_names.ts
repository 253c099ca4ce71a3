// Thread names for narrow places.
import { Catalogue } from "../../model/catalogue";

export const nameOf = (catalogue: Catalogue, thread: number) => catalogue.threads[thread].label.replace(/^Thread /, "");

const common = new WeakMap<Catalogue, Set<string>>(); // names shared by several threads

export function shortName(catalogue: Catalogue, thread: number): string {
  let several = common.get(catalogue);
  if (!several) {
    const names = catalogue.threads.map(({ name }) => name);
    common.set(catalogue, several = new Set(names.slice().sort().filter((name, i, all) =>
      i > 0 && name === all[i - 1]
    )));
  }
  const { name } = catalogue.threads[thread];
  return name && !several.has(name) ? name : nameOf(catalogue, thread);
}
