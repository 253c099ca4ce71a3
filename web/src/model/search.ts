// Finds frames by a regular expression, and the time beneath them. No DOM.
import { Pattern } from "./pattern";
import { isWithin, Label, placeOf, Shape, Tree } from "./tree";

export interface Found {
  error: string; // why the pattern is not a regular expression; nothing is found then
  labels: Uint8Array; // 1: this label matches
  nodes: number; // matching nodes
  frames: number; // matching labels: functions or lines
}

const longestSearch = 2000; // milliseconds: the window does not respond meanwhile

const nothing = (labels: number, error = ""): Found => ({ error, labels: new Uint8Array(labels), nodes: 0, frames: 0 });

// "json" searches names, short and full, and names with their module ("json.loads"); "file:json" files and lines;
// "module:^json$" packages and modules. Case-sensitive if the pattern has a capital letter.
export function parsePattern(text: string): { test: (label: Label) => boolean } | { error: string } {
  const [, field, pattern] = /^(?:(file|module):)?(.*)$/s.exec(text) as RegExpExecArray;
  let regex: { test: (text: string) => boolean };
  try {
    // Capitals in escapes such as \S do not count.
    const caseCounts = /\p{Lu}/u.test(pattern.replace(/\\./gsu, ""));
    const flags = caseCounts ? "u" : "iu";
    // The browser's own is many times faster, and cannot backtrack in a pattern without repetitions.
    regex = /^[\p{L}\p{N} _.:;<>,^$\-/]*$/u.test(pattern) ? new RegExp(pattern, flags) : new Pattern(pattern, flags);
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
  if (field === "file") return { test: (label) => label.file !== "" && regex.test(placeOf(label)) };
  if (field === "module") return { test: (label) => label.module !== "" && regex.test(label.module) };
  return {
    test: (label) =>
      [label.name, label.full].some((name) =>
        regex.test(name) || (label.module !== "" && regex.test(`${label.module}.${name}`))
      ),
  };
}

export function search(tree: Tree, text: string): Found {
  if (text === "") return nothing(tree.labels.length);
  const pattern = parsePattern(text);
  if ("error" in pattern) return nothing(tree.labels.length, pattern.error);
  const found = nothing(tree.labels.length);
  const all = tree.label[0];
  const end = Date.now() + longestSearch;
  for (let i = 0; i < tree.labels.length; ++i) {
    if (i % 64 === 0 && Date.now() > end) return nothing(tree.labels.length, "it takes too long");
    // "all" is not a frame of the program.
    if (i === all || !pattern.test(tree.labels[i])) continue;
    found.labels[i] = 1;
    ++found.frames;
  }
  for (let node = 1; node < tree.label.length; ++node) found.nodes += found.labels[tree.label[node]];
  return found;
}

// Weight beneath matching nodes within `top`; a match inside a match counts once.
export function matchedWeight(tree: Shape, total: Float64Array, found: Pick<Found, "labels">, top: number): number {
  if (found.labels[tree.label[top]]) return total[top];
  let weight = 0;
  const open = [top];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (let child = tree.firstChild[node]; child; child = tree.nextSibling[child]) {
      if (found.labels[tree.label[child]]) weight += total[child];
      else open.push(child);
    }
  }
  return weight;
}

// The next matching node after `from` in depth-first order, wrapping at the end; 0: none.
export function nextMatch(tree: Shape, total: Float64Array, found: Pick<Found, "labels">, top: number, from: number,
  step: 1 | -1): number
{
  const order: number[] = [];
  const open = [top];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (found.labels[tree.label[node]] && total[node] > 0) order.push(node);
    const children: number[] = [];
    for (let child = tree.firstChild[node]; child; child = tree.nextSibling[child]) children.push(child);
    while (children.length) open.push(children.pop() as number);
  }
  if (!order.length) return 0;
  const at = order.indexOf(from);
  if (at < 0 || !isWithin(tree, from, top)) return step > 0 ? order[0] : order[order.length - 1];
  return order[(at + step + order.length) % order.length];
}
