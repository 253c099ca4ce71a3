// What the first screen of a page says, for the section `conclusions`: node page_words.js HEAD_AND_COLUMNS.json
import { answer } from "../../web/src/model/questions";
import { openRecording } from "../../web/src/model/recording";
import { Model } from "../../web/src/model/selection";
import { Kind } from "../../web/src/model/tree";
import { initialState } from "../../web/src/state/state";

declare const require: (name: string) => { readFileSync(path: string, encoding: string): string };
declare const process: { argv: string[]; exit(status: number): void };

async function main(): Promise<void> {
  const { head, packed } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
  const model = new Model(await openRecording(head, packed));
  const { functions, threads } = model.recording.catalogue;
  const { show } = initialState(head, "flame");
  const query = { filters: [], show };
  const { self, total } = answer(model, "table", query, { by: "function" });
  const { shown, recorded } = answer(model, "totals", query, {});
  const rows = (weight: "wall" | "cpu") => Array.from(self[weight].keys()).filter((row) => row > 0 && functions.kind[row] !== Kind.marker && total[weight][row] > 0)
    .sort((a, b) => self[weight][b] - self[weight][a]).map((row) => ({ name: functions.full[row], self: self[weight][row], total: total[weight][row] }));
  const used = answer(model, "threads", { filters: [], show: "everything" }, {}).cpu;
  // As views/timeline_words.ts has it: "Busiest thread: MainThread, 2.1 s CPU time, 78 % of it in burn".
  const busiest = used.indexOf(Math.max(...used));
  const most = busiest < 0 ? [] : answer(model, "moment", { filters: [], show: "everything" }, { threads: [busiest], from: -Infinity, to: Infinity, cpu: -1 }).used;
  const headline = most.map(([f, ns]) => ({ name: functions.full[f], cpu: ns }))[0] ?? null;
  console.log(JSON.stringify({
    headline,
    title: head.title, subtitle: head.subtitle, quality: head.quality, warning: head.warning, leftOut: head.leftOut, show, shown, recorded,
    wall: rows("wall"), cpu: rows("cpu"), threads: threads.map(({ label }, i) => ({ label, cpu: used[i] })),
  }));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
