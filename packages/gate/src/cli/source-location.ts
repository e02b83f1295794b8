import { position, type Span } from "../../../core/src/contract/mod.ts";

/** `contracts/payments.yaml:41:24` */
export function locationText({ file, from }: Span): string {
  const { line, column } = position(file, from);
  return `${file.name}:${line}:${column}`;
}

/** The text at a position, on one line. */
export function textAt({ file, from, to }: Span): string {
  return file.text.slice(from, to).replace(/\s+/g, " ");
}

/** At most `most` characters. */
export function clip(text: string, most: number): string {
  const characters = Array.from(text);
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

/** A location for programs: lines and columns count from 1, the end is exclusive. */
export interface SourceLocation {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

export function locationRow({ file, from, to }: Span): SourceLocation {
  const end = position(file, to);
  return { file: file.name, ...position(file, from), endLine: end.line, endColumn: end.column };
}
