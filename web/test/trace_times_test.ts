// Times of traces, and what a filter by trace leaves, against the plainest way to say the same.
import { between, everything, Filter, inBoth, joined, Span } from "../src/model/filters";
import { Model } from "../src/model/selection";
import { timesOf, traceTimesIn, traceWords } from "../src/model/trace_times";
import { equal, near, test } from "./harness";
import { randomStretches, recordingOf, Stretch, Traced } from "./recordings";
import { randomNumbers } from "./trees";

const ids = ["1", "2", "3"].map((digit) => digit.repeat(32));

// Threads 0 to 2 work for a trace now and then, thread 3 never.
function randomTraces(seed: number): Traced[] {
  const random = randomNumbers(seed + 1000);
  const traces: Traced[] = [];
  for (let thread = 0; thread < 3; ++thread) {
    let at = random(2_000_000) * 1000;
    while (random(12) > 0) {
      const start = at + random(3) * random(2_000_000) * 1000;
      at = start + (1 + random(4_000_000)) * 1000;
      traces.push({ thread, start, end: at, id: ids[random(3)] });
    }
  }
  return traces;
}

function each(run: (intervals: Stretch[], traces: Traced[], model: Model) => void): void {
  for (let seed = 0; seed < 60; ++seed) {
    const [intervals, traces] = [randomStretches(seed), randomTraces(seed)];
    run(intervals, traces, new Model(recordingOf(intervals, [], traces)));
  }
}

const common = (interval: Stretch, from: number, to: number) =>
  Math.max(0, Math.min(interval.start + interval.wall, to) - Math.max(interval.start, from));
const wallIn = (interval: Stretch, traces: Traced[], id: string, from = -Infinity, to = Infinity) =>
  traces.filter((one) => one.thread === interval.thread && one.id === id)
    .reduce((sum, { start, end }) => sum + common(interval, Math.max(start, from), Math.min(end, to)), 0);
const sum = (values: number[]) => values.reduce((all, one) => all + one, 0);
const trace = (mode: "in" | "out", ...values: string[]): Filter => ({ field: "trace", mode, values });

test("times of traces come back as they were packed", () => {
  each((_, traces, { recording: { catalogue: { traces: read } } }) => {
    equal([Array.from(read.start), Array.from(read.end), Array.from(read.trace, (i) => read.ids[i])], [
      traces.map(({ start }) => start),
      traces.map(({ end }) => end),
      traces.map(({ id }) => id),
    ]);
    for (const thread of [0, 1, 2, 3])
      equal(timesOf(read, [ids[0]], thread),
        traces.filter((one) => one.thread === thread && one.id === ids[0]).map(({ start, end }) => [start, end]));
  });
});

test("a recording without traces has none", () => {
  const { catalogue: { traces } } = recordingOf(randomStretches(1));
  equal(traces.ids, []);
  equal(traceTimesIn(traces, 2, 0, 1e9), [0, 0]);
  equal(traceWords(traces, 2, 0, 1e9), "");
});

test("a filter by trace leaves the time in which threads worked for it", () => {
  each((intervals, traces, model) => {
    const wall = (...filters: Filter[]) => model.select({ ...everything, filters }).all.wall;
    const all = sum(intervals.map((one) => one.wall));
    const of = ids.map((id) => sum(intervals.map((one) => wallIn(one, traces, id))));
    ids.forEach((id, i) => {
      near(wall(trace("in", id)), of[i]);
      near(wall(trace("out", id)), all - of[i]);
    });
    near(wall(trace("in", ids[0], ids[2])), of[0] + of[2]);
    near(wall(trace("in", ids[0]), trace("in", ids[1])), 0);
    const [from, to] = [2e9, 7e9];
    near(wall(trace("in", ids[1]), { field: "time", mode: "in", from, to }),
      sum(intervals.map((one) => wallIn(one, traces, ids[1], from, to))));
    near(wall(trace("in", ids[1]), { field: "thread", mode: "in", values: [1] }),
      sum(intervals.filter((one) => one.thread === 1).map((one) => wallIn(one, traces, ids[1]))));
  });
});

test("the trace of a moment is named, several are counted", () => {
  const traces = [{ thread: 0, start: 1000, end: 5000, id: ids[0] }, { thread: 0, start: 5000, end: 6000, id: ids[1] },
    { thread: 0, start: 8000, end: 9000, id: ids[1] }];
  const interval: Stretch = { thread: 0, start: 0, wall: 10000, cpu: 0, samples: 1, stack: [], state: 0, doing: 0 };
  const { catalogue: { traces: read } } = recordingOf([interval], [], traces);
  equal(
    [[0, 900], [1000, 1001], [4000, 5000], [4000, 5001], [5500, 9000], [6000, 8000]].map(([from, to]) =>
      traceWords(read, 0, from, to)
    ),
    ["", ids[0], ids[0], "2 traces", ids[1], ""],
  );
  equal(traceWords(read, 1, 0, 9000), "");
});

test("spans are joined, turned round and met", () => {
  const spans: Span[] = [[1, 3], [5, 9]];
  equal(between(spans), [[-Infinity, 1], [3, 5], [9, Infinity]]);
  equal(between([]), [[-Infinity, Infinity]]);
  equal(inBoth(spans, [[0, 2], [2, 6], [8, 20]]), [[1, 2], [2, 3], [5, 6], [8, 9]]);
  equal(inBoth(spans, []), []);
  equal(joined([[1, 3], [2, 4], [4, 5], [7, 8]]), [[1, 5], [7, 8]]);
});
