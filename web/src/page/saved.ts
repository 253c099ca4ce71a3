// Saves what is shown to files: pictures as drawn, stacks for other tools. File names say what is in them, and a
// picture's text does too.
import { Catalogue } from "../model/catalogue";
import { Filter } from "../model/filters";
import { eventOf, weightName } from "../model/head";
import { State } from "../state/state";
import { SvgPen } from "../views/parts/svg_pen";
import { Picture } from "../views/view";
import { fit, wrap } from "../words";
import { filterWords } from "./filter_words";

const margin = 12;
const longestName = 150; // characters; file systems take 255 bytes

// Characters that every file system and shell accepts.
export const slug = (text: string) => text.replace(/[^A-Za-z0-9._+]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");

// "/usr/bin/python3 /srv/app.py --port 80" becomes "app.py --port 80".
const shortTitle = (title: string) =>
  title.replace(/[^\s]*\/(?=[^\s/])/g, "").replace(/^python[\d.]* (?=.)/, "").slice(0, 40);

// "app.py-flame-graph-cpu-only-thread-worker-1.svg": names each difference from the page's initial state.
export function fileName(catalogue: Catalogue, state: State, what: string, extension: string): string {
  const { head } = catalogue;
  const parts = [shortTitle(head.title), what];
  if (state.weight !== head.weight) parts.push(eventOf(state.weight) ? weightName(head, state.weight) : state.weight);
  if (state.by !== head.by) parts.push(`by ${state.by}`);
  if (state.show !== head.show) parts.push(state.show);
  parts.push(...state.filters.map((filter) => filterWords(catalogue, filter)));
  return slug(parts.join(" ")).slice(0, longestName).replace(/[-.]+$/, "") + extension;
}

// Sentences about the whole picture.
function headLines({ head }: Catalogue, state: State, filters: string[], whole: string, found: string,
  { what, words }: Picture): string[]
{
  const capital = what.charAt(0).toUpperCase() + what.slice(1);
  return [
    head.subtitle,
    `${capital}, by ${state.by}, ${weightName(head, state.weight)}, “${state.show}”: ${whole}.`,
    filters.length ? `Filters: ${filters.join("; ")}.` : "",
    state.search ? `Search “${state.search}”: ${found}.` : "",
    words,
    head.warning,
    head.quality.join(" — "),
  ].filter((line) => line);
}

interface Around {
  catalogue: Catalogue;
  state: State;
  whole: string; // the whole that shares refer to
  found: string; // by the search
  colour(name: string): string;
}

export async function svgOf(picture: Picture, { catalogue, state, whole, found, colour }: Around): Promise<string[]> {
  const pen = new SvgPen();
  const measure = (text: string) => pen.measureText(text).width;
  const filters = state.filters.map((filter: Filter) => filterWords(catalogue, filter));
  let y = margin;
  pen.font = "600 17px system-ui, sans-serif";
  pen.fillStyle = colour("--ink");
  pen.fillText(fit(catalogue.head.title, picture.width, measure), margin, y + 12);
  y += 28;
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = colour("--soft");
  for (const line of headLines(catalogue, state, filters, whole, found, picture).flatMap((words) =>
    wrap(words, picture.width, measure)
  )) {
    pen.fillText(line, margin, y + 8);
    y += 17;
  }
  let x = margin;
  for (const [fill, words] of picture.legend) {
    const wide = measure(words) + 34;
    if (x > margin && x + wide > picture.width) [x, y] = [margin, y + 18];
    pen.fillStyle = fill.startsWith("--") ? colour(fill) : fill;
    pen.fillRect(x, y + 3, 12, 12);
    pen.fillStyle = colour("--soft");
    pen.fillText(words, x + 17, y + 9);
    x += wide;
  }
  y += picture.legend.length ? 26 : 8;
  pen.save();
  pen.translate(margin, y);
  await picture.draw(pen);
  pen.restore();
  const { width, height, what } = picture;
  return pen.file(width + 2 * margin, y + height + margin, `${catalogue.head.title}: ${what}`, colour("--paper"), [
    margin,
    y,
    width,
    height,
  ]);
}

export function download(name: string, parts: string[], type: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // a browser may first ask where to save
}
