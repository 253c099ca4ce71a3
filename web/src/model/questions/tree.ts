// The merged flame graph: a shape that never changes, and a column over it for each selection.
import { CallTree } from "../call_tree";
import { Query } from "../filters";
import { By, Weight } from "../head";
import { Model } from "../selection";
import { Column } from "../tree";

export function shape(model: Model, _: Query, { by }: { by: By }): CallTree {
  return by === "line" ? model.recording.lines : model.recording.functions;
}

export function column(model: Model, query: Query, { by, weight }: { by: By; weight: Weight }): Column {
  return model.select(query).column(by, weight);
}
