// Who held the GIL at each moment, as view/gil_holders.cpp computes it: for each interpreter one timeline with at
// most one known holder at a time. No DOM.
import { Catalogue } from "./catalogue";
import { lowest } from "./in_time";
import { Intervals } from "./recording";

interface Hold {
  start: number; // ns
  end: number;
  thread: number;
  place: number; // innermost Python frame
}

// A heap of the open holds by their end.
class Open {
  private readonly heap: Hold[] = [];

  get first(): Hold | undefined {
    return this.heap[0];
  }

  push(hold: Hold): void {
    const { heap } = this;
    let at = heap.push(hold) - 1;
    for (let above = (at - 1) >> 1; at > 0 && heap[above].end > hold.end; above = (at - 1) >> 1) {
      heap[at] = heap[above];
      at = above;
    }
    heap[at] = hold;
  }

  pop(): void {
    const { heap } = this;
    const last = heap.pop() as Hold;
    if (!heap.length) return;
    let at = 0;
    for (let below = 1; below < heap.length; below = 2 * at + 1) {
      if (below + 1 < heap.length && heap[below + 1].end < heap[below].end) ++below;
      if (heap[below].end >= last.end) break;
      heap[at] = heap[below];
      at = below;
    }
    heap[at] = last;
  }
}

// An interval is certain at its end, where the thread was sampled. Where several threads claim the GIL, the one that is
// sampled next held it.
export function oneAfterAnother(holds: Hold[]): Hold[] {
  const sorted = holds.slice().sort((a, b) => a.start - b.start || a.end - b.end);
  const open = new Open();
  const line: Hold[] = [];
  let now = 0;
  for (let next = 0; next < sorted.length || open.first;) {
    if (!open.first) now = sorted[next].start;
    while (next < sorted.length && sorted[next].start <= now) open.push(sorted[next++]);
    while (open.first && open.first.end <= now) open.pop();
    const { first } = open;
    if (!first) continue;
    const until = Math.min(first.end, next < sorted.length ? sorted[next].start : Infinity);
    const last = line[line.length - 1];
    if (last && last.end === now && last.thread === first.thread && last.place === first.place) last.end = until;
    else line.push({ ...first, start: now, end: until });
    now = until;
  }
  return line;
}

export class GilHolders {
  private readonly lines = new Map<string, Hold[]>(); // by interpreter

  // `placeOf`: by node of the tree by line.
  constructor(private readonly catalogue: Catalogue, { first, start, wall, node, state }: Intervals,
    placeOf: Uint32Array)
  {
    const holding = catalogue.states.map(({ gil }) => gil === 2);
    for (let thread = 0; thread + 1 < first.length; ++thread) {
      const key = this.interpreterOf(thread);
      let holds = this.lines.get(key);
      if (!holds) this.lines.set(key, holds = []);
      for (let i = first[thread]; i < first[thread + 1]; ++i) {
        if (holding[state[i]] && wall[i] > 0)
          holds.push({ start: start[i], end: start[i] + wall[i], thread, place: placeOf[node[i]] });
      }
    }
    this.lines.forEach((holds, key) => this.lines.set(key, oneAfterAnother(holds)));
  }

  private interpreterOf(thread: number): string {
    const { recording, process, interpreter } = this.catalogue.threads[thread];
    return `${recording} ${process} ${interpreter}`;
  }

  // Calls `use` for each thread that held the GIL during a wait. Returns for how long no holder is known.
  during(thread: number, from: number, to: number, use: (thread: number, place: number, ns: number) => void): number {
    const line = this.lines.get(this.interpreterOf(thread)) ?? [];
    let unseen = to - from;
    for (let at = lowest(0, line.length, (i) => line[i].end > from); at < line.length && line[at].start < to; ++at) {
      const hold = line[at];
      if (hold.thread === thread) continue;
      const both = Math.min(to, hold.end) - Math.max(from, hold.start);
      unseen -= both;
      use(hold.thread, hold.place, both);
    }
    return unseen;
  }
}
