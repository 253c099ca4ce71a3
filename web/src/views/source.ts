// Where the time goes line by line, in the program's own text: files by what is spent in them, and one of them with its heat. Without
// the text (it is put in by --source) the lines that were seen, with their functions.
import { isAwait, unitOf } from "../model/head";
import { element } from "../page/dom";
import { fileOf, functionOf } from "../model/catalogue";
import { Table } from "../model/questions/table";
import { Kind } from "../model/tree";
import { own, withOwn } from "../state/state";
import { countWords, shareWords, weightWords } from "../words";
import { Latest } from "./parts/latest";
import { RowTable, tableKeys } from "./parts/row_table";
import { Page, Showing, View } from "./view";

const name = "source";

interface FileTime {
  file: string;
  self: number;
}

interface LineTime {
  self: number;
  total: number;
  samples: number;
  places: number[];
}

const withFile = (page: Page, file: string, line: number) => {
  const chosen = { ...page.state, ...withOwn(page.state, name, "file", file) };
  return withOwn(chosen, name, "line", line > 0 ? String(line) : "");
};

function create(page: Page): Showing {
  const latest = new Latest<Table>();
  const latestText = new Latest<{ text: string | null }>();
  const { functions, places } = page.catalogue;
  const embedded = new Set(page.catalogue.sourceFiles);
  let table: Table | null = null;
  let tableKey = "";
  let files: FileTime[] = [];
  let lines: LineTime[] = []; // by line
  let text: string[] | null = null;
  let textOf = "";
  let shownAt = ""; // file and line that were scrolled to
  let hottest = 0;

  const key = () => JSON.stringify([page.state.filters, page.state.show]);
  const whole = () => (table ? table.total[page.state.weight][0] : 0);
  const time = (value: number) => weightWords(value, unitOf(page.catalogue.head, page.state.weight));
  const chosen = () => {
    const file = own(page.state, name, "file");
    return files.some((one) => one.file === file) || embedded.has(file)
      ? file
      : (files.find((one) => embedded.has(one.file)) ?? files[0])?.file ?? "";
  };
  const bySelf = (of: (row: number) => number) => (a: number, b: number) => of(a) - of(b);
  const shareOf = (value: number) => (whole() > 0 ? value / whole() : 0);

  const parts = (row: number): [string, string] => {
    const { file } = files[row];
    const slash = file.lastIndexOf("/");
    return [file.slice(0, Math.max(0, slash)), file.slice(slash + 1)];
  };
  const byText =
    (part: 0 | 1) => (a: number,
      b: number) => (parts(a)[part] < parts(b)[part] ? -1 : parts(a)[part] > parts(b)[part] ? 1 : 0);
  const list = new RowTable("Files", [
    { name: "self", title: "Self", about: "Spent on lines of the file themselves, of what is shown", number: true,
      ascending: false, text: (row) => shareWords(files[row].self, whole()), bar: (row) => shareOf(files[row].self),
      compare: bySelf((row) => files[row].self) },
    { name: "name", title: "File", about: "By name", number: false, ascending: true, text: (row) => parts(row)[1],
      compare: byText(1) },
    { name: "place", title: "Folder", about: "Where it lies", number: false, ascending: true,
      text: (row) => parts(row)[0], compare: byText(0) },
  ], {
    sort: (sort) => page.change(withOwn(page.state, name, "sort", sort), "aside"),
    menu: () => undefined,
    choose: (row) => page.change(withFile(page, files[row].file, 0)),
    pick: (row) => page.change(withFile(page, files[row].file, 0)),
    mark: () => false,
    dim: (row) => embedded.size > 0 && !embedded.has(files[row].file),
  });
  const at = (line: number): LineTime | undefined => lines[line];
  const functionsOn = (line: number) =>
    (at(line)?.places ?? []).map((place) => functions.full[places.function[place]]).join(", ");
  const heat = (line: number) => (hottest > 0 ? (at(line)?.self ?? 0) / hottest : 0);
  const spent = (value: number) => (value > 0 ? shareWords(value, whole()) : "");
  const rows = new RowTable("Lines", [
    { name: "line", title: "Line", about: "Its number", number: true, ascending: true, text: String,
      compare: (a, b) => a - b },
    { name: "self", title: "Self", about: "Spent on the line itself, of what is shown; the darker, the more",
      number: true, ascending: false, text: (line) => spent(at(line)?.self ?? 0), heat,
      compare: bySelf((line) => at(line)?.self ?? 0) },
    { name: "total", title: "Total", about: "With what it calls", number: true, ascending: false,
      text: (line) => spent(at(line)?.total ?? 0), compare: bySelf((line) => at(line)?.total ?? 0) },
    { name: "time", title: "Self time", about: "Spent on the line itself", number: true, ascending: false,
      text: (line) => ((at(line)?.self ?? 0) > 0 ? time((at(line) as LineTime).self) : ""),
      compare: bySelf((line) => at(line)?.self ?? 0) },
    { name: "samples", title: "Samples", about: "Samples with this line on the stack", number: true, ascending: false,
      text: (
        line,
      ) => (at(line) && !isAwait(page.catalogue.head, page.state.weight)
        ? countWords((at(line) as LineTime).samples)
        : ""), compare: bySelf((line) => at(line)?.samples ?? 0) },
    { name: "name", title: "Source", about: "As it was when the page was written", number: false, ascending: true,
      text: (line) => (text ? text[line - 1] ?? "" : functionsOn(line)), compare: (a, b) => a - b },
  ], {
    sort: (sort) => page.change(withOwn(page.state, name, "lines", sort), "aside"),
    menu: (line, x, y) => at(line) && page.menu(page.frameItems("line", at(line)!.places.slice(0, 1)), x, y),
    choose: (line) => page.change(withFile(page, chosen(), line), "aside"),
    mark: (line) =>
      page.matches !== null &&
      (at(line)?.places ?? []).some((place) => page.matches!.functions[places.function[place]] === 1),
  });
  const head = element("p", { class: "chosen", "aria-live": "polite" });
  const view = element("section", { class: "source", "aria-label": "Source" }, element("div", "choose", list.element),
    element("div", "text", head, rows.element));

  function addUp(): void {
    const { self, total } = table as Table;
    const { weight } = page.state;
    const sums = new Map<string, number>();
    for (let place = 1; place < places.line.length; ++place) {
      const f = places.function[place];
      const file = fileOf(page.catalogue, place);
      if (!file || !places.line[place] || functions.kind[f] === Kind.marker || total[weight][place] <= 0) continue;
      sums.set(file, (sums.get(file) ?? 0) + self[weight][place]);
    }
    files = Array.from(sums, ([file, self]) => ({ file, self })).sort((a, b) => b.self - a.self);
    list.show(files.map((_, i) => i), own(page.state, name, "sort") || "-self");
    const wanted = chosen();
    list.light(files.findIndex((one) => one.file === wanted));
    lines = [];
    hottest = 0;
    for (let place = 1; place < places.line.length; ++place) {
      if (fileOf(page.catalogue, place) !== wanted || !places.line[place] || total[weight][place] <= 0) continue;
      const line = (lines[places.line[place]] ??= { self: 0, total: 0, samples: 0, places: [] });
      line.self += self[weight][place];
      line.total += total[weight][place];
      line.samples += total.samples[place];
      line.places.push(place);
      hottest = Math.max(hottest, line.self);
    }
  }

  function drawHead(file: string): void {
    const self = files.find((one) => one.file === file)?.self ?? 0;
    head.replaceChildren(element("b", {}, file),
      `: ${shareWords(self, whole())} of what is shown, ${time(self)} on its own lines. `);
    if (text) return;
    const { sources } = page.catalogue.head;
    head.append(sources ?
      "Its source could not be read when the page was written: the lines that were seen, with their functions." :
      "The source is not in this page (phlox view --source puts it in): the lines that were seen, with their functions.");
  }

  function draw(): void {
    if (!table || tableKey !== key()) return;
    addUp();
    const file = chosen();
    if (!file) {
      head.textContent = "No line of a file is shown.";
      return rows.show([], "");
    }
    if (textOf !== file) return;
    drawHead(file);
    const all = text
      ? Array.from({ length: Math.max(text.length, lines.length - 1) }, (_, i) => i + 1)
      : lines.flatMap((line, i) => (line ? [i] : []));
    rows.show(all, own(page.state, name, "lines") || "line");
    const line = Number(own(page.state, name, "line")) ||
      lines.reduce((best, one, i) => (one && one.self > (lines[best]?.self ?? -1) ? i : best), 0);
    if (shownAt !== `${file}:${line}`) {
      shownAt = `${file}:${line}`;
      rows.goTo(line);
    }
    page.drawn();
  }

  return {
    element: view,
    show: () => {
      latest.ask(key(), () => page.ask("table", { by: "line", natives: true }), (answer) => {
        [table, tableKey] = [answer, key()];
        showing();
      });
      if (tableKey === key()) showing();
      function showing(): void {
        draw();
        const file = chosen();
        if (!file) return;
        latestText.ask(file, () => page.ask("source", { file }), (answer) => {
          text = answer.text === null ? null : answer.text.split("\n");
          textOf = file;
          draw();
        });
      }
    },
    keys: [
      ...tableKeys("open the file, or mark the line"),
      { on: "n", shown: "n  N", meaning: "next, previous line of a match", run: () => rows.step(1) },
      { on: "N", shown: "", meaning: "", run: () => rows.step(-1) },
      { on: "t", shown: "t", meaning: "copy the lines with their times", run: () => page.copy(rows.asText()) },
    ],
  };
}

export const source: View = {
  name,
  title: "Source",
  place: "main",
  create,
  items: (page, by, path) => {
    const last = path[path.length - 1];
    const f = functionOf(page.catalogue, by, last);
    const label = page.labels(by)[last];
    if (!label.file || !label.line) return [];
    const line = by === "line" ? page.catalogue.places.line[last] : label.line;
    return [{ text: `Source of ${page.labels("function")[f].name.slice(0, 60)}`,
      run: () => page.change({ view: name, ...withFile(page, label.file, line) }) }];
  },
};
