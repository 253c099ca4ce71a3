// Entry point of the page's script in a worker.
import { Desk } from "./desk";
import { FromModel, ToModel } from "./messages";

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToModel>) => void) | null;
  postMessage(message: FromModel, transfer: ArrayBuffer[]): void;
}

export function runWorker(scope: WorkerScope): void {
  const desk = new Desk((message, transfer) => scope.postMessage(message, transfer));
  scope.onmessage = (event) => void desk.receive(event.data);
  scope.postMessage({ kind: "ready" }, []);
}
