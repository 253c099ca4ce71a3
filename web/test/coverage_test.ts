import { Coverage } from "../src/layout/coverage";
import { rgbOf } from "../src/views/parts/pixel_rows";
import { ensure, equal, test } from "./harness";
import { randomNumbers } from "./trees";

const random = randomNumbers(7);

const pixels = (coverage: Coverage) => {
  const bytes = new Uint8ClampedArray(coverage.rows * coverage.width * 4);
  coverage.write(bytes);
  return Array.from({ length: bytes.length / 4 }, (_, i) => Array.from(bytes.subarray(i * 4, i * 4 + 4)));
};

test("a box has its part of the pixels at its ends", () => {
  const coverage = new Coverage(4);
  coverage.row();
  coverage.add(0.5, 2, 0x102030, 1);
  equal(pixels(coverage), [[16, 32, 48, 128], [16, 32, 48, 255], [16, 32, 48, 128], [0, 0, 0, 0]]);
});

test("of boxes within one pixel each gives its part of the colour", () => {
  const coverage = new Coverage(1);
  coverage.row();
  coverage.add(0, 0.25, 0xff0000, 1);
  coverage.add(0.25, 0.75, 0x0000ff, 1);
  equal(pixels(coverage), [[64, 0, 191, 255]]);
});

test("boxes that begin before the first pixel or end behind the last one are cut", () => {
  const coverage = new Coverage(2);
  coverage.row();
  coverage.add(-5, 6, 0xffffff, 0.5);
  coverage.add(1, 1e9, 0xffffff, 1);
  equal(pixels(coverage), [[255, 255, 255, 128], [255, 255, 255, 255]]);
});

test("rows are beneath each other, and empty when they are used again", () => {
  const coverage = new Coverage(3);
  for (let round = 0; round < 2; ++round) {
    coverage.clear();
    for (let row = 0; row < 5; ++row) {
      coverage.row();
      if ((row + round) % 2) coverage.add(0, 3, 0x010101 * row, 1);
    }
    equal(pixels(coverage).map(([, , , alpha]) => alpha), Array.from({ length: 15 }, (_, i) =>
      (Math.floor(i / 3) + round) % 2 ? 255 : 0));
  }
});

test("what is covered is as much as the boxes are wide", () => {
  for (let round = 0; round < 200; ++round) {
    const coverage = new Coverage(50);
    coverage.row();
    let x = 0;
    let widths = 0;
    while (x < 49) {
      const width = Math.min(50 - x, random(300) / 100 + 0.01);
      coverage.add(x, width, 0x808080, 1);
      widths += width;
      x += width;
    }
    const sum = pixels(coverage).reduce((all, [, , , alpha]) => all + alpha / 255, 0);
    ensure(Math.abs(sum - widths) < 0.2, `${sum} of ${widths}`);
  }
});

test("colours of the style sheet are numbers", () => {
  equal(["#fff", "#12ab9f", "rgb(1, 2, 3)"].map(rgbOf), [0xffffff, 0x12ab9f, 0x010203]);
});
