// What threads waited for and who held the GIL meanwhile, against the plainest way to say the same.
import { everything, Query } from "../src/model/filters";
import { oneAfterAnother } from "../src/model/gil_holders";
import { answer } from "../src/model/questions";
import { everywhere } from "../src/model/questions/wait_rows";
import { Model } from "../src/model/selection";
import { Detail } from "../src/model/wait_sums";
import { equal, near, test } from "./harness";
import { byName, randomStretches, recordingOf, Stretch, Wait } from "./recordings";
import { randomNumbers } from "./trees";

const us = 1000;
const [running, blocked, waitsForGil, queued] = [0, 1, 2, 3]; // of states

const interval = (thread: number, from: number, to: number, stack: [string, number][], state: number,
  wait?: Wait): Stretch => ({ thread, start: from * us, wall: (to - from) * us, cpu: 0, samples: 1, stack, state,
    doing: state === blocked ? 1 : 0, wait });

function given(intervals: Stretch[], query: Query = everything, detail: Detail = "place", where = {}): string[] {
  const model = new Model(recordingOf(intervals));
  const { functions, places } = model.recording.catalogue;
  const at = (place: number) => (place ? ` ${functions.name[places.function[place]]}:${places.line[place]}` : "");
  return answer(model, "waitRows", query, { ...everywhere, most: 100, detail, ...where }).rows.map((row) =>
    `${row.wall / us} ${row.threads} ${row.words}${row.which ? ` (${row.which})` : ""}${at(row.place)} ${row.whom}${
      row.by < 0 ? "" : ` t${row.by}`
    }${row.other ? ` ${row.other}` : ""}${row.byMore ? ` +${row.byMore}` : ""}${at(row.byPlace)}`
  );
}

const socket: Wait = { words: "a socket", which: "db", place: ["get", 5], by: 1, byPlace: ["put", 7] };
const alike: Wait = { ...socket, which: "other db", by: 2 };
const child: Wait = { words: "a child", place: ["get", 6], other: "worker (12)" };
const brother: Wait = { ...child, other: "worker (13)" };

const waiting: Stretch[] = [
  interval(0, 0, 10, [["main", 1], ["get", 5]], blocked, socket),
  interval(0, 10, 12, [["main", 1]], running),
  interval(0, 12, 15, [["main", 1], ["get", 5]], blocked, alike),
  interval(0, 15, 19, [["main", 1], ["get", 6]], blocked, child),
  interval(3, 0, 2, [["main", 1], ["get", 6]], blocked, brother),
  interval(3, 2, 3, [["main", 1]], queued),
];

test("waits of a pool that differ in the thread that ended them, or in a number, are one", () => {
  equal(given(waiting), ["13 1 a socket get:5 ended t1 +1 put:7", "6 2 a child get:6 ended worker (2 processes)",
    "1 1 a CPU main:1 ended"]);
});

test("filters, times and stacks choose the waits", () => {
  const time: Query = { filters: [{ field: "time", mode: "in", from: 8 * us, to: 16 * us }], show: "everything" };
  equal(given(waiting, time), ["5 1 a socket get:5 ended t2 +1 put:7", "1 1 a child get:6 ended worker (12)"]);
  equal(given(waiting, everything, "place", { threads: [3], from: us, to: 9 * us }), [
    "1 1 a child get:6 ended worker (13)",
    "1 1 a CPU main:1 ended",
  ]);
  const model = new Model(recordingOf(waiting));
  const node = answer(model, "shape", everything, { by: "line" }).label.findIndex((place) =>
    model.recording.catalogue.places.line[place] === 6
  );
  equal(given(waiting, everything, "place", { node }), ["6 2 a child get:6 ended worker (2 processes)"]);
});

test("without places what is waited for and who ends it is a row", () => {
  const elsewhere = interval(2, 0, 4, [["main", 2], ["get", 9]], blocked, { ...socket, place: ["get", 9] });
  equal(given([...waiting, elsewhere], everything, "whom")[0], "17 2 a socket ended t1 +1 put:7");
});

test("a wait for the GIL is told by who held it, and when nobody did", () => {
  equal(given([
    interval(0, 0, 100, [["main", 1], ["f", 2]], waitsForGil),
    interval(1, 10, 40, [["main", 1], ["g", 3]], running),
    interval(1, 40, 50, [["main", 1], ["n", 4]], running), // native code of main's line
    interval(3, 0, 100, [["main", 1]], running), // another process
  ]), ["60 1 the GIL f:2 unseen", "30 1 the GIL f:2 held t1 g:3", "10 1 the GIL f:2 held t1 main:1"]);
});

test("of several that say that they held it the first to be looked at did", () => {
  const hold = (start: number, end: number, thread: number) => ({ start, end, thread, place: 0 });
  const line = oneAfterAnother([hold(0, 10, 1), hold(5, 7, 2), hold(20, 30, 1), hold(10, 12, 1)]).map((
    { start, end, thread },
  ) => [start, end, thread]);
  equal(line, [[0, 5, 1], [5, 7, 2], [7, 12, 1], [20, 30, 1]]);
});

test("any holders and waits: at each moment somebody or nobody", () => {
  for (let seed = 0; seed < 20; ++seed) {
    const random = randomNumbers(seed);
    const waiting = (
      one: Stretch,
    ) => (one.state === blocked && random(2) ? { ...one, wait: random(2) ? socket : child } : one);
    const intervals = randomStretches(seed).map(waiting);
    const model = new Model(recordingOf(intervals));
    const { rows, waited, whole, leftOut } = answer(model, "waitRows", everything, { ...everywhere, most: 3,
      detail: "place" });
    const sum = (of: (one: Stretch) => boolean) => intervals.filter(of).reduce((ns, { wall }) => ns + wall, 0);
    near(whole, sum(() => true));
    near(waited, sum(({ state, wait }) => state === waitsForGil || state === queued || wait !== undefined));
    equal(rows.length <= 3 && rows.every(({ wall }, i) => wall > 0 && (i === 0 || wall <= rows[i - 1].wall)), true);
    equal(answer(model, "waitRows", everything, { ...everywhere, most: 1000, detail: "place" }).rows.length,
      rows.length + leftOut);
  }
});

test("a page that was merged does not say who held the GIL", () => {
  const recording = recordingOf([interval(0, 0, 9, [["main", 1]], waitsForGil),
    interval(1, 0, 9, [["g", 1]], running)]);
  recording.catalogue.head.merged = { limit: 1, window: 1, stretchesBefore: 1, stretchesAfter: 1, nodesBefore: 1,
    nodesAfter: 1, rareShare: 0, cutWall: 0 };
  const { rows } = answer(new Model(recording), "waitRows", everything, { ...everywhere, most: 9, detail: "place" });
  equal(rows.map(({ words, whom, by, byPlace }) => [words, whom, by, byPlace]), [["the GIL", "ended", -1, 0]]);
  equal(rows[0].place > 0 && byName(recording, "main") > 0, true);
});
