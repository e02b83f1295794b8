import { Parser } from "yaml";

/** A comment of a YAML text, starting with its `#`. Offsets are UTF-16. */
export interface Comment {
  readonly from: number;
  readonly text: string;
  /** Only white space precedes it on its line. */
  readonly ownLine: boolean;
  /** The number of characters before it on its line. */
  readonly column: number;
}

/** Every comment of a text, in order, without white space at the end of the line. */
export function commentsOf(text: string): readonly Comment[] {
  const found = new Map<number, Comment>();
  for (const token of new Parser().parse(text)) collect(token, text, found);
  return [...found.values()].toSorted((a, b) => a.from - b.from);
}

/** The syntax tree stores comments at many positions: between, before and after parts, and at the end. */
function collect(token: unknown, text: string, found: Map<number, Comment>): void {
  if (typeof token !== "object" || token === null) return;
  const { type, offset, source } = token as { type?: unknown; offset?: unknown; source?: unknown };
  if (type === "comment" && typeof offset === "number" && typeof source === "string") {
    const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
    const ownLine = before.trim() === "";
    found.set(offset, { from: offset, text: source.trimEnd(), ownLine, column: before.length });
    return;
  }
  for (const part of Object.values(token)) collect(part, text, found);
}

/** Assigns each comment to one part of the document, in the order of the text. */
export class Comments {
  readonly #text: string;
  readonly #all: readonly Comment[];
  #next = 0;

  constructor(text: string) {
    this.#text = text;
    this.#all = commentsOf(text);
  }

  /**
   * The comments and blank lines before an offset, as lines: "" is a blank line, and two blank lines are never
   * adjacent.
   */
  before(offset: number): readonly string[] {
    const lines = this.tail(offset, 0);
    return this.#followsBlank(offset) ? [...lines, ""] : lines;
  }

  /** The comments that are indented at least as much as a collection, before the next part: they end the collection. */
  tail(limit: number, column: number): readonly string[] {
    const lines: string[] = [];
    for (let comment = this.#peek(limit); comment !== undefined; comment = this.#peek(limit)) {
      if (comment.column < column) break;
      this.#next += 1;
      if (comment.ownLine && this.#followsBlank(comment.from)) lines.push("");
      lines.push(comment.text);
    }
    return lines;
  }

  /** The comment at the end of a part's last line. */
  behind(end: number, limit: number): string | undefined {
    const comment = this.#peek(limit);
    if (comment === undefined || comment.ownLine || comment.from < end) return undefined;
    if (this.#text.slice(end, comment.from).includes("\n")) return undefined;
    this.#next += 1;
    return comment.text;
  }

  has(from: number, to: number): boolean {
    return this.#all.some((comment) => comment.from >= from && comment.from < to);
  }

  #peek(limit: number): Comment | undefined {
    const comment = this.#all[this.#next];
    return comment !== undefined && comment.from < limit ? comment : undefined;
  }

  /** Scans as little as possible: a line may contain thousands of parts. */
  #followsBlank(offset: number): boolean {
    const line = this.#back(offset - 1, /[ \t-]/);
    if (this.#text[line] !== "\n") return false;
    const above = this.#back(line - 1, /[ \t\r]/);
    return above >= 0 ? this.#text[above] === "\n" : line > 0;
  }

  /** The last offset, up to the given one, of a character that does not match; -1 if there is none. */
  #back(offset: number, characters: RegExp): number {
    let at = offset;
    while (at >= 0 && characters.test(this.#text.charAt(at))) at -= 1;
    return at;
  }
}
