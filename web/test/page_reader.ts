// For tests/browser/test_page_data.py: reads a page's data with the model and tells what came out of it.
import { Head, Weight } from "../src/model/head";
import { answer } from "../src/model/questions";
import { openRecording } from "../src/model/recording";
import { Model } from "../src/model/selection";
import { Kind } from "../src/model/tree";
import { parseFragment } from "../src/state/fragment";
import { initialState } from "../src/state/state";

// Root first, ";" between names; only what has weight itself. `fragment`: of the page's address.
async function collapsed(head: Head, packed: string, fragment: string, weight: Weight, by: "function" | "line"): Promise<Record<string, number>> {
  const model = new Model(await openRecording(head, packed));
  const { filters, show } = parseFragment(fragment, initialState(head, "flame"));
  const query = { filters, show };
  const tree = answer(model, "shape", query, { by });
  const { self } = answer(model, "column", query, { by, weight });
  const { functions, places } = model.recording.catalogue;
  // As exporters/collapsed.cpp writes a frame.
  const name = (label: number) => {
    const [f, line] = by === "function" ? [label, 0] : [places.function[label], places.line[label]];
    let place = functions.file[f];
    if (line && place) place += `:${line}`;
    if (functions.kind[f] === Kind.native && functions.module[f]) place = place ? `${functions.module[f]}: ${place}` : functions.module[f];
    return place ? `${functions.full[f]} (${place})` : functions.full[f];
  };
  const paths: string[] = [];
  const out: Record<string, number> = {};
  for (let node = 1; node < tree.parent.length; ++node) {
    const above = tree.parent[node];
    paths[node] = above ? `${paths[above]};${name(tree.label[node])}` : name(tree.label[node]);
    if (self[node] > 0) out[paths[node]] = (out[paths[node]] ?? 0) + self[node];
  }
  return out;
}

(window as unknown as { collapsed: typeof collapsed }).collapsed = collapsed;
