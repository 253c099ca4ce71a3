// The page's end of the connection to the model: in a worker where the browser allows one for a page opened from disk,
// otherwise in the page, where each question blocks it.
import { Catalogue } from "../model/catalogue";
import { Desk } from "../model/desk";
import { Query } from "../model/filters";
import { Head } from "../model/head";
import { FromModel, ToModel } from "../model/messages";
import { AnswerOf, ArgumentsOf, QuestionName } from "../model/questions";

interface Waiting {
  name: string;
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

export class Client {
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private opened: Waiting | null = null;

  private constructor(private readonly send: (message: ToModel) => void, readonly inWorker: boolean) {}

  // `script`: the text of the page's own script, which the worker runs too.
  static async start(script: string): Promise<Client> {
    return (await Client.inWorker(script)) ?? Client.onThePage();
  }

  private static inWorker(script: string): Promise<Client | null> {
    return new Promise((resolve) => {
      let worker: Worker;
      const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
      try {
        worker = new Worker(url);
      } catch {
        resolve(null);
        return;
      }
      const client = new Client((message) => worker.postMessage(message), true);
      worker.onerror = (event) => {
        event.preventDefault();
        resolve(null); // refused; no effect once it runs
        client.fail(new Error(event.message || "the worker stopped"));
      };
      worker.onmessage = (event: MessageEvent<FromModel>) => {
        if (event.data.kind !== "ready") return client.receive(event.data);
        URL.revokeObjectURL(url);
        resolve(client);
      };
    });
  }

  private static onThePage(): Client {
    const desk = new Desk((message) => client.receive(message));
    const client: Client = new Client((message) => void setTimeout(() => void desk.receive(message)), false);
    return client;
  }

  open(head: Head, packed: string, inherited: boolean): Promise<Catalogue> {
    return new Promise((resolve, reject) => {
      this.opened = { name: "open", resolve: resolve as (answer: unknown) => void, reject };
      this.send({ kind: "open", head, packed, inherited });
    });
  }

  ask<N extends QuestionName>(name: N, query: Query, args: ArgumentsOf<N>): Promise<AnswerOf<N>> {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { name, resolve: resolve as (answer: unknown) => void, reject });
      this.send({ kind: "ask", id, name, query, args });
    });
  }

  private receive(message: FromModel): void {
    if (message.kind === "ready") return;
    const waiting = message.kind === "opened" || message.id === 0 ? this.opened : this.waiting.get(message.id);
    if (!waiting) return;
    if (message.kind === "failed") {
      this.waiting.delete(message.id);
      waiting.reject(new Error(message.error));
      return;
    }
    // For `make bench` and the developer tools: the model's time.
    performance.measure(`phlox ${waiting.name}`, { start: performance.now() - message.took, duration: message.took });
    if (message.kind === "answer") this.waiting.delete(message.id);
    waiting.resolve(message.kind === "opened" ? message.catalogue : message.answer);
  }

  private fail(error: Error): void {
    this.opened?.reject(error);
    for (const waiting of this.waiting.values()) waiting.reject(error);
    this.waiting.clear();
  }
}
