/** A file of a contract or a mandate: `name` is how the user named it. */
export interface SourceFile {
  readonly name: string;
  readonly text: string;
}

/** A piece of a file, in UTF-16 offsets; `to` is exclusive. */
export interface Span {
  readonly file: SourceFile;
  readonly from: number;
  readonly to: number;
}

/** Something wrong that was found while compiling: what, where, and what to do. */
export interface Diagnostic {
  /** Kebab-case, stable: for editors, tests and docs. */
  readonly code: string;
  readonly message: string;
  readonly span: Span;
  readonly hint?: string;
}

/** Gathers every diagnostic of a compilation; the same one at the same place is kept once. */
export class Report {
  readonly #found = new Map<string, Diagnostic>();

  add(code: string, span: Span, message: string, hint?: string): void {
    const key = `${span.file.name}:${span.from}:${span.to}:${message}`;
    if (!this.#found.has(key)) this.#found.set(key, { code, message, span, ...(hint === undefined ? {} : { hint }) });
  }

  get size(): number {
    return this.#found.size;
  }

  /** In the order of the files given and of the text. */
  sorted(files: readonly SourceFile[]): Diagnostic[] {
    const order = (diagnostic: Diagnostic): number => files.indexOf(diagnostic.span.file);
    return [...this.#found.values()].toSorted((a, b) => order(a) - order(b) || a.span.from - b.span.from);
  }
}

/** Line and column of an offset, from 1; a column counts characters. */
export function position(file: SourceFile, offset: number): { readonly line: number; readonly column: number } {
  const before = file.text.slice(0, offset);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: [...before.slice(lineStart)].length + 1 };
}

/**
 * A diagnostic for a terminal: message, place, the line with carets under the span, the hint.
 *
 *     error[unknown-field]: `platform` has no member `monthy_spend_usd`
 *       --> contracts/payments.yaml:41:24
 *        |
 *     41 |     when: input.amount + platform.monthy_spend_usd > limits.monthly_budget_usd
 *        |                          ^^^^^^^^^^^^^^^^^^^^^^^^^
 *        = help: did you mean `monthly_spend_usd`?
 */
export function renderDiagnostic({ code, message, span, hint }: Diagnostic): string {
  const { line, column } = position(span.file, span.from);
  const text = span.file.text.split("\n")[line - 1]?.replace(/\r$/, "") ?? "";
  const lineStart = span.file.text.lastIndexOf("\n", span.from - 1) + 1;
  const onLine = text.slice(span.from - lineStart, Math.max(span.to - lineStart, span.from - lineStart + 1));
  const gutter = " ".repeat(String(line).length);
  const blank = text.slice(0, span.from - lineStart).replace(/[^\t]/gu, " ");
  return [
    `error[${code}]: ${message}`,
    `${gutter}--> ${span.file.name}:${line}:${column}`,
    `${gutter} |`,
    `${line} | ${text}`,
    `${gutter} | ${blank}${"^".repeat(Math.max(1, [...onLine].length))}`,
    ...(hint === undefined ? [] : [`${gutter} = help: ${hint}`]),
  ].join("\n");
}
