// The model against the plainest way to say the same thing, on recordings at random.
import { sumUp } from "../src/model/call_tree";
import { everything, Filter } from "../src/model/filters";
import { Head, unitOf, weightName, weightsOf } from "../src/model/head";
import { answer } from "../src/model/questions";
import { Model } from "../src/model/selection";
import { activities, Activity, holds } from "../src/model/states";
import { ensure, equal, near, test } from "./harness";
import { randomNumbers } from "./trees";
import { byName, randomStretches, recordingOf, states, Stretch } from "./recordings";

const second = 1e9;
// In the function itself, or in native code (whose names begin with "n") beneath it.
const isIn = (interval: Stretch, name: string) =>
  leaf(interval) === name || interval.stack.map(([at]) => at).filter((at) => !at.startsWith("n")).pop() === name;
const kept = (intervals: Stretch[], passes: (interval: Stretch) => boolean) => intervals.filter(passes);
const sum = (intervals: Stretch[], of: (interval: Stretch) => number) =>
  intervals.reduce((all, interval) => all + of(interval), 0);
const wall = (intervals: Stretch[]) => sum(intervals, (interval) => interval.wall);
const has = (interval: Stretch, ...names: string[]) => interval.stack.some(([name]) => names.includes(name));
const leaf = (interval: Stretch) => (interval.stack.length ? interval.stack[interval.stack.length - 1][0] : "");

function each(run: (intervals: Stretch[], model: Model, seed: number) => void): void {
  for (let seed = 0; seed < 60; ++seed) {
    const intervals = randomStretches(seed);
    run(intervals, new Model(recordingOf(intervals)), seed);
  }
}

test("a recording comes back as it was packed", () => {
  each((intervals, model) => {
    const rows = intervals.slice().sort((a, b) => a.thread - b.thread || a.start - b.start);
    const read = model.recording.intervals;
    equal([Array.from(read.start), Array.from(read.wall), Array.from(read.cpu)], [rows.map((row) => row.start),
      rows.map((row) => row.wall), rows.map((row) => row.cpu)]);
    equal(Array.from(read.samples), rows.map((row) => row.samples));
  });
});

test("filters leave what they say, each alone and all together", () => {
  each((intervals, model) => {
    const f = byName(model.recording, "load");
    const cases: [Filter, (interval: Stretch) => boolean][] = [
      [{ field: "thread", mode: "in", values: [1, 3] }, (s) => s.thread === 1 || s.thread === 3],
      [{ field: "thread", mode: "out", values: [1] }, (s) => s.thread !== 1],
      [{ field: "process", mode: "in", values: [1] }, (s) => s.thread > 1],
      [{ field: "function", mode: "in", values: [f] }, (s) => has(s, "load")],
      [{ field: "function", mode: "out", values: [f] }, (s) => !has(s, "load")],
      [{ field: "module", mode: "in", values: ["m1"] }, (s) => has(s, "main", "load", "f", "g")],
      [{ field: "module", mode: "out", values: ["m0"] }, (s) => !has(s, "nparse")],
      [{ field: "language", mode: "in", values: ["Python"] }, (s) => s.stack.length > 0 && leaf(s) !== "nparse"],
      [{ field: "language", mode: "in", values: ["C++"] }, (s) => leaf(s) === "nparse"],
      [{ field: "state", mode: "in", values: ["idle", "collecting"] }, (s) => s.state === 1 || s.state === 4],
      [{ field: "endpoint", mode: "in", values: ["read_item (app.py:12)", "(stack not read)"] },
        (s) => s.endpoint === 1 || s.endpoint === 2],
      [{ field: "endpoint", mode: "out", values: ["(no endpoint)"] }, (s) => s.endpoint !== 0],
      [{ field: "state", mode: "out", values: ["running"] }, (s) => !holds(states[s.state], "running")],
    ];
    for (const [filter, passes] of cases)
      near(model.select({ ...everything, filters: [filter] }).all.wall, wall(kept(intervals, passes)));
    const some = cases.filter((_, i) => i % 3 === 1);
    near(model.select({ ...everything, filters: some.map(([filter]) => filter) }).all.wall,
      wall(intervals.filter((s) => some.every(([, passes]) => passes(s)))));
  });
});

test("what is shown is one of four choices, beneath every filter", () => {
  each((intervals, model) => {
    const passes = { work: [0, 1], computing: [0], waiting: [1, 2], everything: [0, 1, 2] };
    for (const show of ["work", "computing", "waiting", "everything"] as const) {
      const filters: Filter[] = [{ field: "thread", mode: "out", values: [1] }];
      near(model.select({ filters, show }).all.wall, wall(kept(intervals, (s) =>
        s.thread !== 1 && passes[show].includes(s.doing))));
    }
  });
});

test("a range of time cuts intervals at its ends", () => {
  const one: Stretch = { thread: 0, start: 10 * second, wall: 4 * second, cpu: 2 * second, samples: 8,
    stack: [["f", 1]], state: 0, doing: 0 };
  const model = new Model(recordingOf([one]));
  const all = (...filters: Filter[]) => model.select({ ...everything, filters }).all;
  equal(all({ field: "time", mode: "in", from: 11 * second, to: 12 * second }), { wall: second, cpu: second / 2,
    samples: 2 });
  equal(all({ field: "time", mode: "out", from: 11 * second, to: 12 * second }), { wall: 3 * second, cpu: 1.5 * second,
    samples: 6 });
  equal(all({ field: "time", mode: "in", from: 0, to: 10 * second }), { wall: 0, cpu: 0, samples: 0 });
  equal(all({ field: "time", mode: "in", from: 9 * second, to: 10 * second + 1 }).samples, 1);
  equal(
    all({ field: "time", mode: "in", from: 9 * second, to: 13 * second }, { field: "time", mode: "in",
      from: 12 * second, to: 20 * second }).wall,
    second,
  );
});

test("what is in a range of time and what is not is all of it", () => {
  each((_, model) => {
    const range = { field: "time" as const, from: 5 * second, to: 31 * second };
    const [inside, outside] = (["in", "out"] as const).map((mode) =>
      model.select({ ...everything, filters: [{ ...range, mode }] }).all
    );
    near(inside.wall + outside.wall, model.select(everything).all.wall);
    ensure(Math.abs(inside.cpu + outside.cpu - model.select(everything).all.cpu) < 10, "cpu"); // rounded a stretch
  });
});

test("functions and lines count a stack once, however often they are in it", () => {
  each((intervals, model) => {
    const table = answer(model, "table", everything, { by: "function", natives: true });
    for (const name of ["main", "load", "nparse", "f", "g"]) {
      const f = byName(model.recording, name);
      if (f < 0) continue;
      near(table.self.wall[f], wall(kept(intervals, (s) => isIn(s, name))));
      near(table.total.wall[f], wall(kept(intervals, (s) => has(s, name))));
      near(table.total.samples[f], sum(kept(intervals, (s) => has(s, name)), (s) => s.samples));
    }
    const lines = answer(model, "table", everything, { by: "line", natives: true });
    const { places, functions } = model.recording.catalogue;
    places.line.forEach((line, place) => {
      if (place === 0) return;
      const at = ([name, other]: [string, number]) => name === functions.name[places.function[place]] && other === line;
      near(lines.total.cpu[place], sum(kept(intervals, (s) => s.stack.some(at)), (s) => s.cpu));
    });
  });
});

test("a search adds up stacks with a match in them, once each", () => {
  each((intervals, model) => {
    const found = answer(model, "matches", everything, { pattern: "^(f|load)$" });
    near(found.amount.wall, wall(kept(intervals, (s) => has(s, "f", "load"))));
    equal(answer(model, "matches", everything, { pattern: "(" }).count, 0);
  });
});

// From a tree of answers: the weight of every path from the root, by names.
function paths(model: Model,
  tree: { parent: Uint32Array; label: Uint32Array; total: Float64Array }): Map<string, number>
{
  const names = model.recording.catalogue.functions.name;
  const known: string[] = [names[tree.label[0]]];
  const out = new Map<string, number>();
  for (let node = 1; node < tree.parent.length; ++node) {
    known[node] = `${known[tree.parent[node]]};${names[tree.label[node]]}`;
    out.set(known[node], tree.total[node]);
  }
  return out;
}

const grown = (add: (into: (path: string[], weight: number) => void) => void) => {
  const out = new Map<string, number>();
  add((path, weight) => {
    for (let i = 2; i <= path.length; ++i)
      out.set(path.slice(0, i).join(";"), (out.get(path.slice(0, i).join(";")) ?? 0) + weight);
  });
  return out;
};

function sameWeights(actual: Map<string, number>, expected: Map<string, number>): void {
  for (const [path, weight] of expected) if (weight > 0) near(actual.get(path) ?? 0, weight);
  for (const [path, weight] of actual) if (weight > 0) near(weight, expected.get(path) ?? 0);
}

test("bottom-up is every stack turned round", () => {
  each((intervals, model) => {
    const tree = answer(model, "bottomUp", everything, { weight: "wall", leastShare: 0, path: [] });
    sameWeights(paths(model, tree),
      grown((into) => intervals.forEach((s) => into(["all", ...s.stack.map(([name]) => name).reverse()], s.wall))));
    for (let node = 1; node < tree.parent.length; ++node)
      ensure(tree.total[node] <= tree.total[tree.parent[node]] * (1 + 1e-12), "more than its parent");
  });
});

test("bottom-up along a path grows what the whole would have shown there", () => {
  each((_, model) => {
    const whole = paths(model, answer(model, "bottomUp", everything, { weight: "wall", leastShare: 0, path: [] }));
    const f = byName(model.recording, "f");
    if (f < 0) return;
    const part = paths(model, answer(model, "bottomUp", everything, { weight: "wall", leastShare: 0, path: [f] }));
    for (const [path, weight] of part) near(weight, whole.get(path) as number);
    for (const path of whole.keys()) if (path.startsWith("all;f;")) ensure(part.has(path), path);
  });
});

test("callers and callees of a function are those of its outermost call", () => {
  each((intervals, model) => {
    const f = byName(model.recording, "f");
    if (f < 0) return;
    const { callers, callees } = answer(model, "sandwich", everything, { function: f, weight: "wall", leastShare: 0 });
    const through = kept(intervals, (s) => has(s, "f"));
    near(callers.total[0], wall(through));
    near(callees.total[0], wall(through));
    const cut = (s: Stretch) => s.stack.map(([name]) => name);
    sameWeights(paths(model, callers),
      grown((into) => through.forEach((s) => into(["f", ...cut(s).slice(0, cut(s).indexOf("f")).reverse()], s.wall))));
    sameWeights(paths(model, callees),
      grown((into) => through.forEach((s) => into(cut(s).slice(cut(s).indexOf("f")), s.wall))));
    near(sumUp(callees, callees.self)[0], callees.total[0]);
  });
});

test("bins hold the time of their thread, however fine", () => {
  each((intervals, model, seed) => {
    const { start, end } = model.recording.catalogue;
    const bins = 1 + (seed * 7) % 90;
    const { time } = answer(model, "densities", everything, { rows: [[0], [1], [2], [3]], from: start, to: end, bins });
    const totals = answer(model, "threads", everything, {});
    for (let thread = 0; thread < 4; ++thread) {
      let all = 0;
      for (let i = thread * bins * activities; i < (thread + 1) * bins * activities; ++i) all += time[i];
      const expected = wall(kept(intervals, (s) => s.thread === thread));
      ensure(Math.abs(all - expected) <= 1e-4 * expected + 1, `${all} in bins, ${expected} in intervals, seed ${seed}`);
      near(totals.activity.subarray(thread * activities, (thread + 1) * activities).reduce((a, b) => a + b, 0),
        expected);
      near(totals.cpu[thread], sum(kept(intervals, (s) => s.thread === thread), (s) => s.cpu));
    }
    const merged = answer(model, "densities", everything, { rows: [[0, 1, 2, 3]], from: start, to: end, bins });
    ensure(merged.time.length === bins * activities, "one row");
    const busy = answer(model, "densities", everything, { rows: [[0, 1, 2, 3]], busy: true, from: start, to: end,
      bins });
    equal(Array.from(busy.time), Array.from(merged.time, (ns, i) => (i % activities >= Activity.blocked ? 0 : ns)));
  });
});

test("bins are of the filtered time", () => {
  each((_, model) => {
    const { start, end } = model.recording.catalogue;
    const filters: Filter[] = [{ field: "time", mode: "in", from: start + (end - start) * 0.3,
      to: start + (end - start) * 0.6 }, { field: "state", mode: "in", values: ["running"] }];
    const { time } = answer(model, "densities", { ...everything, filters }, { rows: [[0, 1, 2, 3]], from: start,
      to: end, bins: 50 });
    const expected = model.select({ ...everything, filters }).all.wall;
    ensure(Math.abs(time.reduce((a, b) => a + b, 0) - expected) <= 1e-4 * expected + 1, "sum of bins");
  });
});

test("what events counted is a weight like time, and of times and samples nothing changes", () => {
  const events: Head["events"] = [{ name: "cache-misses", unit: "count" }, { name: "inuse_space", unit: "bytes" }];
  each((intervals, _, seed) => {
    const random = randomNumbers(seed);
    const counted = Array.from(intervals.slice(0, 20),
      (interval): Stretch => ({ ...interval, wall: 0, cpu: 0, samples: 0, event: 1 + random(2),
        value: 1 + random(5_000_000_000) }));
    const plain = new Model(recordingOf(intervals));
    const model = new Model(recordingOf([...intervals, ...counted], events));
    const filters: Filter[] = [{ field: "thread", mode: "in", values: [1, 2] }];
    for (const query of [everything, { ...everything, filters }]) {
      const [before, after] = [plain.select(query).all, model.select(query).all];
      equal([after.wall, after.cpu, after.samples], [before.wall, before.cpu, before.samples]);
      const passes = counted.filter((interval) => query === everything || [1, 2].includes(interval.thread));
      for (const event of [1, 2] as const) {
        const all = sum(passes.filter((interval) => interval.event === event), (interval) => interval.value as number);
        equal(after[`event${event}`], all);
        const { functions } = model.recording.catalogue;
        const rows = answer(model, "table", query, { by: "function", natives: true }).self[`event${event}`];
        const of = (name: string) =>
          sum(passes.filter((interval) => interval.event === event && isIn(interval, name)), (interval) =>
            interval.value as number);
        for (let f = 1; f < functions.name.length; ++f) equal(rows[f], of(functions.name[f]));
      }
    }
  });
});

test("await time is of the whole recording, and in no range of its time", () => {
  const events: Head["events"] = [{ name: "await", unit: "ns", awaits: true }];
  equal(weightName({ events }, "event1"), "await time");
  each((intervals, _, seed) => {
    const random = randomNumbers(seed);
    const waiting = Array.from(intervals.slice(0, 20),
      (interval): Stretch => ({ ...interval, wall: 0, cpu: 0, samples: 0, event: 1,
        value: 1 + random(5_000_000_000) }));
    const plain = new Model(recordingOf(intervals));
    const model = new Model(recordingOf([...intervals, ...waiting], events));
    equal(model.select(everything).all.event1, sum(waiting, (interval) => interval.value as number));
    const from = Math.min(...intervals.map(({ start }) => start));
    const filters: Filter[] = [{ field: "time", mode: "in", from, to: from + 20 * second }];
    const [before, after] = [plain, model].map((one) => one.select({ ...everything, filters }).all);
    equal([after.event1, after.wall, after.cpu, after.samples], [0, before.wall, before.cpu, before.samples]);
    // What is said of moments and of chance is of threads, as if there were no tasks.
    for (const ask of ["moment", "intervals"] as const) {
      const [one, other] = [plain, model].map((of) =>
        JSON.stringify(
          ask === "moment"
            ? answer(of, ask, everything, { threads: [0, 1, 2, 3], from, to: from + second, cpu: -1 })
            : answer(of, ask, everything, { by: "function", weight: "wall", natives: true }).self,
        )
      );
      equal(other, one);
    }
  });
});

test("names and units of weights are those of their events", () => {
  const head = { events: [{ name: "inuse_space", unit: "bytes" as const }] };
  equal(weightsOf(head), ["wall", "cpu", "samples", "event1"]);
  equal(weightsOf(head).map((weight) => weightName(head, weight)), ["wall time", "CPU time", "samples", "inuse_space"]);
  equal(weightsOf(head).map((weight) => unitOf(head, weight)), ["ns", "ns", "samples", "bytes"]);
});
