// What the page computes a second time, against the cases that C++ is held to (tests/view/gil_holders_test.cpp,
// tests/exporters/flame_layout_test.cpp). Differences: comparison_test.ts.
import layouts from "../../tests/cases/flame_layout.json";
import holding from "../../tests/cases/gil_holders.json";
import { defaultOptions, layout } from "../src/layout/flame";
import { GilHolders } from "../src/model/gil_holders";
import { innermostPlaces } from "../src/model/wait_sums";
import { equal, test } from "./harness";
import { recordingOf, Stretch } from "./recordings";
import { treeOf } from "./trees";

const ms = 1e6;
const [holds, waits] = [0, 2]; // of states

const intervals = (rows: (string | number)[][], state: number): Stretch[] =>
  rows.map(([thread, place, start, length]) => {
    const [name, line] = (place as string).split(":");
    return { thread: thread as number, start: (start as number) * ms, wall: (length as number) * ms, cpu: 0, samples: 1, stack: [[name, Number(line)]], state, doing: 0 };
  });

test("the GIL's holders are those of the common cases", () => {
  for (const row of holding.cases) {
    const recording = recordingOf([...intervals(row.holds, holds), ...intervals(row.waits, waits)]);
    const { functions, places } = recording.catalogue;
    const holders = new GilHolders(recording.catalogue, recording.intervals, innermostPlaces(recording));
    const held: Record<string, number> = {};
    let unseen = 0;
    // The recording begins with its first interval.
    const begin = Math.min(...[...row.holds, ...row.waits].map(([, , start]) => start as number));
    for (const [thread, , start, length] of row.waits as [number, string, number, number][]) {
      unseen += holders.during(thread, (start - begin) * ms, (start - begin + length) * ms, (by, place, ns) => {
        const key = `${by} ${functions.name[places.function[place]]}:${places.line[place]}`;
        held[key] = (held[key] ?? 0) + ns / ms;
      });
    }
    const sorted = (times: Record<string, number>) => Object.entries(times).sort();
    equal([row.name, sorted(held), unseen / ms], [row.name, sorted(row.held as unknown as Record<string, number>), row.unseen]);
  }
});

test("a flame graph's boxes are those of the common cases", () => {
  for (const row of layouts.cases) {
    const tree = treeOf(...row.lines);
    const done = layout(tree, tree.weights.total, 0, { ...defaultOptions, ...row.options });
    const boxes = done.boxes.map(({ node, row, x, width }) => [tree.labels[tree.label[node]].name, row, x, width]);
    equal([row.name, boxes, done.rows, done.minWidth], [row.name, row.boxes, row.rows, row.minWidth] as unknown as [string, (string | number)[][], number, number]);
    equal([row.name, done.narrow, done.deep], [row.name, { frames: row.narrow[0], weight: row.narrow[1] }, { frames: row.deep[0], weight: row.deep[1] }]);
  }
});
