// The time of files and of their lines, of a table by line.
import { everything, Query } from "../src/model/filters";
import { answer } from "../src/model/questions";
import { Model } from "../src/model/selection";
import { filesOf, linesOf } from "../src/model/source_times";
import { equal, test } from "./harness";
import { recordingOf, Stretch } from "./recordings";

const interval = (start: number, wall: number, ...stack: [string, number][]): Stretch => ({ thread: 0,
  start: start * 1e6, wall: wall * 1e6, cpu: 0, samples: 1, stack, state: 0, doing: 0 });

test("a file has the time of its own lines, a line also that of what it calls", () => {
  const model = new Model(recordingOf([
    interval(0, 2, ["a", 1], ["b", 7]),
    interval(2, 3, ["a", 2], ["b", 7]),
    interval(5, 4, ["a", 1]),
  ]));
  const { catalogue } = model.recording;
  const table = answer(model, "table", everything, { by: "line", natives: true });
  const files = filesOf(catalogue, table, "wall");
  const fileFor = (name: string) => catalogue.functions.file[catalogue.functions.name.indexOf(name)];
  equal(files.reduce((sum, { self }) => sum + self, 0), 9e6);
  equal(files.map(({ self }) => self), files.map(({ self }) => self).sort((a, b) => b - a));
  const lines = (name: string) =>
    linesOf(catalogue, table, "wall", fileFor(name)).flatMap(({ self, total, samples, places }, line) =>
      places.map((place) => [catalogue.functions.name[catalogue.places.function[place]], line, self, total, samples])
    );
  equal(lines("b").filter(([called]) => called === "b"), [["b", 7, 5e6, 5e6, 2]]);
  equal(lines("a").filter(([called]) => called === "a"), [["a", 1, 4e6, 6e6, 2], ["a", 2, 0, 3e6, 1]]);
});

test("what a filter leaves without time is in no file, and a file without time has no lines", () => {
  const model = new Model(recordingOf([interval(0, 2, ["a", 1]), interval(2, 3, ["bb", 7])]));
  const { catalogue } = model.recording;
  const query: Query = { ...everything, filters: [{ field: "time", mode: "in", from: 0, to: 1e6 }] };
  const table = answer(model, "table", query, { by: "line", natives: true });
  equal(filesOf(catalogue, table, "wall").map(({ self }) => self), [1e6]);
  equal(linesOf(catalogue, table, "wall", "nowhere.py"), []);
});
