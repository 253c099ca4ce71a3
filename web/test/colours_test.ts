import { colourClass, differenceClass, hash } from "../src/colours";
import { Kind } from "../src/model/tree";
import { ensure, equal, test } from "./harness";

const label = (name: string, module: string, kind = Kind.python) => ({ name, full: name, module, kind, file: "",
  line: 0 });

// The published test vectors of FNV-1a, 32 bits.
test("the hash is FNV-1a over UTF-8", () =>
  equal([hash(""), hash("a"), hash("foobar"), hash("é")], [0x811c9dc5, 0xe40c292c, 0xbf9cf968, 0x1e9de8c1]));

test("one module has one hue, whatever the function, file or kind of picture", () => {
  const hues = ["loads", "dumps", "decode"].map((name) => colourClass(label(name, "json")).slice(0, -1));
  equal(new Set(hues).size, 1);
  ensure(colourClass(label("f", "json", Kind.native)).startsWith("n"), "native");
  equal([colourClass(label("f", "", Kind.kernel)), colourClass(label("f", "", Kind.marker))], ["k", "m"]);
});

// What exporters/flame_colours_test.cpp expects too.
test("colours are the exporter's", () => {
  equal([colourClass(label("loads", "json")), colourClass(label("main", "app")), colourClass(label("名前", "módulo"))],
    ["p14a", "p6b", "p10c"]);
});

test("the interpreter's own C has a colour of Python", () => {
  equal(["python3", "libpython3", "python_magic"].map((module) => colourClass(label("f", module, Kind.native))[0]), [
    "p",
    "p",
    "n",
  ]);
});

test("hues of many modules are spread over the palette", () => {
  const used = new Set(Array.from({ length: 200 }, (_, i) => colourClass(label("f", `module${i}`)).slice(0, -1)));
  ensure(used.size === 20, `${used.size} of 20 hues`);
});

test("a difference keeps its sign", () => equal([0, 3, -5].map(differenceClass), ["d0", "r3", "b5"]));
