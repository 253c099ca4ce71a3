import { formatFragment, initialState, parseFragment } from "../src/svg/fragment";
import { decodeTree, Show, TreeData } from "../src/model/tree";
import { equal, test } from "./harness";
import { treeData } from "./trees";

const data: TreeData = {
  ...treeData(["main;crunch 5", "main;read 3"]),
  parts: {
    computing: { self: [0, 0, 5, 0], samples: [5, 5, 5, 0] },
    waiting: { self: [0, 0, 0, 3], samples: [3, 3, 0, 3] },
    waiting_for_work: { self: [0, 40, 0, 0], samples: [4, 4, 0, 0] },
    waiting_for_others: { self: [0, 0, 0, 0], samples: [0, 0, 0, 0] },
    waiting_unknown: { self: [0, 0, 0, 0], samples: [0, 0, 0, 0] },
  },
};

test("every choice has its own widths", () => {
  const shows = decodeTree(data).shows;
  const totals = (show: Show) => shows && Array.from(shows[show].total);
  equal(totals("work"), [8, 8, 5, 3]);
  equal(totals("computing"), [5, 5, 5, 0]);
  equal(totals("waiting"), [43, 43, 0, 3]);
  equal(totals("everything"), [48, 48, 5, 3]);
  equal(shows && Array.from(shows.waiting.samples), [7, 7, 0, 3]);
});

test("a tree without parts has nothing to choose", () => equal(decodeTree(treeData(["main 1"])).shows, null));

test("what is shown is a part of the address", () => {
  equal(formatFragment({ ...initialState, show: "waiting" }), "show=waiting");
  equal(parseFragment("#show=waiting", 1).show, "waiting");
});
