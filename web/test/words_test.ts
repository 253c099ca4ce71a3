import { countWords, fit, fitName, pointsWords, spanWords, shareWords, timeWords, weightWords, wrap } from "../src/words";
import { ensure, equal, test } from "./harness";

const one = (text: string) => Array.from(text).length; // every character is a pixel wide

test("weights have three digits and a unit", () => {
  const ns = (value: number) => weightWords(value, "ns");
  equal([0, 7, 999, 1000, 999499, 999600, 1.5e6, 12345678, 999.6e6, 59e9, 1234e9].map(ns),
    ["0 s", "7.00 ns", "999 ns", "1.00 µs", "999 µs", "1.00 ms", "1.50 ms", "12.3 ms", "1.00 s", "59.0 s", "1,234 s"]);
  equal([weightWords(1, "samples"), weightWords(12345, "samples")], ["1 sample", "12,345 samples"]);
  equal([weightWords(1, "count"), weightWords(12345, "count")], ["1", "12,345"]);
  equal([0, 1, 999, 1000, 12345, 999_600, 1_230_000_000].map((value) => weightWords(value, "bytes")),
    ["0 bytes", "1 byte", "999 bytes", "1.00 kB", "12.3 kB", "1.00 MB", "1.23 GB"]);
});

test("moments have the digits that tell them apart", () => {
  equal([timeWords(40_023_400_000, 1e6), timeWords(40_023_400_000, 1e9), timeWords(0, 1e3), timeWords(1500, 1), timeWords(123_456_000_000, 1e6)],
    ["40.023 s", "40.0 s", "0 s", "1.500 µs", "123.456 s"]);
  equal([spanWords(2e9, 3.5e9), spanWords(40.02e9, 40.03e9), spanWords(0, 1e6)], ["2.00 s to 3.50 s", "40.020 s to 40.030 s", "0 s to 1.00 ms"]);
});

test("shares are never rounded to nothing", () => {
  equal([shareWords(0, 10), shareWords(1, 1e9), shareWords(1, 3), shareWords(3, 3), shareWords(1, 0), shareWords(1, 2000)],
    ["0 %", "< 0.01 %", "33.3 %", "100 %", "0 %", "0.05 %"]);
});

test("counts are grouped", () => equal([0, 999, 1000, 1234567].map(countWords), ["0", "999", "1,000", "1,234,567"]));

test("changes carry their sign", () => equal([0.1, -0.025, 0.00001].map(pointsWords), ["+10.0 points", "−2.50 points", "±0 points"]));

test("a name that fits is whole, else it ends in dots, else there is none", () => {
  equal([fit("handler", 7, one), fit("handler", 6, one), fit("handler", 3, one), fit("handler", 2, one)], ["handler", "handl…", "ha…", ""]);
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
