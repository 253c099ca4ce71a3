// Which stacks the filters pass; computed once per selection. No DOM.
import { between, Filter, inBoth, Query, Span, spansOf } from "./filters";
import { awaitEvent } from "./head";
import { InTime, lowest } from "./in_time";
import { doings, Recording } from "./recording";
import { holds } from "./states";
import { timesOf, TraceTimes } from "./trace_times";
import { Doing, shown } from "./tree";

export interface Passes {
  node: Uint8Array; // by node of the tree by line; 1: a stack that ends there passes
  kind: Uint8Array; // by kind of interval: its state and what the thread did
  thread: Uint8Array; // by thread
  endpoint: Uint8Array; // by endpoint
  spans: ((thread: number) => Span[]) | null; // times of a thread that pass, in order; null: all of all threads
}

// The first span that ends after this moment.
const firstAfter = (spans: readonly Span[], time: number) => lowest(0, spans.length, (s) => spans[s][1] > time);

// How much of an interval lies in the spans.
export function overlap(spans: readonly Span[], start: number, wall: number): number {
  let part = 0;
  for (let s = firstAfter(spans, start); s < spans.length && spans[s][0] < start + wall; ++s)
    part += Math.min(start + wall, spans[s][1]) - Math.max(start, spans[s][0]);
  return part;
}

// Calls `use` with each part of an interval that lies in the spans, until it returns false.
export function eachPart(spans: readonly Span[], start: number, wall: number,
  use: (from: number, to: number) => boolean | void): boolean
{
  for (let s = firstAfter(spans, start); s < spans.length && spans[s][0] < start + wall; ++s) {
    const [a, b] = [Math.max(spans[s][0], start), Math.min(spans[s][1], start + wall)];
    if (a < b && use(a, b) === false) return false;
  }
  return true;
}

// Those of a thread within a range.
export const spansIn = ({ spans }: Passes, thread: number, from: number, to: number): Span[] =>
  inBoth(spans?.(thread) ?? [[-Infinity, Infinity]], [[from, to]]);

// An interval of length 0 passes if it begins within a span.
export function touches(spans: readonly Span[], start: number, part: number, wall: number): boolean {
  if (wall > 0) return part > 0;
  const s = firstAfter(spans, start);
  return s < spans.length && spans[s][0] <= start;
}

// As SampleFilter::part in view/sample_filter.cpp: samples are whole, and an interval that passes has at least one.
export function samplesOf(samples: number, share: number): number {
  return share >= 1 ? samples : Math.min(samples, Math.max(1, Math.round(samples * share)));
}

// In the exporter's order.
const allDoings: Doing[] = ["computing", "waiting", "waiting_for_work", "waiting_for_others", "waiting_unknown"];

export function passesOf(recording: Recording, { filters, show }: Query): Passes {
  const { catalogue, lines } = recording;
  const node = new Uint8Array(lines.parent.length).fill(1);
  const state = new Uint8Array(catalogue.states.length).fill(1);
  const thread = new Uint8Array(catalogue.threads.length).fill(1);
  const endpoint = new Uint8Array(catalogue.endpoints.length).fill(1);
  const { module, language } = catalogue.functions;
  const functions = module.length;
  const places = catalogue.places.function;
  const keep = (rows: Uint8Array, filter: Filter, within: (row: number) => boolean) => {
    for (let i = 0; i < rows.length; ++i) if (within(i) !== (filter.mode === "in")) rows[i] = 0;
  };
  // Stacks that contain one of these functions.
  const through = (filter: Filter, wanted: Uint8Array) => {
    const has = new Uint8Array(node.length);
    for (let i = 1; i < has.length; ++i) has[i] = has[lines.parent[i]] | wanted[places[lines.label[i]]];
    keep(node, filter, (i) => has[i] === 1);
  };
  for (const filter of filters) {
    switch (filter.field) {
      case "process":
        keep(thread, filter, (i) => filter.values.includes(catalogue.threads[i].process));
        break;
      case "recording":
        keep(thread, filter, (i) => filter.values.includes(catalogue.threads[i].recording));
        break;
      case "thread":
        keep(thread, filter, (i) => filter.values.includes(i));
        break;
      case "state":
        keep(state, filter, (i) => filter.values.some((word) => holds(catalogue.states[i], word)));
        break;
      case "endpoint":
        keep(endpoint, filter, (i) => filter.values.includes(catalogue.endpoints[i]));
        break;
      case "function":
        through(filter, Uint8Array.from({ length: functions }, (_, f) => (filter.values.includes(f) ? 1 : 0)));
        break;
      case "module":
        through(filter,
          Uint8Array.from({ length: functions }, (_, f) => (f !== 0 && filter.values.includes(module[f]) ? 1 : 0)));
        break;
      case "language": {
        const wanted = Uint8Array.from({ length: functions }, (_, f) => (filter.values.includes(language[f]) ? 1 : 0));
        keep(node, filter, (i) => wanted[places[lines.label[i]]] === 1);
        break;
      }
      case "time":
      case "trace":
        break;
    }
  }
  const kind = new Uint8Array(state.length * doings);
  state.forEach((passes, i) =>
    allDoings.forEach((word, doing) => (kind[i * doings + doing] = passes && shown[show].includes(word) ? 1 : 0))
  );
  return { node, kind, thread, endpoint, spans: spansByThread(catalogue.traces, filters) };
}

function spansByThread(traces: TraceTimes, filters: readonly Filter[]): Passes["spans"] {
  const times = spansOf(filters);
  const byTrace = filters.flatMap((filter) => (filter.field === "trace" ? [filter] : []));
  if (!byTrace.length) return times && (() => times);
  const known = new Map<number, Span[]>();
  return (thread) => {
    let spans = known.get(thread);
    if (!spans) {
      spans = times ?? [[-Infinity, Infinity]];
      for (const { mode, values } of byTrace) {
        const of = timesOf(traces, values, thread);
        spans = inBoth(spans, mode === "in" ? of : between(of));
      }
      known.set(thread, spans);
    }
    return spans;
  };
}

// Sorted by thread, then start, like the intervals.
export interface Passing {
  first: Uint32Array; // those of thread t are first[t] to first[t + 1]
  interval: Uint32Array;
  part: Float64Array | null; // ns of each that pass; null: all of each
}

export function findPassing(recording: Recording, passes: Passes, inTime: () => InTime): Passing {
  const { first, start, wall, node, kind, event, endpoint } = recording.intervals;
  const { node: nodePasses, kind: kindPasses, endpoint: endpointPasses, spans: spansOfThread } = passes;
  const awaits = awaitEvent(recording.catalogue.head);
  const threads = first.length - 1;
  const from = new Uint32Array(threads + 1);
  const interval = new Uint32Array(start.length);
  const part = spansOfThread ? new Float64Array(start.length) : null;
  // Many filters are by thread alone: they need no lookups.
  const every = !nodePasses.includes(0) && !kindPasses.includes(0) && !endpointPasses.includes(0);
  let count = 0;
  for (let t = 0; t < threads; ++t) {
    from[t] = count;
    if (!passes.thread[t]) continue;
    const spans = spansOfThread?.(t);
    if (spans?.length === 0) continue;
    const [begin, end] = spans ? inTime().of(t, spans[0][0], spans[spans.length - 1][1]) : [first[t], first[t + 1]];
    if (spans && part) {
      for (let i = begin; i < end; ++i) {
        if ((nodePasses[node[i]] & kindPasses[kind[i]] & endpointPasses[endpoint[i]]) === 0) continue;
        if (awaits && event[i] === awaits) continue; // of the whole recording
        part[count] = overlap(spans, start[i], wall[i]);
        if (touches(spans, start[i], part[count], wall[i])) interval[count++] = i;
      }
    } else if (every) {
      for (let i = begin; i < end; ++i) interval[count++] = i;
    } else {
      for (let i = begin; i < end; ++i)
        if (nodePasses[node[i]] & kindPasses[kind[i]] & endpointPasses[endpoint[i]]) interval[count++] = i;
    }
  }
  from[threads] = count;
  return { first: from, interval: interval.subarray(0, count), part: part && part.subarray(0, count) };
}
