// Messages between the page and the model, whether the model runs in a worker or in the page. Types only.
import { Catalogue } from "./catalogue";
import { Query } from "./filters";
import { Head } from "./head";
import { QuestionName } from "./questions";

export type ToModel =
  | { kind: "open"; head: Head; packed: string; inherited: boolean } // once, first
  | { kind: "ask"; id: number; name: QuestionName; query: Query; args: unknown };

export type FromModel =
  | { kind: "ready" } // the worker runs: the browser did not refuse it
  | { kind: "opened"; catalogue: Catalogue; took: number } // ms
  | { kind: "answer"; id: number; answer: unknown; took: number }
  | { kind: "failed"; id: number; error: string }; // id 0: the recording could not be opened
