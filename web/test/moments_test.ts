// What threads did within a part of the time, against the plainest way to say the same.
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { overlap } from "../src/model/passing";
import { Model } from "../src/model/selection";
import { activities, Activity, activityOf } from "../src/model/states";
import { Kind } from "../src/model/tree";
import { ensure, equal, near, test } from "./harness";
import { byName, randomStretches, recordingOf, states, Stretch } from "./recordings";

const second = 1e9;

function each(run: (intervals: Stretch[], model: Model, from: number, to: number, seed: number) => void): void {
  for (let seed = 0; seed < 60; ++seed) {
    const intervals = randomStretches(seed);
    const model = new Model(recordingOf(intervals));
    const { start, end } = model.recording.catalogue;
    const at = (share: number) => Math.round(start + (end - start) * share);
    run(intervals, model, at((seed % 7) / 8), at((seed % 7) / 8 + (seed % 5) / 40 + 0.001), seed);
  }
}

const parts = (intervals: Stretch[], from: number, to: number, threads: number[]) =>
  intervals.filter((s) => threads.includes(s.thread)).map((s) => ({ s, ns: overlap([[from, to]], s.start, s.wall) }))
    .filter(({ ns }) => ns > 0);
const sum = (list: { ns: number }[]) => list.reduce((all, { ns }) => all + ns, 0);

test("intervals of a range are found without a full search", () => {
  each((intervals, model, from, to) => {
    const { start, wall } = model.recording.intervals;
    for (let thread = 0; thread < 4; ++thread) {
      const [first, last] = model.inTime.of(thread, from, to);
      let found = 0;
      for (let i = first; i < last; ++i) if (start[i] < to && start[i] + wall[i] > from) ++found;
      equal(found, intervals.filter((s) => s.thread === thread && s.start < to && s.start + s.wall > from).length);
    }
  });
});

test("an interval within the one before it does not hide that", () => {
  const interval = (start: number, wall: number): Stretch => ({ thread: 0, start, wall, cpu: 0, samples: 1,
    stack: [["f", 1]], state: 0, doing: 0 });
  const model = new Model(
    recordingOf([interval(0, 10 * second), interval(second, second), interval(11 * second, second)]),
  );
  equal(model.inTime.of(0, 5 * second, 6 * second), [0, 2]);
});

test("CPU time is that of who used it, not of who waited for a CPU longest", () => {
  const interval = (start: number, wall: number, cpu: number, name: string, state: number): Stretch => ({ thread: 0,
    start, wall, cpu, samples: 1, stack: [["main", 1], [name, 1]], state, doing: 0 });
  // Woken from its sleep, it waits for a CPU in `select`; it computes in `handle`.
  const model = new Model(
    recordingOf([interval(0, 5 * second, 0, "select", 3), interval(5 * second, second, second, "handle", 0)]),
  );
  const given = answer(model, "moment", everything, { threads: [0], from: 0, to: 6 * second, cpu: -1 });
  equal(given.functions[0][0], byName(model.recording, "select"));
  equal(given.used, [[byName(model.recording, "handle"), second]]);
});

test("a moment has the facts of its intervals", () => {
  each((intervals, model, from, to, seed) => {
    const threads = [seed % 4, 3 - (seed % 4)].filter((t, i, all) => all.indexOf(t) === i);
    const given = answer(model, "moment", everything, { threads, from, to, cpu: -1 });
    const there = parts(intervals, from, to, threads);
    near(given.wall, sum(there));
    near(given.activity.reduce((a, b) => a + b, 0), sum(there));
    near(given.activity[Activity.gil], sum(there.filter(({ s }) => states[s.state].gil === 3)));
    near(given.activity[Activity.collecting], sum(there.filter(({ s }) => states[s.state].collecting)));
    near(given.calls[0]?.[1] ?? 0, sum(there.filter(({ s }) => s.state === 1)));
    const leaf = (s: Stretch) => (s.stack.length ? s.stack[s.stack.length - 1][0] : "");
    const computing = there.filter(({ s }) => states[s.state].gil !== 3 && [1, 2].includes(states[s.state].cpu));
    for (const [f, ns] of given.functions) {
      near(ns, sum((computing.length ? computing : there).filter(({ s }) =>
        leaf(s) !== "" && byName(model.recording, leaf(s)) === f
      )));
    }
    ensure(
      (given.only !== null) === (intervals.filter((s) =>
        threads.includes(s.thread) &&
        (s.wall > 0 ? overlap([[from, to]], s.start, s.wall) > 0 : s.start >= from && s.start < to)
      ).length === 1),
      "one stretch",
    );
  });
});

test("one look is told with its whole stack", () => {
  const one: Stretch = { thread: 2, start: 3 * second, wall: second, cpu: 0, samples: 4,
    stack: [["main", 1], ["f", 2], ["nparse", 3]], state: 0, doing: 0 };
  const model = new Model(recordingOf([one]));
  const { only, samples } = answer(model, "moment", everything, { threads: [0, 2], from: 3.5 * second,
    to: 3.5 * second + 1, cpu: -1 });
  equal(only, { stack: ["main", "f", "nparse"].map((name) => byName(model.recording, name)), start: 3 * second,
    wall: second });
  equal(samples, 1);
  equal(answer(model, "moment", everything, { threads: [0, 2], from: 5 * second, to: 6 * second, cpu: -1 }).samples, 0);
});

test("CPUs see what runs, and nothing else", () => {
  each((intervals, model) => {
    const { start, end } = model.recording.catalogue;
    const { numbers, time } = answer(model, "cpus", everything, { from: start, to: end, bins: 20 });
    equal(Array.from(numbers), [0]); // all of them in recordingOf()
    const ran = intervals.filter((s) => states[s.state].cpu === 1).reduce((all, s) => all + s.wall, 0);
    const given = time.reduce((a, b) => a + b, 0);
    ensure(Math.abs(given - ran) <= 1e-4 * ran + 1, `${given} told, ${ran} ran`);
    near(answer(model, "moment", everything, { threads: [0, 1, 2, 3], from: start, to: end + 1, cpu: 0 }).wall, ran);
    equal(answer(model, "moment", everything, { threads: [0, 1, 2, 3], from: start, to: end + 1, cpu: 1 }).wall, 0);
  });
});

test("a wait is of the program's own function, not of the library's beneath it", () => {
  const wait = (thread: number, names: string[], wall: number): Stretch => ({ thread, start: 0, wall, cpu: 0,
    samples: 1, stack: names.map((name): [string, number] => [name, 1]), state: 1, doing: 2 });
  const recording = recordingOf([wait(0, ["main", "load", "g"], 5 * second), wait(1, ["g"], second), {
    ...wait(1, ["main"], second),
    start: second,
    state: 0,
  }, wait(2, ["nparse"], second)]);
  const { file } = recording.catalogue.functions;
  file[byName(recording, "g")] = "/usr/lib/python3.12/threading.py";
  file[byName(recording, "load")] = "/usr/lib/python3.12/site-packages/pool.py";
  const given = answer(new Model(recording), "waits", everything, { threads: [0, 1, 2, 3] });
  equal(Array.from(given.function), [byName(recording, "load"), byName(recording, "g"), byName(recording, "nparse"),
    0]);
  equal(Array.from(given.wall), [5 * second, second, second, 0]);
});

test("the interpreter's own C is Python, and the C library is whatever calls it", () => {
  const at = (thread: number, stack: string[]): Stretch => ({ thread, start: 0, wall: second, cpu: 0, samples: 1,
    stack: stack.map((name): [string, number] => [name, 1]), state: 0, doing: 0 });
  const stacks = [["f", "npython_dict", "nlibc_malloc"], ["f", "nblas", "nlibc_malloc"], ["nblas"], ["f", "nblas",
    "npython_dict"]];
  const { intervals, catalogue } = recordingOf(stacks.map((stack, thread) => at(thread, stack)));
  equal(Array.from(intervals.activity), [Activity.python, Activity.native, Activity.native, Activity.python]);
  equal(catalogue.functions.owner[byName({ catalogue } as never, "nlibc_malloc")], 2);
});

test("what a thread used is of the Python function, not of the native code that it calls", () => {
  const at = (start: number, wall: number, stack: string[]): Stretch => ({ thread: 0, start, wall, cpu: wall,
    samples: 1, stack: stack.map((name): [string, number] => [name, 1]), state: 0, doing: 0 });
  const model = new Model(
    recordingOf([at(0, 5 * second, ["main", "f", "nblas", "nlibc_malloc"]), at(5 * second, second, ["main", "f"]),
      at(6 * second, 2 * second, ["nblas"])]),
  );
  const { used } = answer(model, "moment", everything, { threads: [0], from: 0, to: 8 * second, cpu: -1 });
  equal(used, [[byName(model.recording, "f"), 6 * second], [byName(model.recording, "nblas"), 2 * second]]);
});

test("time in native code is the Python function's beneath which it is, and the native function's", () => {
  const at = (start: number, wall: number, stack: string[]): Stretch => ({ thread: 0, start, wall, cpu: 0, samples: 1,
    stack: stack.map((name): [string, number] => [name, 1]), state: 0, doing: 0 });
  const recording = recordingOf([at(0, 5 * second, ["main", "f", "nblas", "nlibc_malloc"]),
    at(5 * second, second, ["main", "f"]), at(6 * second, 2 * second, ["nblas"])]);
  const { self, total } = answer(new Model(recording), "table", everything, { by: "function", natives: true });
  const selves = (names: string[]) => names.map((name) => self.wall[byName(recording, name)] / second);
  equal(selves(["main", "f", "nblas", "nlibc_malloc"]), [0, 6, 2, 5]);
  equal(total.wall[byName(recording, "nblas")] / second, 7);
});

test("a thread that runs without a frame runs native code, one that could not be read is not known", () => {
  const running = { cpu: 1, gil: 2, collecting: false, call: "", quality: 0 };
  equal(activityOf(running, Kind.marker), Activity.native);
  equal(activityOf({ ...running, quality: 4 }, Kind.marker), Activity.unknown);
  equal(activities, 8);
});
