// Rows of boxes as pixels. Boxes that share a pixel each contribute colour in proportion to the part that they cover.
// No DOM.

export class Coverage {
  rows = 0;
  private base = 0; // offset in `sums` of the row being filled
  private sums = new Float32Array(0); // per pixel: red, green and blue, each times coverage, then coverage

  // `width`: in pixels.
  constructor(readonly width: number) {}

  // Starts a new row for the boxes that follow.
  row(): void {
    const size = this.width * 4;
    this.base = this.rows++ * size;
    if (this.sums.length < this.base + size) {
      const larger = new Float32Array((this.base + size) * 2);
      larger.set(this.sums.subarray(0, this.base));
      this.sums = larger;
    }
    this.sums.fill(0, this.base, this.base + size);
  }

  // `x` and `width` in pixels; `colour`: red, green and blue in one number.
  add(x: number, width: number, colour: number, alpha: number): void {
    const { sums, base } = this;
    const from = Math.max(0, x);
    const to = Math.min(this.width, x + width);
    const [red, green, blue] = [colour >> 16, (colour >> 8) & 255, colour & 255];
    for (let pixel = Math.floor(from); pixel < to; ++pixel) {
      const covered = ((to < pixel + 1 ? to : pixel + 1) - (from > pixel ? from : pixel)) * alpha;
      const at = base + pixel * 4;
      sums[at] += covered * red;
      sums[at + 1] += covered * green;
      sums[at + 2] += covered * blue;
      sums[at + 3] += covered;
    }
  }

  // Writes RGBA bytes as an image has them. Rounding to bytes also clamps values above 255, where boxes overlap.
  // `bytes` must be all 0 before.
  write(bytes: Uint8ClampedArray): void {
    const { sums } = this;
    for (let at = 0; at < this.rows * this.width * 4; at += 4) {
      const covered = sums[at + 3];
      if (covered === 0) continue;
      bytes[at] = sums[at] / covered;
      bytes[at + 1] = sums[at + 1] / covered;
      bytes[at + 2] = sums[at + 2] / covered;
      bytes[at + 3] = covered * 255;
    }
  }

  clear(): void {
    this.rows = 0;
  }
}
