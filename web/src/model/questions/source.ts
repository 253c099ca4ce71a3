// The text of a file, if the page has it.
import { Query } from "../filters";
import { Model } from "../selection";

export function source(model: Model, _: Query, { file }: { file: string }): { text: string | null } {
  return { text: model.recording.sources.get(file) ?? null };
}
