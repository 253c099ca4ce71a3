import { Pattern } from "../src/model/pattern";
import { Kind, Tree } from "../src/model/tree";
import { matchedWeight, nextMatch, parsePattern, search } from "../src/model/search";
import { ensure, equal, test } from "./harness";
import { nodeNamed, randomTree, treeOf } from "./trees";

const share = (tree: Tree, pattern: string, top = 0) =>
  matchedWeight(tree, tree.weights.total, search(tree, pattern), top);
const label = { name: "JSONEncoder.encode", full: "JSONEncoder.encode", file: "/usr/lib/json/encoder.py", line: 12,
  module: "json", kind: Kind.python };
const matches = (pattern: string) => {
  const parsed = parsePattern(pattern);
  return "test" in parsed && parsed.test(label);
};

test("a pattern finds a native name by its short and by its full form", () => {
  const native = { name: "DynamicOp::schedule", full: "<bytewax::outputs::DynamicOp<T> as timely::Schedule>::schedule",
    file: "", line: 0, module: "bytewax", kind: Kind.native };
  for (const pattern of ["bytewax::", "^DynamicOp::schedule$", "timely", "module:bytewax"]) {
    const parsed = parsePattern(pattern);
    ensure("test" in parsed && parsed.test(native), pattern);
  }
});

test("a match inside a match counts once", () => {
  const tree = treeOf("a;b;a;c 10", "a 5", "d;a 20", "d 65");
  equal(share(tree, "^a$"), 35);
});

test("the share within a zoomed frame counts only what is beneath it", () => {
  const tree = treeOf("a;b;a;c 10", "a 5", "d;a 20", "d 65");
  equal(share(tree, "^a$", nodeNamed(tree, "d")), 20);
  equal(share(tree, "^d$", nodeNamed(tree, "d")), 85);
});

test("a pattern may name the module, the file, or both", () => {
  ensure(matches("encode"), "name");
  ensure(matches("json.JSONEnc"), "module and name");
  ensure(matches("module:^json$"), "module");
  ensure(matches("file:encoder.py:12$"), "file and line");
  ensure(!matches("encoder.py"), "files are looked at only when asked for");
});

test("case counts when the pattern has a capital letter", () => {
  ensure(matches("jsonencoder"), "lower case finds all");
  ensure(matches("JSONEncoder"), "exact");
  ensure(!matches("JsonEncoder"), "other case");
  ensure(matches("\\Sncoder\\.e"), "an escape is no capital");
});

test("a pattern that makes a browser go back and try again for hours is done at once", () => {
  const tree = treeOf(`${"a".repeat(60)}! 1`, `${"x".repeat(5000)} 1`);
  const begun = Date.now();
  for (const pattern of ["(a+)+$", "(a|a)*$", "(?:a*)*b", "(x+x+)+y", "(.*)*\\d", "(?:a|a?)+$", "x*x*x*x*x*x*x*x*z"])
    equal(search(tree, pattern).error, "");
  ensure(Date.now() - begun < 2000, `took ${Date.now() - begun} ms`);
});

test("patterns find what the browser's own find", () => {
  const texts = ["", "a", "ab", "aab", "json.loads", "<genexpr>", "a1_b", "größe", "line\nend", "JSON"];
  for (const pattern of ["a*b", "^a+b?$", "a{2}", "a{2,}b", "^.{1,2}$", "(json|<gen)", "\\bloads\\b", "\\B1", "[^a-z]",
    "\\d+_", "^$", "ö.e", "(?:a|ab)(?:b|$)", "\\p{L}{4}", "a??b", "\\.|1", "[\\]a]", "json"])
  {
    const own = new RegExp(pattern, "iu");
    const ours = new Pattern(pattern, "iu");
    for (const text of texts) ensure(ours.test(text) === own.test(text), `${pattern} in ${text}`);
  }
});

test("what cannot be found without going back is said", () => {
  const tree = treeOf("a 1");
  for (const pattern of ["(a)\\1", "a(?=b)", "(?<!a)b", "((a{99}){99}){99}"])
    ensure(search(tree, pattern).error !== "", pattern);
});

test("a broken pattern finds nothing and says why", () => {
  const found = search(treeOf("a 1"), "a(");
  ensure(found.error !== "" && found.nodes === 0, "error");
});

test("the root is not a match", () => equal(search(treeOf("a 1"), "all").nodes, 0));

test("matches are visited depth first and around", () => {
  const tree = treeOf("a;hit 1", "hit 1", "z;hit 1");
  const found = search(tree, "hit");
  const total = tree.weights.total;
  const first = nextMatch(tree, total, found, 0, -1, 1);
  const second = nextMatch(tree, total, found, 0, first, 1);
  const third = nextMatch(tree, total, found, 0, second, 1);
  equal([first, second, third].map((node) => tree.parent[node]), [nodeNamed(tree, "a"), 0, nodeNamed(tree, "z")]);
  equal(nextMatch(tree, total, found, 0, third, 1), first);
  equal(nextMatch(tree, total, found, 0, first, -1), third);
  equal(nextMatch(tree, total, search(tree, "none"), 0, -1, 1), 0);
});

test("the matched share equals the weight of all stacks with a match in them, in any tree", () => {
  for (let seed = 0; seed < 300; ++seed) {
    const tree = randomTree(seed);
    let expected = 0;
    for (let node = 0; node < tree.parent.length; ++node) {
      let hit = false;
      for (let at = node; at !== 0; at = tree.parent[at]) hit = hit || tree.labels[tree.label[at]].name === "f1";
      if (hit) expected += tree.weights.self[node];
    }
    equal(share(tree, "^f1$"), expected);
  }
});
