// Stacks in the order of time, and their boxes, against the plainest way to say the same.
import { boxAt, laneOf } from "../src/layout/flame_chart";
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { Model } from "../src/model/selection";
import { Activity } from "../src/model/states";
import { ensure, equal, test } from "./harness";
import { randomStretches, recordingOf, Stretch } from "./recordings";

const ms = 1e6;

function pathOf(model: Model, node: number): string {
  const { functions, catalogue } = model.recording;
  const names: string[] = [];
  for (let n = node; n > 0; n = functions.parent[n]) names.push(catalogue.functions.name[functions.label[n]]);
  return names.reverse().join();
}

const names = (interval: Stretch) => interval.stack.map(([name]) => name).join();

test("with room for each, every moment has its own stack and state", () => {
  for (let seed = 0; seed < 40; ++seed) {
    const intervals = randomStretches(seed);
    const model = new Model(recordingOf(intervals));
    const { start, end } = model.recording.catalogue;
    const given = answer(model, "segments", everything, { threads: [2, 0], from: start, to: end, bins: 1000,
      by: "function" });
    equal(Array.from(given.exact), [1, 1]);
    [2, 0].forEach((thread, row) => {
      for (const s of intervals.filter((one) => one.thread === thread && one.wall > 0)) {
        const at = s.start + s.wall / 2;
        const found: number[] = [];
        for (let i = given.first[row]; i < given.first[row + 1]; ++i)
          if (given.start[i] <= at && given.end[i] > at) found.push(i);
        equal(found.length, 1);
        equal(pathOf(model, given.node[found[0]]), names(s));
        ensure((given.activity[found[0]] === Activity.blocked) === (s.state === 1), "state");
      }
    });
  }
});

test("without room a bin shows the stack with most of its time, and says so", () => {
  // A bin a millisecond: f for 0.6 ms, g for 0.4 ms, the other way round in the second half.
  const interval = (start: number, wall: number, name: string): Stretch => ({ thread: 1, start, wall, cpu: 0,
    samples: 1, stack: [["main", 1], [name, 1]], state: 0, doing: 0 });
  const intervals = Array.from({ length: 100 }, (_, i) => {
    const first = (i < 50 ? 0.6 : 0.4) * ms;
    const half = (start: number, wall: number,
      name: string) => [interval(start, wall / 2, name), interval(start + wall / 2, wall / 2, `${name}`)];
    return [...half(i * ms, first, "f"), ...half(i * ms + first, ms - first, "g")];
  }).flat();
  const model = new Model(recordingOf(intervals));
  const given = answer(model, "segments", everything, { threads: [1], from: 0, to: 100 * ms, bins: 100,
    by: "function" });
  equal(given.exact[0], 0);
  equal(Array.from(given.node, (node) => pathOf(model, node)), ["main,f", "main,g"]);
  equal([Array.from(given.start), Array.from(given.end)], [[0, 50 * ms], [50 * ms, 100 * ms]]);
  // What is not there is not drawn.
  const later = answer(model, "segments", everything, { threads: [1, 3], from: 90 * ms, to: 190 * ms, bins: 4,
    by: "function" });
  equal([later.end[later.end.length - 1] <= 115 * ms, later.first[1], later.first[2]], [true, later.start.length,
    later.start.length]);
});

test("filters cut what is in order of time, too", () => {
  const one: Stretch = { thread: 0, start: 0, wall: 10 * ms, cpu: 0, samples: 1, stack: [["main", 1]], state: 0,
    doing: 0 };
  const model = new Model(recordingOf([one]));
  const given = answer(model, "segments", { ...everything,
    filters: [{ field: "time", mode: "out", from: 4 * ms, to: 6 * ms }] }, { threads: [0], from: 1 * ms, to: 20 * ms,
    bins: 10, by: "line" });
  equal([Array.from(given.start), Array.from(given.end)], [[1 * ms, 6 * ms], [4 * ms, 10 * ms]]);
});

test("a frame that goes on is one box, whatever it calls, until it is gone or not seen", () => {
  const at = (start: number, wall: number, stack: string[], state = 0): Stretch => ({ thread: 0, start: start * ms,
    wall: wall * ms, cpu: 0, samples: 1, stack: stack.map((name): [string, number] => [name, 1]), state, doing: 0 });
  const model = new Model(recordingOf([
    at(0, 1, ["main", "f"]),
    at(1, 1, ["main", "g", "f"]),
    at(2, 1, ["main", "g"], 1),
    at(3, 1, ["load"]),
    at(4, 1, ["main", "f"]),
    at(6, 1, ["main", "f"], 1),
  ]));
  const given = answer(model, "segments", everything, { threads: [0], from: 0, to: 7 * ms, bins: 100, by: "function" });
  const { functions, catalogue } = model.recording;
  const lane = laneOf(functions, given, 0, 10);
  const said = lane.rows.map((row) =>
    row.map((box) =>
      `${catalogue.functions.name[functions.label[box.node]]} ${box.from / ms}-${box.to / ms}${
        box.waits ? " waits" : ""
      }`
    )
  );
  equal(said, [["main 0-3", "load 3-4", "main 4-5", "main 6-7 waits"], ["f 0-1", "g 1-3", "f 4-5", "f 6-7 waits"], [
    "f 1-2",
  ]]);
  equal([boxAt(lane.rows[0], 3.5 * ms), boxAt(lane.rows[0], 5.5 * ms), boxAt(lane.rows[2], 0), boxAt(undefined, 0)], [1,
    -1, -1, -1]);
  const shallow = laneOf(functions, given, 0, 2);
  equal([shallow.rows.length, shallow.deeper, shallow.rows[1].length], [2, 1, 4]);
});
