// Filters as text, for chips and menus. No DOM.
import { Catalogue, processName } from "../model/catalogue";
import { Filter } from "../model/filters";
import { activityWords } from "../model/states";
import { spanWords } from "../words";

const fieldWords: Record<Filter["field"], [string, string]> = {
  process: ["only process", "without process"],
  recording: ["only", "without"],
  thread: ["only thread", "without thread"],
  function: ["only stacks through", "without stacks through"],
  endpoint: ["only endpoint", "without endpoint"],
  module: ["only stacks through module", "without stacks through module"],
  language: ["only time spent in", "without time spent in"],
  state: ["only while", "not while"],
  trace: ["only trace", "without trace"],
  time: ["only", "without"],
};

const stateMeanings: Record<string, string> = {
  runnable: activityWords[4],
  "gil-holds": "holding the GIL",
  "gil-waits": activityWords[5],
  collecting: activityWords[3],
};

// Avoids "only thread Thread worker-1 (17)".
const withoutThread = (label: string) => label.replace(/^Thread /, "");

export function filterWords(catalogue: Catalogue, filter: Filter): string {
  const verb = fieldWords[filter.field][filter.mode === "in" ? 0 : 1];
  if (filter.field === "time") return `${verb} ${spanWords(filter.from, filter.to)}`;
  const names = (filter.values as (string | number)[]).map((value): string => {
    const id = Number(value);
    switch (filter.field) {
      case "process":
        return catalogue.processes[id] ? processName(catalogue.processes[id]) : "(none)";
      case "recording":
        return catalogue.recordings[id]?.name ?? "(none)";
      case "thread":
        return catalogue.threads[id] ? withoutThread(catalogue.threads[id].label) : "(none)";
      case "function":
        return catalogue.functions.name[id] ?? "(none)";
      case "module":
        return String(value) || "(none)";
      case "state":
        return stateMeanings[value] ?? String(value);
      default:
        return String(value);
    }
  });
  return `${verb} ${names.slice(0, 3).join(" or ")}${names.length > 3 ? ` or ${names.length - 3} more` : ""}`;
}
