// The one place that holds the state and its history. A step can be taken back with the browser's Back; what is no step (every
// letter of a search) replaces the step it belongs to. The address is somebody else's: pass what reads and writes it. No DOM.
import { Weight, weightsOf } from "../model/head";
import { formatFragment, parseFragment } from "./fragment";
import { State } from "./state";

export interface Address {
  read(): string; // the fragment
  write(fragment: string, step: boolean): void; // step: a new entry of the history
  settle?(): void; // what is no step may be written later: now
}

type Listener = (state: State, before: State) => void;

export class Store {
  state: State;
  private readonly listeners: Listener[] = [];

  constructor(private readonly initial: State, private readonly address: Address, private readonly weights: Weight[] = weightsOf({ events: [] })) {
    this.state = parseFragment(address.read(), initial, weights);
  }

  // Listeners are called after every change, in the order in which they came.
  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  change(part: Partial<State>, how: "step" | "aside" = "step"): void {
    const next = { ...this.state, ...part };
    const [before, after] = [this.state, next].map((state) => formatFragment(state, this.initial));
    if (before === after) return;
    this.address.write(after, how === "step");
    this.become(next);
  }

  // Before the address is read by somebody else.
  settle(): void {
    this.address.settle?.();
  }

  // The address changed by itself: Back, Forward, or somebody typed.
  returned(): void {
    this.become(parseFragment(this.address.read(), this.initial, this.weights));
  }

  private become(next: State): void {
    const before = this.state;
    this.state = next;
    for (const listener of this.listeners) listener(next, before);
  }
}
