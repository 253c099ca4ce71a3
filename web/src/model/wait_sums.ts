// Sums of what threads waited for: a lock or a socket with its waker, the GIL with its holder, a CPU. No DOM.
import { GilHolders } from "./gil_holders";
import { nativesBeneath } from "./natives";
import { Recording, isUnread } from "./recording";
import { Model } from "./selection";
import { Activity } from "./states";
import { Kind } from "./tree";

// How a wait ended may be unknown: "ended" without a thread and `other`.
export type Whom = "ended" | "held" | "free" | "unseen";

export interface WaitRow {
  words: string; // "a socket, 10.0.0.5:5432 (recvfrom)", "the GIL"
  which: string; // exactly which one; "": several, or unknown
  place: number; // where threads waited; 0: unknown, or several
  wall: number; // ns
  idle: number; // of it, while the thread was idle
  unknown: number; // of it, perhaps idle
  threads: number; // threads that waited
  whom: Whom; // "held": the GIL; "free": the GIL was free, but no CPU; "unseen": GIL holder unknown
  by: number; // the waker or holder, the one for longest if there are several; -1: see `other`
  byMore: number; // number of further threads
  byPlace: number; // the line it was executing; 0: unknown
  other: string; // a program that is not recorded; "": unknown
  native: number; // the native function beneath Python with most of the wait; 0: unknown
  nativeShare: number; // of the wait
}

// By node of the tree by line: the innermost Python place, or the innermost of any kind; 0: a marker.
export function innermostPlaces({ catalogue, lines }: Recording): Uint32Array {
  const { kind } = catalogue.functions;
  const { function: functionOf } = catalogue.places;
  const out = new Uint32Array(lines.parent.length);
  const python = new Uint8Array(out.length); // 1: has a Python frame
  for (let n = 1; n < out.length; ++n) {
    const [place, above] = [lines.label[n], lines.parent[n]];
    const isPython = kind[functionOf[place]] === Kind.python;
    const unread = isUnread(catalogue.functions, functionOf[place]);
    python[n] = isPython || (python[above] && !unread) ? 1 : 0;
    out[n] = isPython
      ? place
      : python[above] && !unread
      ? out[above]
      : kind[functionOf[place]] === Kind.marker
      ? 0
      : place;
  }
  return out;
}

// A program without its number, so that many of the same kind are one.
const unnumbered = (other: string) => other.replace(/ \(\d+\)$/, "");

// As the exporter numbers what the thread did (allDoings in passing.ts).
const [waitingForWork, waitingUnknown] = [2, 4];

// What makes a row: where threads waited, or only what for and the waker.
export type Detail = "place" | "whom";

// Merges rows of the recording's table that differ only in a number, or in the waking thread of a pool when its line is
// known.
function groupsOf({ waits: { words, place, by, byPlace, other } }: Recording, detail: Detail): Uint32Array {
  const known = new Map<string, number>();
  return Uint32Array.from(words, (text, row) => {
    const key = JSON.stringify([text, detail === "place" ? place[row] : 0, byPlace[row], byPlace[row] ? 0 : by[row],
      unnumbered(other[row])]);
    const group = known.get(key) ?? known.size;
    known.set(key, group);
    return group;
  });
}

class Sum {
  wall = 0;
  idle = 0;
  unknown = 0;
  threads = 0;
  private last = -1; // threads come in order
  private readonly places = new Set<number>(); // where they waited
  readonly by = new Map<number, number>(); // ns by thread
  readonly others = new Set<string>();
  readonly which = new Set<string>();
  private readonly natives = new Map<number, number>(); // ns by function

  constructor(readonly words: string, readonly whom: Whom, readonly byPlace: number) {}

  add(thread: number, place: number, ns: number, doing: number, native: number): void {
    this.wall += ns;
    if (native) this.natives.set(native, (this.natives.get(native) ?? 0) + ns);
    this.places.add(place);
    if (doing === waitingForWork) this.idle += ns;
    if (doing === waitingUnknown) this.unknown += ns;
    if (thread !== this.last) ++this.threads;
    this.last = thread;
  }

  addBy(thread: number, ns: number): void {
    this.by.set(thread, (this.by.get(thread) ?? 0) + ns);
  }

  row(): WaitRow {
    const [longest] = Array.from(this.by).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const [other = ""] = Array.from(this.others);
    const [[native, inNative]] = [...Array.from(this.natives), [0, 0]].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const { words, places, wall, idle, unknown, threads, whom, byPlace } = this;
    return {
      native,
      nativeShare: wall > 0 ? inNative / wall : 0,
      words,
      wall,
      idle,
      unknown,
      threads,
      whom,
      byPlace,
      place: places.size === 1 ? Array.from(places)[0] : 0,
      which: this.which.size === 1 ? Array.from(this.which)[0] : "",
      by: longest ? longest[0] : -1,
      byMore: Math.max(0, this.by.size - 1),
      other: this.others.size > 1 ? `${unnumbered(other)} (${this.others.size} processes)` : other,
    };
  }
}

// Intervals are added thread by thread.
export class WaitSums {
  private readonly sums = new Map<string, Sum>();
  private readonly ended: (Sum | undefined)[] = []; // by group
  private readonly met: Uint8Array; // by row of the table
  private readonly groups: Uint32Array;
  private readonly innermost: Uint32Array;
  private readonly natives: Uint32Array;
  private readonly holders: GilHolders | null; // null: a merged page has lost who did what when

  constructor(private readonly model: Model, private readonly detail: Detail) {
    const { recording } = model;
    this.groups = model.once(`wait groups ${detail}`, () => groupsOf(recording, detail));
    this.innermost = model.once("innermost places", () => innermostPlaces(recording));
    this.natives = model.once("natives beneath", () => nativesBeneath(recording));
    this.holders = recording.catalogue.head.merged
      ? null
      : model.once("GIL holders", () => new GilHolders(recording.catalogue, recording.intervals, this.innermost));
    this.met = new Uint8Array(recording.waits.words.length);
  }

  // The part of interval `i` from `from` to `to`, in ns since the recording's start.
  add(thread: number, i: number, from: number, to: number, doing: number): void {
    const { activity, wait, node, state } = this.model.recording.intervals;
    const queued = this.model.recording.catalogue.states[state[i]].cpu === 2;
    const native = this.natives[node[i]];
    if (activity[i] === Activity.gil)
      this.addGil(thread, this.innermost[node[i]], from, to, doing, queued ? "free" : "unseen", native);
    else if (activity[i] === Activity.runnable)
      this.addTo("a CPU", this.innermost[node[i]], "ended", thread, to - from, doing, native);
    else if (wait[i] > 0 && wait[i] < this.met.length) this.addEnded(thread, wait[i], to - from, doing, native);
  }

  private addEnded(thread: number, row: number, ns: number, doing: number, native: number): void {
    const { words, which, place, by, byPlace, other } = this.model.recording.waits;
    const group = this.groups[row];
    const sum = (this.ended[group] ??= new Sum(words[row], "ended", byPlace[row]));
    if (!this.met[row]) {
      this.met[row] = 1;
      sum.which.add(which[row]);
      if (by[row] < 0 && other[row]) sum.others.add(other[row]);
    }
    sum.add(thread, place[row], ns, doing, native);
    if (by[row] >= 0) sum.addBy(by[row], ns);
  }

  private addTo(words: string, place: number, whom: Whom, thread: number, ns: number, doing: number, native: number,
    byPlace = 0): Sum
  {
    const key = `${words} ${this.detail === "place" ? place : 0} ${whom} ${byPlace}`;
    let sum = this.sums.get(key);
    if (!sum) this.sums.set(key, sum = new Sum(words, whom, byPlace));
    sum.add(thread, place, ns, doing, native);
    return sum;
  }

  private addGil(thread: number, place: number, from: number, to: number, doing: number, nobody: Whom,
    native: number): void
  {
    const words = "the GIL";
    if (!this.holders) return void this.addTo(words, place, "ended", thread, to - from, doing, native);
    const unseen = this.holders.during(thread, from, to,
      (holder, byPlace, ns) => this.addTo(words, place, "held", thread, ns, doing, native, byPlace).addBy(holder, ns));
    if (unseen > 0) this.addTo(words, place, nobody, thread, unseen, doing, native);
  }

  // Longest first.
  rows(): WaitRow[] {
    const all = [...this.ended.filter((sum) => sum !== undefined), ...Array.from(this.sums.values())] as Sum[];
    return all.filter(({ wall }) => wall > 0).sort((a, b) => b.wall - a.wall).map((sum) => sum.row());
  }
}
