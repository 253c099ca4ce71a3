// Which functions a search finds, and how much of the selection is in stacks through any of them; nested hits count
// once.
import { Query } from "../filters";
import { weightsOf } from "../head";
import { parsePattern } from "../search";
import { Amount, eachWeight, Model } from "../selection";

export interface Matches {
  error: string; // why the pattern is not a regular expression; nothing is found then
  functions: Uint8Array; // 1: found
  count: number;
  amount: Amount;
}

export function matches(model: Model, query: Query, { pattern }: { pattern: string }): Matches {
  const tree = model.recording.functions;
  const weights = weightsOf(model.recording.catalogue.head);
  const labels = model.labels();
  const found: Matches = { error: "", functions: new Uint8Array(labels.length), count: 0,
    amount: eachWeight(weights, () => 0) };
  if (pattern === "") return found;
  const parsed = parsePattern(pattern);
  if ("error" in parsed) return { ...found, error: parsed.error };
  for (let f = 1; f < labels.length; ++f) {
    if (!parsed.test(labels[f])) continue;
    found.functions[f] = 1;
    ++found.count;
  }
  const selection = model.select(query);
  const totals = weights.map((weight) => selection.total("function", weight));
  for (let node = 1; node < tree.label.length;) {
    if (!found.functions[tree.label[node]]) {
      ++node;
      continue;
    }
    weights.forEach((weight, i) => (found.amount[weight] += totals[i][node]));
    node = tree.end[node]; // skip the descendants: they are counted already
  }
  return found;
}
