import { formatFragment, parseFragment } from "../src/state/fragment";
import { initialState, own, State, withFilter, withOwn, withoutFilter } from "../src/state/state";
import { Address, Store } from "../src/state/store";
import { equal, test } from "./harness";

const initial = initialState({ show: "work", weight: "wall", by: "function" }, "flame");
const rich: State = {
  view: "functions",
  filters: [
    { field: "thread", mode: "in", values: [3, 17] },
    { field: "function", mode: "out", values: [5] },
    { field: "module", mode: "in", values: ["a,b", "é%~.x", ""] },
    { field: "language", mode: "out", values: ["C++", "Rust"] },
    { field: "endpoint", mode: "in", values: ["read, item (app.py:12)", "(no endpoint)"] },
    { field: "state", mode: "in", values: ["gil-waits", "idle"] },
    { field: "time", mode: "in", from: -5, to: 1234567890123 },
  ],
  show: "waiting",
  weight: "cpu",
  by: "line",
  inherited: true,
  search: "a&b=c#d %s (é|;)+",
  own: { "flame.zoom": "1.22.3", "functions.sort": "-total" },
};

test("a state comes back from its fragment", () => {
  for (const state of [initial, rich]) equal(parseFragment(`#${formatFragment(state, initial)}`, initial), state);
});

test("the initial state has no fragment", () => equal(formatFragment(initial, initial), ""));

test("fragments can be read by people", () =>
  equal(formatFragment({ ...initial, filters: rich.filters.slice(0, 2), weight: "cpu" }, initial),
    "weight=cpu&f=in.thread.3,17&f=out.function.5"));

test("nonsense is passed over", () => {
  for (const text of ["#weight=x", "#show=x", "#show=toString", "#by=", "#f=in.thread.x", "#f=up.thread.1",
    "#f=in.time.5-2", "#f=in.state.flying", "#f=in.language.%25E0", "#%", "#a=b&&=", "#Flame.zoom=1",
    "#f=in.thread.-1"])
  {
    equal(parseFragment(text, initial), initial);
  }
});

test("a weight is one that the recording has", () => {
  equal(parseFragment("#weight=event1", initial), initial);
  equal(parseFragment("#weight=event1", initial, ["wall", "cpu", "samples", "event1"]).weight, "event1");
  equal(parseFragment("#weight=event2", initial, ["wall", "cpu", "samples", "event1"]).weight, "wall");
});

test("a filter is set once, and any of the trail can be taken back", () => {
  let state: State = initial;
  for (const filter of [...rich.filters, rich.filters[0]]) state = { ...state, ...withFilter(state, filter) };
  equal(state.filters, rich.filters);
  equal({ ...state, ...withoutFilter(state, 1) }.filters.length, rich.filters.length - 1);
});

test("what a view keeps for itself is gone when it is empty", () => {
  const state = { ...initial, ...withOwn(initial, "flame", "zoom", "4") };
  equal(own(state, "flame", "zoom"), "4");
  equal({ ...state, ...withOwn(state, "flame", "zoom", "") }, initial);
});

test("steps are entries of the history, asides replace them", () => {
  const written: [string, boolean][] = [];
  let fragment = "#weight=cpu";
  const address: Address = { read: () => fragment, write: (text, step) => written.push([text, step]) };
  const store = new Store(initial, address);
  equal(store.state.weight, "cpu");
  const seen: string[] = [];
  store.listen((state) => seen.push(state.search));
  store.change({ search: "a" }, "aside");
  store.change({ search: "a" }, "aside"); // nothing new
  store.change({ weight: "wall" });
  equal(written, [["weight=cpu&search=a", false], ["search=a", true]]);
  fragment = "#search=b";
  store.returned();
  equal(seen, ["a", "a", "b"]);
  equal(store.state.weight, "wall");
});
