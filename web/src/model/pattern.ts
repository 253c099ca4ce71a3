// Regular expressions in time proportional to pattern length times text length, whoever wrote them: anyone can craft
// the address of a picture or page. A browser's own backtrack, for hours with a hostile pattern. Without what needs
// backtracking: lookahead, lookbehind and backreferences. No DOM.

type Test = (code: number) => boolean;
type Node =
  | { kind: "one"; test: Test }
  | { kind: "place"; holds: (before: number, after: number) => boolean }
  | { kind: "all"; parts: Node[] }
  | { kind: "any"; parts: Node[] }
  | { kind: "repeat"; part: Node; least: number; most: number };

interface Step {
  test?: Test; // consumes a character
  holds?: (before: number, after: number) => boolean; // consumes none
  to: number[];
}

const none = -1;
const longest = 2000; // steps of a pattern

export class Unsupported extends Error {}

// One character by a class or escape, using the browser's own: a single character cannot backtrack.
function letters(source: string, flags: string): Test {
  const regex = new RegExp(`^${source}$`, flags);
  const known = new Map<number, boolean>();
  return (code) => {
    let is = known.get(code);
    if (is === undefined) known.set(code, is = regex.test(String.fromCodePoint(code)));
    return is;
  };
}

const word = letters("\\w", "u");
const isWord = (code: number) => code !== none && word(code);

class Parser {
  private at = 0;
  constructor(
    private readonly text: string,
    private readonly flags: string,
  ) {}

  whole(): Node {
    const node = this.choice();
    if (this.at < this.text.length) throw new Unsupported("a ) too many");
    return node;
  }

  private take(sign: string): boolean {
    if (!this.text.startsWith(sign, this.at)) return false;
    this.at += sign.length;
    return true;
  }

  private match(regex: RegExp): string | undefined {
    regex.lastIndex = this.at;
    const found = regex.exec(this.text);
    if (!found) return undefined;
    this.at += found[0].length;
    return found[0];
  }

  private choice(): Node {
    const parts = [this.sequence()];
    while (this.take("|")) parts.push(this.sequence());
    return parts.length === 1 ? parts[0] : { kind: "any", parts };
  }

  private sequence(): Node {
    const parts: Node[] = [];
    while (this.at < this.text.length && this.text[this.at] !== "|" && this.text[this.at] !== ")")
      parts.push(this.repeated());
    return { kind: "all", parts };
  }

  private repeated(): Node {
    const part = this.atom();
    const sign = this.match(/[*+?]|\{\d+(?:,\d*)?\}/uy);
    if (sign === undefined) return part;
    this.take("?"); // lazy: what matches is the same
    if (sign === "*") return { kind: "repeat", part, least: 0, most: Infinity };
    if (sign === "+") return { kind: "repeat", part, least: 1, most: Infinity };
    if (sign === "?") return { kind: "repeat", part, least: 0, most: 1 };
    const [low, high] = sign.slice(1, -1).split(",");
    return { kind: "repeat", part, least: Number(low),
      most: high === undefined ? Number(low) : high === "" ? Infinity : Number(high) };
  }

  private atom(): Node {
    if (this.take("(")) {
      if (this.match(/\?(?:[=!]|<[=!])/uy)) throw new Unsupported("looking ahead or behind is not supported here");
      this.match(/\?:|\?<[^>]*>/uy);
      const node = this.choice();
      if (!this.take(")")) throw new Unsupported("a ) is missing");
      return node;
    }
    if (this.take("^")) return { kind: "place", holds: (before) => before === none };
    if (this.take("$")) return { kind: "place", holds: (_, after) => after === none };
    if (this.take("\\b")) return { kind: "place", holds: (before, after) => isWord(before) !== isWord(after) };
    if (this.take("\\B")) return { kind: "place", holds: (before, after) => isWord(before) === isWord(after) };
    if (this.match(/\\(?:[1-9]|k<)/uy)) throw new Unsupported("references to groups are not supported here");
    const source = this.match(
      /\[(?:\\.|[^\]\\])*\]|\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|.)|./suy,
    );
    if (source === undefined) throw new Unsupported("it ends too early");
    return { kind: "one", test: letters(source, this.flags) };
  }
}

// The steps that follow each step, built from the last one backwards.
class Program {
  readonly steps: Step[] = [{ to: [] }];

  add(step: Step): number {
    if (this.steps.length >= longest) throw new Unsupported("it is too long");
    return this.steps.push(step) - 1;
  }

  // The first step of `node`, with `next` after it.
  build(node: Node, next: number): number {
    switch (node.kind) {
      case "one":
        return this.add({ test: node.test, to: [next] });
      case "place":
        return this.add({ holds: node.holds, to: [next] });
      case "all":
        return node.parts.reduceRight((after, part) => this.build(part, after), next);
      case "any":
        return this.add({ to: node.parts.map((part) => this.build(part, next)) });
      case "repeat":
        return this.repeat(node.part, node.least, node.most, next);
    }
  }

  private repeat(part: Node, least: number, most: number, next: number): number {
    if (most < least || least > longest) throw new Unsupported("it is too long");
    let start = next;
    if (most === Infinity) {
      start = this.add({ to: [] });
      this.steps[start].to = [this.build(part, start), next];
    } else {
      for (let more = least; more < most; ++more) start = this.add({ to: [this.build(part, start), next] });
    }
    for (let more = 0; more < least; ++more) start = this.build(part, start);
    return start;
  }
}

export class Pattern {
  private readonly steps: Step[];
  private readonly start: number;
  private readonly seen: Uint32Array;
  private mark = 0;

  // Throws an Error that says what is wrong.
  constructor(text: string, flags: string) {
    new RegExp(text, flags); // has the best error message
    const program = new Program();
    this.start = program.build(new Parser(text, flags).whole(), 0);
    this.steps = program.steps;
    this.seen = new Uint32Array(this.steps.length);
  }

  test(text: string): boolean {
    let now: number[] = [];
    let before = none;
    for (let at = 0;;) {
      const after = at < text.length ? (text.codePointAt(at) as number) : none;
      if (this.reached([...now, this.start], before, after, now = [])) return true;
      if (after === none) return false;
      const next: number[] = [];
      for (const step of now) if ((this.steps[step].test as Test)(after)) next.push(this.steps[step].to[0]);
      now = next;
      before = after;
      at += after > 0xffff ? 2 : 1;
    }
  }

  // Adds to `into` the consuming steps that can be reached without consuming anything. True: the pattern matches.
  private reached(from: number[], before: number, after: number, into: number[]): boolean {
    ++this.mark;
    for (let step = from.pop(); step !== undefined; step = from.pop()) {
      if (this.seen[step] === this.mark) continue;
      this.seen[step] = this.mark;
      if (step === 0) return true;
      const { test, holds, to } = this.steps[step];
      if (test) into.push(step);
      else if (!holds || holds(before, after)) from.push(...to);
    }
    return false;
  }
}
