// Events as text: the marks of the timeline.
import { Catalogue, RecordedEvent } from "../model/catalogue";
import { countWords, weightWords } from "../words";

// Numbers as in docs/recording.md.
export const enum Happened {
  recordingStarts = 0,
  recordingEnds = 1,
  processStarts = 2,
  processEnds = 3,
  exec = 4,
  fork = 5,
  threadStarts = 6,
  threadEnds = 7,
  lost = 8,
  rateChanges = 9,
  modeChanges = 10,
  incident = -1, // no event: a cause of the recording
}

export interface Mark {
  time: number;
  kind: Happened;
  short: string; // next to the mark
  words: string;
}

const rateWords = (milliHertz: number) =>
  `${milliHertz >= 99_950 ? countWords(milliHertz / 1000) : (milliHertz / 1000).toFixed(1)} samples a second`;

export function eventMark(catalogue: Catalogue, event: RecordedEvent): Mark {
  const { kind, time, value, text } = event;
  const process = catalogue.processes[event.process];
  const thread = catalogue.threads[event.thread];
  const whose = process ? `process ${process.pid}` : "program";
  const called = thread ? thread.label.replace(/^Thread /, "thread ") : "a thread";
  const because = text ? `: ${text}` : "";
  const said = ([short, words]: [string, string]): Mark => ({ time, kind, short, words });
  switch (kind) {
    case Happened.recordingStarts:
      return said(["recording starts", "The recording starts"]);
    case Happened.recordingEnds:
      return said(["recording ends", "The recording ends"]);
    case Happened.processStarts:
      return said([`${whose} starts`, `The ${whose} starts${because}`]);
    case Happened.processEnds:
      return said([`${whose} ends${because}`, `The ${whose} ends${because}`]);
    case Happened.exec:
      return said(["exec", `The ${whose} becomes another program (exec)${because}`]);
    case Happened.fork:
      return said(["fork", `The ${whose} forks${because}`]);
    case Happened.threadStarts:
      return said(["thread starts", `The ${called} starts`]);
    case Happened.threadEnds:
      return said(["thread ends", `The ${called} ends`]);
    case Happened.lost:
      return said([`lost ${weightWords(value, "ns")}`, `${weightWords(value, "ns")} without samples${because}`]);
    case Happened.rateChanges:
      return said([rateWords(value), `From here on ${rateWords(value)}${text ? `, ${text}` : ""}`]);
    case Happened.modeChanges:
      return said(["another mode", `From here on sampled in another mode${because}`]);
    default:
      return said([text || "event", text || "An event of a kind that this page does not know"]);
  }
}

// In time order. Marks of threads are many, and their rows show the same: they have no text next to the mark.
export function marksOf(catalogue: Catalogue): Mark[] {
  const incidents = catalogue.head.incidents.map(({ time, short, words }): Mark => ({ time, kind: Happened.incident,
    short: `incident: ${short}`, words: `Incident: ${words}` })
  );
  return [...catalogue.events.map((event) => eventMark(catalogue, event)), ...incidents].sort((a, b) =>
    a.time - b.time
  );
}

export const isThreads = (mark: Mark) => mark.kind === Happened.threadStarts || mark.kind === Happened.threadEnds;
