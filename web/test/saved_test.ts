// Files for other tools, on recordings at random: every sum that goes in comes out.
import { everything } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { escapedFrame } from "../src/model/questions/saved";
import { Model } from "../src/model/selection";
import { ensure, equal, test } from "./harness";
import { randomStretches, recordingOf } from "./recordings";

test("what separates frames in collapsed stacks is escaped within names", () => {
  equal(escapedFrame("a;b\\c\nd\te\x7f"), "a\\x3bb\\\\c\\nd\\x09e\\x7f");
  equal(escapedFrame("größe → 日本"), "größe → 日本");
});

test("collapsed stacks and threads for speedscope weigh what the recording weighs", () => {
  for (let seed = 0; seed < 20; ++seed) {
    const intervals = randomStretches(seed);
    const model = new Model(recordingOf(intervals));
    for (const by of ["function", "line"] as const) {
      for (const weight of ["wall", "cpu", "samples"] as const) {
        const whole = intervals.reduce((sum, interval) => sum + interval[weight], 0);
        const lines = answer(model, "collapsed", everything, { by, weight }).join("").split("\n").slice(0, -1);
        equal(lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0), whole);
        const file = JSON.parse(answer(model, "speedscope", everything, { by, weight, title: "\"a\"" }).join("")) as {
          name: string;
          shared: { frames: unknown[] };
          profiles: { samples: number[][]; weights: number[]; endValue: number }[];
        };
        equal(file.name, "\"a\"");
        equal(file.profiles.reduce((sum, profile) => sum + profile.endValue, 0), whole);
        for (const { samples, weights } of file.profiles) {
          equal(samples.length, weights.length);
          ensure(samples.every((stack) => stack.every((frame) => frame < file.shared.frames.length)),
            "a frame that is not there");
        }
      }
    }
  }
});
