// What a thread did during an interval: the recording's columns (docs/recording.md), and one activity for pictures. No
// DOM.
import { Kind } from "./tree";

export interface ThreadState {
  cpu: number; // 0 unknown, 1 running, 2 runnable, 3 blocked
  gil: number; // 0 unknown, 1 none, 2 holds, 3 waits, 4 not applicable
  collecting: boolean;
  call: string; // blocked: the system call
  quality: number; // 0 ok, 1 cut, 2 unproved, 3 detached, 4 rejected
  library?: string; // whose code it ran, where no native frames are known
}

// Exactly one at any time, so that they can be stacked in a bar. Drawn in this order.
export const enum Activity {
  python = 0,
  native = 1,
  kernel = 2,
  collecting = 3,
  runnable = 4, // waits for a CPU
  gil = 5, // waits for the GIL
  blocked = 6,
  unknown = 7,
}
export const activities = 8;
export const activityWords = ["Python", "native code", "kernel", "collecting garbage", "waiting for a CPU",
  "waiting for the GIL", "blocked", "not known"];

const rejected = 4;

export function activityOf(state: ThreadState, leaf: Kind): Activity {
  if (state.gil === 3) return Activity.gil;
  if (state.cpu === 2) return Activity.runnable;
  if (state.cpu === 3) return Activity.blocked;
  if (state.cpu !== 1) return Activity.unknown;
  if (state.collecting) return Activity.collecting;
  if (leaf === Kind.python) return Activity.python;
  if (leaf === Kind.native) return Activity.native;
  if (leaf === Kind.kernel) return Activity.kernel;
  // Without a Python frame, the interpreter or another library runs: a thread that begins or ends.
  return state.quality === rejected ? Activity.unknown : Activity.native;
}

// What filters refer to: the words of --state, of which several may hold at once, and "collecting".
export const stateWords = ["running", "runnable", "blocked", "gil-holds", "gil-waits", "idle", "collecting"] as const;
export type StateWord = typeof stateWords[number];

export function holds(state: ThreadState, word: StateWord): boolean {
  switch (word) {
    case "running":
      return state.cpu === 1;
    case "runnable":
      return state.cpu === 2;
    case "blocked":
      return state.cpu === 3;
    case "gil-holds":
      return state.gil === 2;
    case "gil-waits":
      return state.gil === 3;
    case "idle":
      return state.cpu === 3 && state.gil !== 3;
    case "collecting":
      return state.collecting;
  }
}
