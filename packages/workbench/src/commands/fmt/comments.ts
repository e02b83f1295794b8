import { Parser } from "yaml";

/** A comment of a YAML text, from its `#` on. Offsets are UTF-16. */
export interface Comment {
  readonly from: number;
  readonly text: string;
  /** Nothing but white space stands before it on its line. */
  readonly ownLine: boolean;
  /** How many characters stand before it on its line. */
  readonly column: number;
}

/** Every comment of a text, in its order. White space at the end of a line is no part of it. */
export function commentsOf(text: string): readonly Comment[] {
  const found = new Map<number, Comment>();
  for (const token of new Parser().parse(text)) collect(token, text, found);
  return [...found.values()].toSorted((a, b) => a.from - b.from);
}

/** The syntax tree holds comments at many places: between, before and behind parts, and at the end. */
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

/** Gives each comment to one part of the document, in the order of the text. */
export class Comments {
  readonly #text: string;
  readonly #all: readonly Comment[];
  #next = 0;

  constructor(text: string) {
    this.#text = text;
    this.#all = commentsOf(text);
  }

  /** The comments and blank lines before an offset, as lines: "" is a blank one, and never two of them meet. */
  before(offset: number): readonly string[] {
    const lines: string[] = [];
    for (let comment = this.#peek(offset); comment !== undefined; comment = this.#peek(offset)) {
      this.#next += 1;
      lines.push(...this.#line(comment));
    }
    return this.#followsBlank(offset) ? [...lines, ""] : lines;
  }

  /** The comments that stand no further left than a collection, before what follows it: they are its end. */
  tail(limit: number, column: number): readonly string[] {
    const lines: string[] = [];
    for (let comment = this.#peek(limit); comment !== undefined; comment = this.#peek(limit)) {
      if (comment.column < column) break;
      this.#next += 1;
      lines.push(...this.#line(comment));
    }
    return lines;
  }

  /** The comment that ends the line on which a part ends. */
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

  #line(comment: Comment): readonly string[] {
    return comment.ownLine && this.#followsBlank(comment.from) ? ["", comment.text] : [comment.text];
  }

  /** Scans no further than it must: a line may hold thousands of parts. */
  #followsBlank(offset: number): boolean {
    const line = this.#back(offset - 1, /[ \t-]/);
    if (this.#text[line] !== "\n") return false;
    const above = this.#back(line - 1, /[ \t\r]/);
    return above >= 0 ? this.#text[above] === "\n" : line > 0;
  }

  /** The offset, at or before one, of what is none of some characters; -1 where there is nothing else. */
  #back(offset: number, characters: RegExp): number {
    let at = offset;
    while (at >= 0 && characters.test(this.#text.charAt(at))) at -= 1;
    return at;
  }
}
