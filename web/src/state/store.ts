// The only owner of the state and its history. The browser's Back undoes a step; a change that is no step of its own
// (each letter of a search) replaces the current one. The address is passed in. No DOM.
import { Weight, weightsOf } from "../model/head";
import { formatFragment, parseFragment } from "./fragment";
import { State } from "./state";

export interface Address {
  read(): string; // the fragment
  write(fragment: string, step: boolean): void; // step: as a new history entry
  settle?(): void; // changes that are no steps may be written later: write them now
}

type Listener = (state: State, before: State) => void;

export class Store {
  state: State;
  private readonly listeners: Listener[] = [];

  constructor(private readonly initial: State, private readonly address: Address,
    private readonly weights: Weight[] = weightsOf({ events: [] }))
  {
    this.state = parseFragment(address.read(), initial, weights);
  }

  // Listeners are called after every change, in the order in which they registered.
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

  // Call before the address is read elsewhere.
  settle(): void {
    this.address.settle?.();
  }

  // The address was changed from outside: by Back, Forward, or typing.
  returned(): void {
    this.become(parseFragment(this.address.read(), this.initial, this.weights));
  }

  private become(next: State): void {
    const before = this.state;
    this.state = next;
    for (const listener of this.listeners) listener(next, before);
  }
}
