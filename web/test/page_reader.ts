// For tests/browser/test_page_data.py: reads a page's data with the model and prints the result.
import { Head, Weight } from "../src/model/head";
import { answer } from "../src/model/questions";
import { everywhere } from "../src/model/questions/wait_rows";
import { openRecording } from "../src/model/recording";
import { Model } from "../src/model/selection";
import { Kind } from "../src/model/tree";
import { parseFragment } from "../src/state/fragment";
import { initialState } from "../src/state/state";

// Root first, ";" between names; only what has weight itself. `fragment`: of the page's address.
async function collapsed(head: Head, packed: string, fragment: string, weight: Weight,
  by: "function" | "line"): Promise<Record<string, number>>
{
  const { filters, show, inherited } = parseFragment(fragment, initialState(head, "flame"));
  const model = new Model(await openRecording(head, packed, inherited));
  const query = { filters, show };
  const tree = answer(model, "shape", query, { by });
  const { self } = answer(model, "column", query, { by, weight });
  const { functions, places } = model.recording.catalogue;
  // As exporters/collapsed.cpp writes a frame.
  const name = (label: number) => {
    const [f, line] = by === "function" ? [label, 0] : [places.function[label], places.line[label]];
    let place = functions.file[f];
    if (line && place) place += `:${line}`;
    if (functions.kind[f] === Kind.native && functions.module[f])
      place = place
        ? `${functions.module[f]}: ${place}`
        : functions.module[f];
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

// Waits as the table of the page has them, whatever is shown: places as [name, file, line], threads by their labels.
async function waits(head: Head, packed: string, fragment: string): Promise<unknown[]> {
  const model = new Model(await openRecording(head, packed));
  const { functions, places, threads } = model.recording.catalogue;
  const place = (
    at: number,
  ) => (at ? [functions.full[places.function[at]], functions.file[places.function[at]], places.line[at]] : ["", "", 0]);
  const { filters } = parseFragment(fragment, initialState(head, "flame"));
  const { rows } = answer(model, "waitRows", { filters, show: "everything" }, { ...everywhere, most: Infinity,
    detail: "place" });
  return rows.map((row) => ({
    words: row.words,
    whom: row.whom,
    wall: row.wall,
    idle: row.idle,
    unknown: row.unknown,
    native: row.native ? functions.full[row.native] : "",
    nativeShare: row.nativeShare,
    threads: row.threads,
    where: place(row.place),
    by: row.by < 0 ? row.other : threads[row.by].label,
    more: row.byMore,
    byWhere: place(row.byPlace),
  }));
}

// Of functions, or lines, of Python: what is beneath, as the table of the page has it.
async function native(head: Head, packed: string, fragment: string, weight: Weight,
  by: "function" | "line"): Promise<unknown[]>
{
  const model = new Model(await openRecording(head, packed));
  const { filters, show } = parseFragment(fragment, initialState(head, "flame"));
  const { native, library, share } = answer(model, "beneath", { filters, show }, { by, weight });
  const { functions, places } = model.recording.catalogue;
  const rows = by === "line" ? Array.from(places.function) : functions.name.map((_, f) => f);
  return rows.flatMap((f, row) => (native[row] || library[row]
    ? [{ name: functions.full[f], file: functions.file[f], line: by === "line" ? places.line[row] : functions.line[f],
      native: functions.full[native[row]], library: library[row], share: share[row] }]
    : [])
  );
}

Object.assign(window, { collapsed, waits, native });
