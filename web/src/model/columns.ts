// Reads columns of numbers from the page's bytes; exporters/page_columns.h writes them. No DOM.

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;
// Name, byte layout, bytes per number, count of numbers (for text: bytes).
export type ColumnEntry = [string, "planes" | "words" | "text", number, number];

const damaged = (what: string) => new Error(`the page's data is damaged: ${what}`);

export class Columns {
  private readonly places = new Map<string, { entry: ColumnEntry; start: number }>();

  constructor(entries: ColumnEntry[], private readonly bytes: Uint8Array) {
    let start = 0;
    for (const entry of entries) {
      this.places.set(entry[0], { entry, start });
      start += entry[2] * entry[3];
    }
    if (start !== bytes.length) throw damaged(`${bytes.length} bytes in place of ${start}`);
  }

  private place(name: string): { entry: ColumnEntry; start: number } {
    const place = this.places.get(name);
    if (!place) throw damaged(`no column ${name}`);
    return place;
  }

  // Whole numbers up to 2^53, in the narrowest array that holds them. It may be a view of the bytes: do not write to
  // it.
  numbers(name: string): Numbers {
    const { entry: [, layout, width, rows], start } = this.place(name);
    const bytes = this.bytes.subarray(start, start + width * rows);
    if (width === 1) return bytes;
    return layout === "words" ? fromWords(bytes, width, rows) : fromPlanes(bytes, width, rows);
  }

  has(name: string): boolean {
    return this.places.has(name);
  }

  text(name: string): string {
    const { entry: [, , , length], start } = this.place(name);
    return new TextDecoder().decode(this.bytes.subarray(start, start + length));
  }
}

function fromPlanes(bytes: Uint8Array, width: number, rows: number): Numbers {
  const low = bytes.subarray(0, rows);
  const second = bytes.subarray(rows, 2 * rows);
  if (width === 2) {
    const out = new Uint16Array(rows);
    for (let i = 0; i < rows; ++i) out[i] = low[i] | (second[i] << 8);
    return out;
  }
  const third = bytes.subarray(2 * rows, 3 * rows);
  const out = new Uint32Array(rows);
  if (width === 3) {
    for (let i = 0; i < rows; ++i) out[i] = low[i] | (second[i] << 8) | (third[i] << 16);
    return out;
  }
  const fourth = bytes.subarray(3 * rows, 4 * rows);
  for (let i = 0; i < rows; ++i) out[i] = low[i] | (second[i] << 8) | (third[i] << 16) | (fourth[i] << 24);
  if (width === 4) return out;
  const wide = Float64Array.from(out);
  for (let plane = 4, scale = 2 ** 32; plane < width; ++plane, scale *= 256) {
    const part = bytes.subarray(plane * rows, (plane + 1) * rows);
    for (let i = 0; i < rows; ++i) wide[i] += part[i] * scale;
  }
  return wide;
}

// Little-endian, like every machine that browsers run on.
function fromWords(bytes: Uint8Array, width: number, rows: number): Numbers {
  const copy = bytes.slice().buffer;
  if (width === 2) return new Uint16Array(copy);
  if (width === 4) return new Uint32Array(copy);
  const halves = new Uint32Array(copy);
  const wide = new Float64Array(rows);
  for (let i = 0; i < rows; ++i) wide[i] = halves[2 * i] + halves[2 * i + 1] * 2 ** 32;
  return wide;
}

// 0, 1, 2, 3, 4, ... become 0, -1, 1, -2, 2, ...
export function unzigzag(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

interface Inflater {
  readable: ReadableStream<Uint8Array>;
  writable: WritableStream<Uint8Array>;
}
declare const DecompressionStream: { new(format: "deflate"): Inflater };

function fromBase64(text: string): Uint8Array {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export async function unpack(base64: string): Promise<Uint8Array> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the page: it needs Chromium 80, Firefox 113 or Safari 16.4");
  }
  const packed = new Blob([fromBase64(base64)]).stream() as ReadableStream<Uint8Array>;
  return new Uint8Array(await new Response(packed.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
}
