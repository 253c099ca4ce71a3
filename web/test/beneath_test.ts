// What is beneath Python, against the plainest way to say the same.
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { areMost } from "../src/model/questions/beneath";
import { everywhere } from "../src/model/questions/wait_rows";
import { withoutInherited } from "../src/model/recording";
import { callTree } from "../src/model/call_tree";
import { Model } from "../src/model/selection";
import { ensure, equal, near, test } from "./harness";
import { byName, randomStretches, recordingOf, Stretch } from "./recordings";

const us = 1000;
const [running, blocked, collecting] = [0, 1, 4]; // of states
const interval = (thread: number, from: number, to: number, names: string[], state: number, doing = 0): Stretch => ({
  thread,
  start: from * us,
  wall: (to - from) * us,
  cpu: 0,
  samples: to - from,
  stack: names.map((name) => [name, 1]),
  state,
  doing,
});
const isNative = (name: string) => name.startsWith("n");

test("without rows for native code beneath Python its time is the Python function's alone", () => {
  for (let seed = 0; seed < 40; ++seed) {
    const intervals = randomStretches(seed);
    const model = new Model(recordingOf(intervals));
    const [self, total] = [new Map<string, number>(), new Map<string, number>()];
    const add = (to: Map<string, number>, name: string, wall: number) => to.set(name, (to.get(name) ?? 0) + wall);
    for (const { stack, wall } of intervals) {
      const names = stack.map(([name]) => name);
      const owner = names.reduce((found, name, i) => (isNative(name) ? found : i), -1);
      const first = names.findIndex((name) => !isNative(name));
      if (names.length > 0) add(self, names[owner < 0 ? names.length - 1 : owner], wall);
      for (const name of Array.from(new Set(names.filter((name, i) => !isNative(name) || first < 0 || i < first))))
        add(total, name, wall);
    }
    const found = answer(model, "table", everything, { by: "function", natives: false });
    const { low, high } =
      answer(model, "intervals", everything, { by: "function", weight: "wall", natives: false }).self;
    model.recording.catalogue.functions.name.forEach((name, f) => {
      if (f === 0) return;
      near(found.self.wall[f], self.get(name) ?? 0);
      near(found.total.wall[f], total.get(name) ?? 0);
      const share = (self.get(name) ?? 0) / found.total.wall[0];
      ensure(low[f] <= share + 1e-9 && share <= high[f] + 1e-9,
        `${name}: ${share} is not within ${low[f]} and ${high[f]}`);
    });
  }
});

test("beneath a function the native one with most of its time is named, and its part", () => {
  for (let seed = 0; seed < 40; ++seed) {
    const intervals = randomStretches(seed);
    const model = new Model(recordingOf(intervals));
    const { native, share } = answer(model, "beneath", everything, { by: "function", weight: "wall" });
    const own = new Map<string, number>();
    const within = new Map<string, Map<string, number>>();
    for (const { stack, wall } of intervals) {
      const names = stack.map(([name]) => name);
      const at = names.reduce((found, name, i) => (isNative(name) ? found : i), -1);
      if (at < 0) continue;
      const beneath = names.slice(at + 1).filter(isNative).pop();
      own.set(names[at], (own.get(names[at]) ?? 0) + wall);
      if (!beneath) continue;
      const sums = within.get(names[at]) ?? new Map<string, number>();
      within.set(names[at], sums.set(beneath, (sums.get(beneath) ?? 0) + wall));
    }
    ensure(within.size > 0 || seed > 0, "no native code at all");
    for (const [name, sums] of Array.from(within)) {
      const most = Math.max(...Array.from(sums.values()));
      if (most === 0) continue;
      const f = byName(model.recording, name);
      equal(sums.get(model.recording.catalogue.functions.name[native[f]]), most);
      near(share[f], most / (own.get(name) as number));
    }
  }
});

test("without native frames the library of most samples on a CPU is named, and only then", () => {
  const recording = recordingOf([
    interval(0, 0, 95, ["main", "dot"], collecting),
    interval(0, 95, 100, ["main", "dot"], running),
    interval(0, 100, 900, ["main", "dot"], blocked), // no time on a CPU
    interval(0, 900, 926, ["main", "half"], collecting),
    interval(0, 926, 950, ["main", "half"], running),
  ]);
  recording.catalogue.states[collecting].library = "libblas";
  const model = new Model(recording);
  const { library, share } = answer(model, "beneath", everything, { by: "line", weight: "wall" });
  const row = (name: string) => Array.from(recording.catalogue.places.function).indexOf(byName(recording, name));
  equal([library[row("dot")], share[row("dot")]], ["libblas", 0.95]);
  equal(library[row("half")], "");
  const early = { ...everything,
    filters: [{ field: "time" as const, mode: "in" as const, from: 95 * us, to: 100 * us }] };
  equal(answer(model, "beneath", early, { by: "line", weight: "wall" }).library[row("dot")], "");
});

// The same numbers as tests/report/native_report_test.cpp has.
test("so few samples prove nothing", () => {
  equal([[95, 100], [26, 50], [4, 4], [10, 10], [0, 0]].map(([some, counts]) => areMost(some, counts)), [true, false,
    false, true, false]);
});

test("a wait has its native function, and what of it nobody knows", () => {
  const socket = { words: "a socket", place: ["get", 1] as [string, number] };
  const model = new Model(recordingOf([
    { ...interval(0, 0, 10, ["main", "get", "npoll"], blocked, 2), wait: socket },
    { ...interval(0, 10, 16, ["main", "get", "nread"], blocked, 4), wait: socket },
    { ...interval(1, 0, 4, ["main", "get"], blocked, 1), wait: socket },
  ]));
  const [row] = answer(model, "waitRows", everything, { ...everywhere, most: 9, detail: "place" }).rows;
  equal([row.wall, row.idle, row.unknown].map((ns) => ns / us), [20, 10, 6]);
  equal([model.recording.catalogue.functions.name[row.native], row.nativeShare], ["npoll", 0.5]);
});

test("what forked children inherited is left out from the mark on, and alike becomes one", () => {
  // main(1) forks(2) [mark(3) work(4)]; other(5) [mark(3) work(4) deep(6)]
  const lines = callTree(Uint8Array.from([0, 1, 2, 3, 4, 1, 2, 3, 4]), Uint8Array.from([0, 1, 2, 3, 4, 5, 3, 4, 6]));
  const cut = withoutInherited(lines, (label) => label === 3);
  if (!cut) throw new Error("nothing was left out");
  const path = (node: number): number[] => (node === 0 ? [] : [...path(cut.tree.parent[node]), cut.tree.label[node]]);
  equal(Array.from(cut.nodeOf, path), [[], [1], [1, 2], [3], [3, 4], [5], [3], [3, 4], [3, 4, 6]]);
  equal(withoutInherited(lines, (label) => label === 9), null);
});
