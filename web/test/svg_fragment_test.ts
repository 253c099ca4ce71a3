import { formatFragment, initialState, parseFragment, State } from "../src/svg/fragment";
import { equal, test } from "./harness";

test("a state comes back from its fragment", () => {
  const states: State[] = [
    initialState,
    { zoom: 12, search: "a&b=c#d %s (é|;)+", view: "icicle", widths: "before", show: "computing" },
    { zoom: 0, search: "<script>", view: "flame", widths: "after", show: "" },
  ];
  for (const state of states) equal(parseFragment(`#${formatFragment(state)}`, 100), state);
});

test("the initial state has no fragment", () => equal(formatFragment(initialState), ""));

test("nonsense is passed over", () => {
  for (const text of ["#zoom=99", "#zoom=-1", "#zoom=1e3", "#zoom=abc", "#view=up", "#%", "#search=%E0%A4%A", "#a=b&&=",
    "#widths=", "#show=all"])
  {
    equal(parseFragment(text, 10), initialState);
  }
});
