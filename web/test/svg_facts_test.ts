// What the flame graph SVG says of its frames, without a page around it.
import { defaultOptions, layout } from "../src/layout/flame";
import { decodeTree, Kind, TreeData } from "../src/model/tree";
import { Facts, Picture } from "../src/svg/facts";
import { initialState } from "../src/svg/fragment";
import { ensure, equal, test } from "./harness";
import { nodeNamed, treeData } from "./trees";

function factsOf(tree: TreeData, words: Partial<Picture> = {}): Facts {
  const picture: Picture = { title: "app.py", subtitle: "", quality: [], warning: "", unit: "samples",
    pruned: { frames: 0, weight: 0 }, tree, ...words };
  return new Facts(picture, decodeTree(tree));
}

const drawnBy = (facts: Facts, width = 1000, state = initialState) =>
  layout(facts.tree, facts.column(state).total, state.zoom, { ...defaultOptions, width });

test("a frame's numbers are of all, and of the frame that is zoomed into", () => {
  const facts = factsOf(treeData(["main;work 3", "main;wait 1", "other 4"]));
  const work = nodeNamed(facts.tree, "work");
  equal(facts.rowsOf(initialState, work).map((row) => row.cells), [
    ["share of all", "37.5 %"],
    ["weight", "3 samples"],
    ["of it in its own code", "3 samples"],
    ["samples", "3"],
  ]);
  const zoomed = { ...initialState, zoom: nodeNamed(facts.tree, "main") };
  equal(facts.rowsOf(zoomed, work)[1].cells, ["share of the zoomed frame", "75.0 %"]);
  ensure(facts.rowsOf(zoomed, nodeNamed(facts.tree, "other")).length === 4,
    "a frame outside has no share of the zoomed one");
  equal(facts.rowsOf(initialState, 0).map((row) => row.cells[0]), ["share of all", "weight", "samples"]);
});

test("a difference shows both sides, and which way a frame went", () => {
  const tree = treeData(["main;work 3 1", "main;wait 1 3"]);
  const work = tree.labels.findIndex((label) => label[0] === "work");
  (tree.before as { changes: number[] }).changes[tree.label.indexOf(work)] = 4;
  const facts = factsOf(tree);
  const rows = facts.rowsOf(initialState, nodeNamed(facts.tree, "work"));
  equal(rows.map((row) => row.cells), [
    ["", "before", "after"],
    ["share of all", "25.0 %", "75.0 %"],
    ["weight", "1 sample", "3 samples"],
    ["samples", "1", "3"],
    ["change", "", "+50.0 points"],
  ]);
  equal(rows[4].className, "up");
  equal(facts.rowsOf(initialState, nodeNamed(facts.tree, "wait"))[5].cells, ["", "", "not seen to differ"]);
  equal(facts.classOf(nodeNamed(facts.tree, "work")), "r4");
  equal(facts.column({ ...initialState, widths: "before" }).total[0], 4);
});

test("frames that vanished are counted once, by the outermost", () => {
  const facts = factsOf(treeData(["main;kept 6 6", "main;gone;deeper 0 3", "main;gone 0 1"]));
  equal(facts.vanished, { frames: 2, weight: 4 });
  const state = initialState;
  equal(facts.leftOut(state, drawnBy(facts)),
    " Vanished since: 2 frames (40.0 % of before); press “Widths: after” to see them.");
  equal(facts.leftOut({ ...state, widths: "before" }, drawnBy(facts)), "");
});

test("what the picture leaves out is said in words, and nothing when it leaves out nothing", () => {
  const tree = treeData(["main;wide 9999", "main;thin 1"]);
  equal(factsOf(tree).leftOut(initialState, drawnBy(factsOf(tree), 100000)), "");
  const facts = factsOf(tree, { pruned: { frames: 1200, weight: 100 } });
  equal(
    facts.leftOut(initialState, drawnBy(facts)),
    "Left out of the picture: 1 frame narrower than 0.3 px (0.01 %). Zoom in to see them. Not in this file: the 1,200 smallest frames (1.0 %).",
  );
});

test("what is shown makes the widths, and what that leaves out is said", () => {
  const tree = treeData(["main;work 3", "main;wait 5"]);
  const zero = tree.self.map(() => 0);
  const only = (name: string) => {
    const label = tree.labels.findIndex((one) => one[0] === name);
    const column = tree.self.map((self, node) => (tree.label[node] === label ? self : 0));
    return { self: column, samples: column };
  };
  tree.parts = { computing: only("work"), waiting: { self: zero, samples: zero }, waiting_for_work: only("wait"),
    waiting_for_others: { self: zero, samples: zero }, waiting_unknown: { self: zero, samples: zero } };
  const facts = factsOf(tree, { show: "work", leftOut: "5 s of waiting for work" });
  equal(facts.column(initialState).total[0], 3);
  equal(facts.leftOut(initialState, drawnBy(facts)), "Not shown: 5 s of waiting for work; “Everything” has it. ");
  const everything = { ...initialState, show: "everything" as const };
  equal(facts.column(everything).total[0], 8);
  equal(facts.leftOut(everything, drawnBy(facts)), "");
});

test("the legend has the modules with most time of their own, and no kernel", () => {
  const tree = treeData(["main;work 3", "main;wait 5", "main 1"]);
  tree.labels[tree.labels.findIndex((label) => label[0] === "wait")][4] = Kind.kernel;
  tree.modules = ["", "app", "app", "app"].concat(tree.labels.map(() => "lib"));
  const facts = factsOf(tree);
  const greatest = facts.greatestModules(facts.tree.weights, 6);
  equal(greatest.reduce((sum, entry) => sum + entry.self, 0), 4);
  ensure(greatest.every((entry) => /^p\d+a$/.test(entry.className)), "a module has the first of its colours");
  equal(facts.greatestModules(facts.tree.weights, 1).length, 1);
});
