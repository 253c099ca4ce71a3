// Descriptions of a wait: its target, where, and its waker or the GIL holder.
import { element } from "../../page/dom";
import { WaitRows } from "../../model/questions/wait_rows";
import { WaitRow } from "../../model/wait_sums";
import { countWords, weightWords } from "../../words";
import { Page } from "../view";
import { fileOf } from "../../model/catalogue";
import { shortName } from "./thread_names";

// "consume (app.py:37)". 0: unknown.
export function placeWords(page: Page, place: number): string {
  if (!place) return "";
  const { functions, places } = page.catalogue;
  const f = places.function[place];
  const line = places.line[place];
  const path = fileOf(page.catalogue, place);
  const file = path.slice(path.lastIndexOf("/") + 1);
  return functions.full[f] + (file ? ` (${file}${line > 0 ? `:${line}` : ""})` : "");
}

// The waker or GIL holder: "producer and 2 more". "": unknown.
export function whomWords(page: Page, { by, byMore, other, whom }: WaitRow): string {
  if (whom === "free") return "no thread: the GIL was free, but no CPU";
  if (whom === "unseen") return "not known";
  const first = by >= 0 ? shortName(page.catalogue, by) : other;
  return first && `${first}${byMore ? ` and ${countWords(byMore)} more` : ""}`;
}

const mostListed = 3;

// Rows to request.
export const listed = { most: mostListed, detail: "whom" as const };

// For a tip: the longest waits. null: not known yet.
export function waitList(page: Page, waited: WaitRows | null): Node[] {
  if (!waited?.rows.length) return [];
  const items = waited.rows.slice(0, mostListed).map((row) => {
    const who = whomWords(page, row);
    const [at, by] = [placeWords(page, row.place), placeWords(page, row.byPlace)];
    const item = element("li", {}, element("b", {}, row.words), `, ${weightWords(row.wall, "ns")}`);
    // The exact target, if it adds anything.
    if (row.which && !row.words.includes(row.which)) item.append(element("div", "place", row.which));
    if (at) item.append(element("div", "place", `in ${at}`));
    if (who)
      item.append(
        element("div", "place", `${row.whom === "ended" ? "ended" : "held"} by ${who}${by ? ` in ${by}` : ""}`),
      );
    return item;
  });
  const more = waited.rows.length - items.length + waited.leftOut;
  const rest = waited.rows.slice(0, mostListed).reduce((left, { wall }) => left - wall, waited.waited);
  if (more > 0) items.push(element("li", "place", `and ${countWords(more)} more, ${weightWords(rest, "ns")}`));
  return [element("div", "waits-for", "Waits for"), element("ul", "waited", ...items)];
}
