// What threads waited for, how long, where, and the waker or GIL holder: one row each, longest first.
import { By } from "../head";
import { Query } from "../filters";
import { eachPart, spansIn } from "../passing";
import { doings } from "../recording";
import { Model } from "../selection";
import { Detail, WaitRow, WaitSums } from "../wait_sums";

export interface WaitRows {
  rows: WaitRow[];
  leftOut: number; // rows beyond the requested number
  waited: number; // ns, in total
  whole: number; // ns of everything selected, waiting or not
}

export interface Where {
  most: number; // maximum number of rows
  detail: Detail;
  by: By;
  node: number; // only stacks through it, in the tree by function or by line; 0: all
  threads: number[] | null; // null: all
  from: number; // ns since the recording's start
  to: number;
}

export const everywhere: Omit<Where, "most" | "detail"> = { by: "line", node: 0, threads: null, from: -Infinity,
  to: Infinity };

export function waitRows(model: Model, query: Query,
  { most, detail, by, node: within, threads, from, to }: Where): WaitRows
{
  const selection = model.select(query);
  const { start, wall, node, kind } = model.recording.intervals;
  const { functionNode } = model.recording;
  const end = selection.tree(by).end[within];
  const sums = new WaitSums(model, detail);
  const { first, interval } = selection.passing;
  let whole = 0;
  for (const thread of threads ?? Array.from({ length: first.length - 1 }, (_, i) => i)) {
    const [begin, until] = from === -Infinity && to === Infinity
      ? [first[thread], first[thread + 1]]
      : selection.passingIn(thread, from, to);
    const spans = spansIn(selection.passes, thread, from, to);
    for (let k = begin; k < until; ++k) {
      const i = interval[k];
      const at = by === "line" ? node[i] : functionNode[node[i]];
      if (at < within || at >= end) continue;
      const doing = kind[i] % doings;
      eachPart(spans, start[i], wall[i], (a, b) => {
        whole += b - a;
        sums.add(thread, i, a, b, doing);
      });
    }
  }
  const rows = sums.rows();
  const waited = rows.reduce((sum, row) => sum + row.wall, 0);
  return { rows: rows.slice(0, most), leftOut: Math.max(0, rows.length - most), waited, whole };
}
