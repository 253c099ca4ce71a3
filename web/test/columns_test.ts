import { Columns, unzigzag } from "../src/model/columns";
import { ensure, equal, test } from "./harness";

const columns = (layout: "planes" | "words", width: number, rows: number, bytes: number[]) =>
  new Columns([["c", layout, width, rows]], Uint8Array.from(bytes));
const read = (...args: Parameters<typeof columns>) => Array.from(columns(...args).numbers("c"));

test("planes hold the lowest bytes first", () => {
  equal(read("planes", 1, 2, [1, 255]), [1, 255]);
  equal(read("planes", 2, 2, [1, 2, 3, 4]), [0x301, 0x402]);
  equal(read("planes", 3, 1, [1, 2, 3]), [0x30201]);
  equal(read("planes", 4, 1, [255, 255, 255, 255]), [0xffffffff]);
  equal(read("planes", 6, 1, [1, 0, 0, 0, 0, 1]), [2 ** 40 + 1]);
});

test("words are little-endian", () => {
  equal(read("words", 2, 2, [1, 2, 3, 4]), [0x201, 0x403]);
  equal(read("words", 4, 1, [0, 0, 0, 128]), [2 ** 31]);
  equal(read("words", 8, 1, [1, 0, 0, 0, 1, 0, 0, 0]), [2 ** 32 + 1]);
});

test("signs come back", () => equal([0, 1, 2, 3, 4, 2 ** 41 + 1].map(unzigzag), [0, -1, 1, -2, 2, -(2 ** 40) - 1]));

test("a column that is missing or too short is an error, not a zero", () => {
  for (const wrong of [() => columns("planes", 1, 3, [1, 2]), () => columns("planes", 1, 1, [1]).numbers("other")]) {
    let message = "";
    try {
      wrong();
    } catch (error) {
      message = (error as Error).message;
    }
    ensure(message.includes("damaged"), message);
  }
});
