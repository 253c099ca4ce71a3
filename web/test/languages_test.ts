// In which language a function is written, by what is known of it.
import { languageOf } from "../src/model/languages";
import { Kind, Label } from "../src/model/tree";
import { equal, test } from "./harness";

const native = (full: string, file = ""): Label => ({ name: full, full, file, line: 0, module: "lib",
  kind: Kind.native });

test("a file's name tells, and a name of C++ in a header", () => {
  equal(
    [native("run", "src/run.rs"), native("f", "a.c"), native("std::f()", "a.h"), native("f", "fast.pyx")].map(
      languageOf,
    ),
    ["Rust", "C", "C++", "Cython"],
  );
});

test("Cython's functions are known by their names, also without a file", () => {
  equal(languageOf(native("sklearn.tree._criterion.Gini.children_impurity")), "Cython");
  equal(languageOf(native("pandas._libs.algos.take", "pandas/_libs/algos.c")), "Cython");
});

test("the interpreter is C without its debug information too", () => {
  equal(["python3", "libpython3", "pythonista"].map((module) => languageOf({ ...native("list_append"), module })), ["C",
    "C", "native"]);
});

test("what a compiler split off a function of C is no Cython", () => {
  equal(
    ["memcpy", "parse.cold", "parse.part.0", "parse.constprop.1.isra.2", "libfoo.so+0x1a40"].map((name) =>
      languageOf(native(name))
    ),
    Array(5).fill("native"),
  );
});
