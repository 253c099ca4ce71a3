// Where the time goes by file, and by line of one file.
import { Catalogue, fileOf } from "./catalogue";
import { Weight } from "./head";
import { Table } from "./questions/table";
import { Kind } from "./tree";

export interface FileTime {
  file: string;
  self: number;
}

export interface LineTime {
  self: number;
  total: number;
  samples: number;
  places: number[];
}

// Places with any time that are in a line of a file.
function eachPlace(catalogue: Catalogue, { total }: Table, weight: Weight,
  run: (place: number, file: string) => void): void
{
  const { line } = catalogue.places;
  for (let place = 1; place < line.length; ++place) {
    const file = fileOf(catalogue, place);
    if (file && line[place] && total[weight][place] > 0) run(place, file);
  }
}

// `table`: by line. The most time first.
export function filesOf(catalogue: Catalogue, table: Table, weight: Weight): FileTime[] {
  const { functions, places } = catalogue;
  const sums = new Map<string, number>();
  eachPlace(catalogue, table, weight, (place, file) => {
    if (functions.kind[places.function[place]] === Kind.marker) return;
    sums.set(file, (sums.get(file) ?? 0) + table.self[weight][place]);
  });
  return Array.from(sums, ([file, self]) => ({ file, self })).sort((a, b) => b.self - a.self);
}

// By line; those without time are missing.
export function linesOf(catalogue: Catalogue, table: Table, weight: Weight, wanted: string): LineTime[] {
  const lines: LineTime[] = [];
  eachPlace(catalogue, table, weight, (place, file) => {
    if (file !== wanted) return;
    const line = (lines[catalogue.places.line[place]] ??= { self: 0, total: 0, samples: 0, places: [] });
    line.self += table.self[weight][place];
    line.total += table.total[weight][place];
    line.samples += table.total.samples[place];
    line.places.push(place);
  });
  return lines;
}
