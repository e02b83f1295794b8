import { LineCounter } from "yaml";
import type { DiagnosticCode } from "./diagnostic-codes.ts";

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

/** A problem found during compilation: what happened, where, and what to do. */
export interface Diagnostic {
  /** In kebab case and stable: for editors, tests and docs. */
  readonly code: DiagnosticCode;
  readonly message: string;
  readonly span: Span;
  readonly hint?: string;
}

/** Collects the diagnostics of a compilation; keeps the same one at the same span once. */
export class Report {
  readonly #found = new Map<string, Diagnostic>();

  add(code: DiagnosticCode, span: Span, message: string, hint?: string): void {
    const key = `${span.file.name}:${span.from}:${span.to}:${message}`;
    if (!this.#found.has(key)) this.#found.set(key, { code, message, span, ...(hint === undefined ? {} : { hint }) });
  }

  /** Adds all diagnostics of another report. */
  addAll(other: Report): void {
    for (const { code, span, message, hint } of other.#found.values()) this.add(code, span, message, hint);
  }

  get size(): number {
    return this.#found.size;
  }

  /** The diagnostics in the order of the given files and of their text. */
  sorted(files: readonly SourceFile[]): Diagnostic[] {
    const order = (diagnostic: Diagnostic): number => files.indexOf(diagnostic.span.file);
    return [...this.#found.values()].toSorted((a, b) => order(a) - order(b) || a.span.from - b.span.from);
  }
}

/** Line and column of an offset, from 1; a column counts characters. */
export function position(file: SourceFile, offset: number): { readonly line: number; readonly column: number } {
  const { line, col } = indexLines(file).linePos(offset);
  return { line, column: Array.from(file.text.slice(offset - col + 1, offset)).length + 1 };
}

const linesOfFiles = new WeakMap<SourceFile, LineCounter>();

/** The lines of a file; found once per file, because a file may have thousands of problems. */
function indexLines(file: SourceFile): LineCounter {
  const known = linesOfFiles.get(file);
  if (known !== undefined) return known;
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = file.text.indexOf("\n"); at >= 0; at = file.text.indexOf("\n", at + 1)) lines.addNewLine(at + 1);
  linesOfFiles.set(file, lines);
  return lines;
}

/**
 * A diagnostic for a terminal: message, position, the line with carets under the span, the hint.
 *
 *     error[unknown-field]: `platform` has no member `monthy_spend_usd`
 *       --> contracts/payments.yaml:41:24
 *        |
 *     41 |     when: input.amount + platform.monthy_spend_usd > limits.monthly_budget_usd
 *        |                          ^^^^^^^^^^^^^^^^^^^^^^^^^
 *        = help: did you mean `monthly_spend_usd`?
 */
export function renderDiagnostic({ code, message, span, hint }: Diagnostic): string {
  const gutter = " ".repeat(String(position(span.file, span.from).line).length);
  const help = hint === undefined ? [] : [`${gutter} = help: ${hint}`];
  return [`error[${code}]: ${message}`, ...renderPlace(span), ...help].join("\n");
}

/** A span for a terminal: its name, and the line with carets under the span. */
export function renderPlace({ file, from, to }: Span): readonly string[] {
  const { line, column } = position(file, from);
  const { lineStarts } = indexLines(file);
  const lineStart = lineStarts[line - 1] ?? 0;
  const text = file.text.slice(lineStart, lineStarts[line]).replace(/\r?\n$/, "");
  const onLine = text.slice(from - lineStart, Math.max(to - lineStart, from - lineStart + 1));
  const gutter = " ".repeat(String(line).length);
  const blank = text.slice(0, from - lineStart).replace(/[^\t]/gu, " ");
  return [
    `${gutter}--> ${file.name}:${line}:${column}`,
    `${gutter} |`,
    `${line} | ${text}`,
    `${gutter} | ${blank}${"^".repeat(Math.max(1, Array.from(onLine).length))}`,
  ];
}
