// Receives questions: opens the recording and answers one question after the other, in a worker or in the page. No DOM.
import { FromModel, ToModel } from "./messages";
import { answer, ArgumentsOf, kept, QuestionName } from "./questions";
import { openRecording } from "./recording";
import { Model } from "./selection";

type Post = (message: FromModel, transfer: ArrayBuffer[]) => void;

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));

// Every array of numbers in an answer, at any depth of plain objects.
function buffersIn(value: unknown, found = new Set<ArrayBuffer>()): Set<ArrayBuffer> {
  if (ArrayBuffer.isView(value)) found.add(value.buffer as ArrayBuffer);
  else if (value && typeof value === "object" && !Array.isArray(value))
    Object.values(value).forEach((part) => buffersIn(part, found));
  return found;
}

export class Desk {
  private model: Model | null = null;

  constructor(private readonly post: Post) {}

  async receive(message: ToModel): Promise<void> {
    const started = performance.now();
    try {
      if (message.kind === "open") {
        this.model = new Model(await openRecording(message.head, message.packed, message.inherited));
        this.post({ kind: "opened", catalogue: this.model.recording.catalogue, took: performance.now() - started }, []);
      } else if (this.model) {
        this.reply(this.model, message, started);
      }
    } catch (error) {
      this.post({ kind: "failed", id: message.kind === "ask" ? message.id : 0, error: words(error) }, []);
    }
  }

  private reply<N extends QuestionName>(model: Model, { id, name, query, args }: ToModel & { kind: "ask" },
    started: number): void
  {
    const reply = answer(model, name as N, query, args as ArgumentsOf<N>);
    const transfer = kept.has(name) ? [] : Array.from(buffersIn(reply));
    this.post({ kind: "answer", id, answer: reply, took: performance.now() - started }, transfer);
  }
}
