// What the page computes a second time, against the cases that C++ is held to (tests/view/gil_holders_test.cpp,
// tests/view/wait_class_test.cpp, tests/exporters/flame_layout_test.cpp). Differences: comparison_test.ts.
import layouts from "../../tests/cases/flame_layout.json";
import holding from "../../tests/cases/gil_holders.json";
import sums from "../../tests/cases/wait_sums.json";
import { defaultOptions, layout } from "../src/layout/flame";
import { GilHolders } from "../src/model/gil_holders";
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { everywhere } from "../src/model/questions/wait_rows";
import { Model } from "../src/model/selection";
import { innermostPlaces } from "../src/model/wait_sums";
import { equal, test } from "./harness";
import { recordingOf, Stretch, Wait } from "./recordings";
import { treeOf } from "./trees";

const ms = 1e6;
const [holds, blocked, waits] = [0, 1, 2]; // of states

const frame = (place: string): [string, number] => {
  const [name, line] = place.split(":");
  return [name, Number(line)];
};

const intervals = (rows: (string | number)[][], state: number): Stretch[] =>
  rows.map(([thread, place, start, length]) => ({ thread: thread as number, start: (start as number) * ms,
    wall: (length as number) * ms, cpu: 0, samples: 1, stack: [frame(place as string)], state, doing: 0 })
  );

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
    equal([row.name, sorted(held), unseen / ms], [row.name, sorted(row.held as unknown as Record<string, number>),
      row.unseen]);
  }
});

test("a flame graph's boxes are those of the common cases", () => {
  for (const row of layouts.cases) {
    const tree = treeOf(...row.lines);
    const done = layout(tree, tree.weights.total, 0, { ...defaultOptions, ...row.options });
    const boxes = done.boxes.map(({ node, row, x, width }) => [tree.labels[tree.label[node]].name, row, x, width]);
    equal([row.name, boxes, done.rows, done.minWidth],
      [row.name, row.boxes, row.rows, row.minWidth] as unknown as [string, (string | number)[][], number, number]);
    equal([row.name, done.narrow, done.deep], [row.name, { frames: row.narrow[0], weight: row.narrow[1] }, {
      frames: row.deep[0],
      weight: row.deep[1],
    }]);
  }
});

test("waits are added up as in the common cases", () => {
  for (const row of sums.cases) {
    const intervals = (row.waits as [number, string, number, number, string, number | string, string?][]).map(
      ([thread, at, start, length, words, by, byAt]): Stretch => {
        const waker: Partial<Wait> = typeof by === "string"
          ? { other: by }
          : { by, byPlace: byAt ? frame(byAt) : undefined };
        return { thread, start: start * ms, wall: length * ms, cpu: 0, samples: 1, stack: [frame(at)], state: blocked,
          doing: 1, wait: { words, place: frame(at), ...waker } };
      },
    );
    const model = new Model(recordingOf(intervals));
    const { functions, places } = model.recording.catalogue;
    const at = (place: number) => (place ? `${functions.name[places.function[place]]}:${places.line[place]}` : "");
    const { rows } = answer(model, "waitRows", everything, { ...everywhere, most: 100, detail: "place" });
    equal([row.name, rows.map((
      { words, place, wall, threads, by, byMore, byPlace, other },
    ) => [words, at(place), wall / ms, threads, by, byMore, at(byPlace), other])],
      [row.name, row.rows] as unknown as [string, (string | number)[][]]);
  }
});
