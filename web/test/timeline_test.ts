// The timeline's geometry, the order of its rows, and what the keys point at.
import { Pointed, stepped } from "../src/layout/pointed";
import { heights, moved, paintRows, shortestSight, sightOf, sightText, stackOrder, ticks, timeAt, within, xOf,
  zoomed } from "../src/layout/timeline";
import { rowsAround, threadPasses, TimelineRow, timelineRows, visibleRows } from "../src/layout/timeline_rows";
import { Catalogue } from "../src/model/catalogue";
import { Filter } from "../src/model/filters";
import { ThreadTotals } from "../src/model/questions/threads";
import { activities, Activity } from "../src/model/states";
import { ensure, equal, near, test } from "./harness";
import { randomNumbers } from "./trees";

const whole = { from: -5_000_000, to: 60_000_000_000 };

test("what is in sight never leaves the recording, however it is zoomed and moved", () => {
  const random = randomNumbers(3);
  let sight = whole;
  for (let i = 0; i < 2000; ++i) {
    const around = timeAt(random(1000), sight, 1000);
    const next = random(2)
      ? zoomed(sight, around, 0.2 + random(20) / 10, whole)
      : moved(sight, (random(4000) - 2000) * 1e6, whole);
    ensure(next.from >= whole.from && next.to <= whole.to && next.to - next.from >= shortestSight - 1,
      JSON.stringify(next));
    sight = next;
  }
});

test("the moment under the pointer stays there", () => {
  const sight = { from: 10e9, to: 30e9 };
  for (const x of [0, 123, 500, 999]) {
    const time = timeAt(x, sight, 1000);
    near(xOf(time, sight, 1000), x);
    ensure(Math.abs(xOf(time, zoomed(sight, time, 0.37, whole), 1000) - x) < 0.01, "moved away");
  }
});

test("a sight goes through the address and comes back, and nonsense is the whole", () => {
  const sight = { from: 1_500_000, to: 2_500_000 };
  equal(sightOf(sightText(sight, whole), whole), sight);
  equal(sightText(whole, whole), "");
  for (const text of ["", "x", "5-1", "1-", "--", "9".repeat(30) + "-1"]) equal(sightOf(text, whole), whole);
  equal(sightOf("-9-99000000000", whole), whole);
  equal(within({ from: 3, to: 4 }, { from: 0, to: 5 }), { from: 0, to: 5 });
});

test("ticks are apart, round, and say one unit", () => {
  const texts = (from: number, to: number, width = 1000) => ticks({ from, to }, width, 90).map(({ text }) => text);
  equal(texts(0, 6.2e9), ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s", "6 s"]);
  equal(texts(0, 4e6).slice(0, 3), ["0.0 ms", "0.5 ms", "1.0 ms"]);
  equal(texts(5e9, 5.02e9).slice(0, 3), ["5.000 s", "5.002 s", "5.004 s"]);
  const random = randomNumbers(4);
  for (let i = 0; i < 500; ++i) {
    const from = random(1e9) * 50;
    const width = 60 + random(3000);
    const sight = { from, to: from + 10_000 + random(1e9) * (1 + random(40)) };
    const all = ticks(sight, width, 90);
    for (let j = 1; j < all.length; ++j)
      ensure(xOf(all[j].time, sight, width) - xOf(all[j - 1].time, sight, width) >= 89.9, "too close");
    equal(new Set(all.map(({ text }) => text)).size, all.length);
  }
});

test("a row is as full as its time, and nothing that ran is too little to be seen", () => {
  const random = randomNumbers(5);
  const out = new Uint8Array(activities);
  for (let i = 0; i < 2000; ++i) {
    const time = Float32Array.from({ length: activities }, () => (random(3) ? random(40) : 0));
    const height = 8 + random(20);
    heights(time, 0, 100, height, out);
    const sum = out.reduce((a, b) => a + b, 0);
    ensure(sum <= height, `${sum} of ${height}`);
    stackOrder.forEach((activity, at) => {
      if (time[activity] > 0 && activity !== Activity.blocked) ensure(out[at] >= 1, "invisible");
      if (time[activity] === 0) equal(out[at], 0);
    });
    const full = time.reduce((a, b) => a + b, 0) / 100;
    if (full <= 1) ensure(Math.abs(sum - full * height) <= activities, "height");
  }
});

test("pixels are painted from the bottom, what is computed first", () => {
  const time = new Float32Array(2 * activities);
  time[Activity.blocked] = 5;
  time[Activity.python] = 5;
  const out = new Uint32Array(2 * 10);
  paintRows(time, 2, [10], 10, Uint32Array.from({ length: activities }, (_, activity) => 100 + activity), out);
  equal(Array.from(out).filter((_, i) => i % 2 === 0), [...Array(5).fill(106), ...Array(5).fill(100)]);
  equal(Array.from(out).filter((_, i) => i % 2 === 1), Array(10).fill(0));
});

// Threads of two processes; the first of each is its main thread.
function made(cpu: number[], computing: number[], waiting: number[]): [Catalogue, ThreadTotals] {
  const threads = cpu.map((_, i) => ({ label: `Thread t${i}`, name: `t${i}`, process: i % 2, recording: 0,
    tid: i < 2 ? 100 + i : 1000 + i, interpreter: 0, python: true, start: 0, end: -1 })
  );
  const processes = [100, 101].map((pid) => ({ label: `process ${pid}`, pid, parent: -1, commandLine: "", python: "",
    howEnded: "", start: 0, end: -1 })
  );
  const activity = new Float64Array(cpu.length * activities);
  computing.forEach((ns, thread) => {
    activity[thread * activities + Activity.python] = ns;
  });
  waiting.forEach((ns, thread) => {
    activity[thread * activities + Activity.blocked] = ns;
  });
  return [{ threads, processes } as unknown as Catalogue, { activity, cpu: Float64Array.from(cpu),
    samples: Float64Array.from(cpu, (_, i) => (computing[i] + waiting[i] > 0 ? 1 : 0)) }];
}
const rowShape = (row: TimelineRow) =>
  row.kind === "thread" ? row.thread : row.kind === "cpu" ? -1 : `${row.kind}:${row.threads.join()}`;
const shape = (catalogue: Catalogue, totals: ThreadTotals, filters: Filter[] = [], open = false) =>
  timelineRows(catalogue, totals, filters, open).rows.map(rowShape);

test("threads stand by process, the busiest first; those that only wait are one row", () => {
  const cpu = [0, 3, 9, 1, 0, 0, 0, 0];
  const waiting = [100, 100, 1, 100, 1000, 1000, 1000, 1000];
  const [catalogue, totals] = made(cpu, [0, 5, 9, 1, 1, 0, 4, 0], waiting);
  equal(shape(catalogue, totals), ["process:2,0", 2, 0, "process:1,3", 1, 3, "folded:6,4,5,7"]);
  equal(shape(catalogue, totals, [], true), ["process:2,0", 2, 0, "process:1,3", 1, 3, "folded:6,4,5,7", 6, 4, 5, 7]);
  const rows = timelineRows(catalogue, totals, [], false);
  equal(rows.busiest, 2);
  equal(rows.rows.flatMap((row) => (row.kind === "folded" ? [row.ran] : [])), [5]);
});

test("what a filter names has a row, and nothing is missing without a count", () => {
  const [catalogue, totals] = made([0, 3, 0, 0, 0, 0, 0], [0, 3, 0, 0, 0, 0, 0], [9, 9, 9, 9, 9, 9, 0]);
  equal(shape(catalogue, totals), ["process:1", 1, "process:0", 0, "folded:2,3,4,5"]);
  equal(shape(catalogue, totals, [{ field: "thread", mode: "in", values: [3] }]), [3]);
  const { filteredOut, without } = timelineRows(catalogue, totals, [{ field: "thread", mode: "out", values: [3, 4] }],
    false);
  equal([filteredOut, without], [2, 1]);
  // Three that do not overlap.
  equal(
    shape(catalogue, totals, [{ field: "thread", mode: "out", values: [3] }, { field: "process", mode: "in",
      values: [0] }]),
    [0, 2, 4],
  );
  ensure(!threadPasses(catalogue, [{ field: "process", mode: "out", values: [0] }], 2), "process");
  equal(
    timelineRows(catalogue, { ...totals, cpu: totals.cpu.map(() => 0), activity: totals.activity.map(() => 0) }, [],
      false).busiest,
    -1,
  );
});

test("without CPU times the busiest is the one that was found computing most", () => {
  const [catalogue, totals] = made([0, 0, 0], [5, 2, 7], [0, 0, 0]);
  equal(shape(catalogue, totals), ["process:2,0", 2, 0, "process:1", 1]);
});

test("at most nine rows are visible, at least three where there are as many, and what is near is asked for", () => {
  equal([visibleRows(100, 50), visibleRows(100, 20), visibleRows(100, 5), visibleRows(2, 50), visibleRows(0, 50)], [9,
    6, 3, 2, 1]);
  const rows = Array.from({ length: 20 }, (_, i) => i);
  equal(rowsAround(rows, 0, 9), { first: 0, rows: rows.slice(0, 12) });
  equal(rowsAround(rows, 6.5, 15.5), { first: 3, rows: rows.slice(3, 19) });
  equal(rowsAround(rows, 18, 27), { first: 15, rows: rows.slice(15) });
});

test("keys move the cursor within the rows and the recording, and with Shift choose a range", () => {
  const sight = { from: 10, to: 30 };
  const recorded = { from: 0, to: 100 };
  let pointed: Pointed = { cursor: null, brush: null, anchor: null };
  const step = (rows: number, time = 0, choosing = false) => {
    pointed = stepped(pointed, { rows, time, choosing }, 3, sight, recorded);
    return [pointed.cursor?.row, pointed.cursor?.time, pointed.brush && [pointed.brush.from, pointed.brush.to]];
  };
  equal(step(1), [0, 20, null]);
  equal(step(6), [2, 20, null]);
  equal(step(-1), [1, 20, null]);
  equal(step(0, 8, true), [1, 28, [20, 28]]);
  equal(step(0, -20, true), [1, 8, [8, 20]]);
  equal(step(1), [2, 8, [8, 20]]);
  equal(step(0, -20), [2, 0, null]);
  equal(step(0, 200, true), [2, 100, [0, 100]]);
});
