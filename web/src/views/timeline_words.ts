// The timeline's descriptions of threads and moments.
import { element, factTable } from "../page/dom";
import { TimelineRow, TimelineRows } from "../layout/timeline_rows";
import { Catalogue } from "../model/catalogue";
import { Moment } from "../model/questions/moments";
import { ThreadTotals } from "../model/questions/threads";
import { WaitRows } from "../model/questions/wait_rows";
import { Waits } from "../model/questions/waits";
import { activities, Activity, activityWords } from "../model/states";
import { placeOf } from "../model/tree";
import { countWords, spanWords, shareWords, timeWords, weightWords } from "../words";
import { nameOf, shortName } from "./parts/thread_names";
import { waitList } from "./parts/wait_words";
import { RowWords } from "./timeline_picture";
import { Mark } from "./timeline_events";
import { Page } from "./view";

const time = (ns: number) => weightWords(ns, "ns");
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const baseName = (file: string) => file.slice(file.lastIndexOf("/") + 1);
// "67 in idle_worker (idle200.py), 66 in sleeper (idle200.py)": where they wait.
export function placesWords(catalogue: Catalogue, waits: Waits | null): string {
  if (!waits) return "";
  const counts = new Map<number, number>();
  for (const f of waits.function) if (f) counts.set(f, (counts.get(f) ?? 0) + 1);
  const all = Array.from(counts).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  const { name, file } = catalogue.functions;
  const said = all.slice(0, 3).map(([f, count]) =>
    `${countWords(count)} in ${name[f]}${file[f] ? ` (${baseName(file[f])})` : ""}`
  );
  if (all.length > 3) said.push(`and ${countWords(all.length - 3)} more places`);
  return said.join(", ");
}

export function foldedWords(row: TimelineRow & { kind: "folded" }): string {
  const count = countWords(row.threads.length);
  return row.ran > 0 ? `${count} threads hardly ran` : `${count} threads never ran`;
}

export function rowWords(catalogue: Catalogue, row: TimelineRow, amount: (threads: number[]) => number): RowWords {
  switch (row.kind) {
    case "cpu":
      return { name: `CPU ${row.cpu}`, amount: "" };
    case "thread":
      return { name: shortName(catalogue, row.thread), amount: time(amount([row.thread])) };
    case "folded":
      return { name: `${row.open ? "▾" : "▸"} ${foldedWords(row)}`, amount: "" };
    case "process": {
      // With two recordings: which one, as the label of a known process already says.
      const whose = catalogue.recordings[catalogue.threads[row.threads[0]].recording]?.name;
      const name = catalogue.processes[row.process]?.label ?? `${whose ? `${whose}: ` : ""}process not known`;
      return { name, amount: time(amount(row.threads)) };
    }
  }
}

function activityRows(activity: ArrayLike<number>, at: number): [string, string, string][] {
  let sum = 0;
  for (let i = 0; i < activities; ++i) sum += activity[at + i];
  const rows: [string, string, string][] = [];
  for (let i = 0; i < activities; ++i)
    if (activity[at + i] > 0)
      rows.push([capital(activityWords[i]), time(activity[at + i]), shareWords(activity[at + i], sum)]);
  return rows;
}

// All that the filters leave of a thread.
export function threadTip(page: Page, thread: number, totals: ThreadTotals, busiest: boolean): Node {
  const { catalogue } = page;
  const { process } = catalogue.threads[thread];
  const tip = element("div", {},
    element("div", "name", `${nameOf(catalogue, thread)}${busiest ? ", the busiest" : ""}`));
  if (process >= 0) tip.append(element("div", "place", catalogue.processes[process].label));
  tip.append(
    factTable([["CPU time", time(totals.cpu[thread])], ["Samples", countWords(totals.samples[thread])],
      ...activityRows(totals.activity, thread * activities)]),
  );
  return tip;
}

export function foldedTip(page: Page, row: TimelineRow & { kind: "folded" }, waits: Waits | null): Node {
  const said = row.ran > 0
    ? `Each computed less than 0.5 % of its time, all together ${time(row.ran)}.`
    : "No sample found one of them computing.";
  const places = placesWords(page.catalogue, waits);
  return element("div", {}, element("div", "name", foldedWords(row)), element("div", {}, said),
    places ? element("div", {}, `They wait: ${places}.`) : "",
    element("div", "place", row.open ? "Click to fold them" : "Click for a row each"));
}

// `waited`: the wait targets; null: not known yet.
export function momentTip(page: Page, title: string, from: number, to: number, moment: Moment, waited: WaitRows | null,
  trace = ""): Node
{
  const { catalogue } = page;
  const tip = element("div", {}, element("div", "name", title));
  const { only } = moment;
  tip.append(
    element("div", "place",
      only ? `from ${timeWords(only.start, only.wall / 10)}, for ${time(only.wall)}` : spanWords(from, to)),
  );
  if (moment.wall <= 0 && !only) {
    tip.append(element("div", {}, "Nothing that the filters let pass"));
    return tip;
  }
  const labels = page.labels("function");
  const rows: [string, ...string[]][] = only
    ? activityRows(moment.activity, 0).map(([word]) => ["State", word])
    : activityRows(moment.activity, 0);
  for (const [call, ns] of moment.calls)
    rows.push(only ? ["In system call", call] : [`In system call ${call}`, time(ns), shareWords(ns, moment.wall)]);
  if (!only) {
    for (const [thread, ns] of title.startsWith("CPU") ? moment.threads : [])
      rows.push([shortName(catalogue, thread), time(ns), shareWords(ns, moment.wall)]);
  }
  rows.push(["Samples", countWords(moment.samples)]);
  if (trace) rows.push(["Trace", trace]);
  tip.append(factTable(rows), ...waitList(page, waited));
  if (only) {
    const shown = only.stack.slice(-8).reverse();
    tip.append(
      element("ol", "stack", ...shown.map((f) =>
        element("li", {}, labels[f].name, element("span", "place", ` ${placeOf(labels[f])}`))
      )),
    );
    if (only.stack.length > shown.length)
      tip.append(element("div", "place", `and ${countWords(only.stack.length - shown.length)} further out`));
  } else if (moment.functions.length) {
    tip.append(
      element("ol", "stack", ...moment.functions.map(([f, ns]) =>
        element("li", {}, labels[f].name, element("span", "place", ` ${shareWords(ns, moment.wall)}`))
      )),
    );
  }
  return tip;
}

export function marksTip(marks: Mark[]): Node {
  const shown = marks.slice(0, 6);
  const lines = shown.map((mark) => element("div", {}, element("b", {}, time(mark.time)), ` ${mark.words}`));
  if (marks.length > shown.length)
    lines.push(element("div", "place", `and ${countWords(marks.length - shown.length)} more here`));
  return element("div", {}, ...lines);
}

// What a thread does most at this moment, in one line for screen readers.
export function momentWords(page: Page, moment: Moment): string {
  let most = 0;
  for (let i = 1; i < activities; ++i) if (moment.activity[i] > moment.activity[most]) most = i;
  if (moment.activity[most] <= 0) return "nothing seen";
  const labels = page.labels("function");
  const leaf = moment.only?.stack[moment.only.stack.length - 1] ?? moment.functions[0]?.[0];
  const call = most === Activity.blocked && moment.calls.length ? ` in ${moment.calls[0][0]}` : "";
  return `${activityWords[most]}${call}${leaf === undefined ? "" : `, ${labels[leaf].name}`}`;
}

// Answers the first question: which thread is busiest and with what, which are folded, which are filtered out.
export function answerWords(catalogue: Catalogue, made: TimelineRows, cpuTime: (threads: number[]) => number,
  mostly: Moment | null, waits: Waits | null): (Node | string)[]
{
  const out: (Node | string)[] = [];
  const { busiest, filteredOut, without: nothing } = made;
  if (busiest >= 0) {
    // By CPU time: a woken thread waits for its CPU in the function in which it slept.
    const used = mostly?.used[0];
    out.push("Busiest thread: ", element("b", {}, shortName(catalogue, busiest)),
      `, ${time(cpuTime([busiest]))} CPU time`);
    if (used && mostly)
      out.push(`, ${shareWords(used[1], mostly.cpu)} of it in `, element("b", {}, catalogue.functions.name[used[0]]));
    out.push(". ");
  } else if (made.rows.length) {
    out.push("No thread computes here. ");
  }
  const folded = made.rows.find((row) => row.kind === "folded");
  if (folded?.kind === "folded") {
    const places = placesWords(catalogue, waits);
    out.push(
      `${countWords(folded.threads.length)} threads ${folded.ran > 0 ? "hardly ran" : "never ran"}${
        places ? `: ${places}` : ""
      }. `,
    );
  }
  if (filteredOut)
    out.push(`${countWords(filteredOut)} ${filteredOut === 1 ? "thread is" : "threads are"} filtered out. `);
  if (nothing) out.push(`Of ${countWords(nothing)} ${nothing === 1 ? "thread" : "threads"} nothing is left. `);
  return out;
}
