import cases from "../../tests/cases/numbers.json";
import { countWords, fit, fitName, pointsWords, spanWords, shareWords, timeWords, weightWords,
  wrap } from "../src/words";
import { ensure, equal, test } from "./harness";

const one = (text: string) => Array.from(text).length; // every character is a pixel wide

test("numbers are written as in reports", () => {
  equal(cases.times.map(([ns]) => weightWords(ns as number, "ns")), cases.times.map(([, words]) => words));
  equal(cases.bytes.map(([bytes]) => weightWords(bytes as number, "bytes")), cases.bytes.map(([, words]) => words));
  equal(cases.counts.map(([count]) => countWords(count as number)), cases.counts.map(([, words]) => words));
  equal(cases.shares.map(([share]) => shareWords(share as number, 1)), cases.shares.map(([, words]) => words));
  equal(cases.points.map(([share]) => pointsWords(share as number)),
    cases.points.map(([, words]) => `${(words as string).replace("-", "−")} points`));
});

test("weights have a unit", () => {
  equal([weightWords(1, "samples"), weightWords(12345, "samples"), weightWords(12345, "count")], ["1 sample",
    "12,345 samples", "12,345"]);
});

test("moments have the digits that tell them apart", () => {
  equal([timeWords(40_023_400_000, 1e6), timeWords(40_023_400_000, 1e9), timeWords(0, 1e3), timeWords(1500, 1),
    timeWords(123_456_000_000, 1e6)], ["40.023 s", "40.0 s", "0 s", "1.500 µs", "123.456 s"]);
  equal([timeWords(7_500_400_000_000, 1e9), timeWords(7_500_400_000_000, 1e6)], ["7,500 s", "7500.400 s"]);
  equal([spanWords(2e9, 3.5e9), spanWords(40.02e9, 40.03e9), spanWords(0, 1e6)], ["2.00 s to 3.50 s",
    "40.020 s to 40.030 s", "0 s to 1.00 ms"]);
});

test("a part of nothing is no share, and a change of nothing has no sign", () => {
  equal([shareWords(0, 10), shareWords(1, 0), pointsWords(0.00001)], ["0 %", "0 %", "±0 points"]);
});

test("a name that fits is whole, else it ends in dots, else there is none", () => {
  equal([fit("handler", 7, one), fit("handler", 6, one), fit("handler", 3, one), fit("handler", 2, one)], ["handler",
    "handl…", "ha…", ""]);
});

test("a name is full where it has room, and one without a name keeps its address", () => {
  const name = (room: number) => fitName("Op::run", "app::Op<T>::run", room, one);
  equal([name(15), name(14), name(6)], ["app::Op<T>::run", "Op::run", "Op::r…"]);
  const unnamed = (room: number) => fitName("libfoo.so+0x1a40", "libfoo.so+0x1a40", room, one);
  equal([unnamed(16), unnamed(12), unnamed(8), unnamed(5)], ["libfoo.so+0x1a40", "libf…+0x1a40", "…+0x1a40", "libf…"]);
});

test("characters of two code units are not torn", () => equal(fit("ab👩👩👩", 4, one), "ab👩…"));

test("fitting a very long name measures little of it", () => {
  let measured = 0;
  fit("x".repeat(1_000_000), 100, (text) => {
    measured += text.length;
    return text.length * 7;
  });
  ensure(measured < 2000, `${measured} characters measured`);
});

test("lines are broken at spaces", () => equal(wrap("aa bb cccccc d", 5, one), ["aa bb", "cccccc", "d"]));
