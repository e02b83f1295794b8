import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type Document,
  type Node,
  type Scalar,
} from "yaml";
import { parseNumber, type Decimal } from "../wire/mod.ts";
import type { Report, SourceFile, Span } from "./diagnostic.ts";

/**
 * YAML reduced to JSON's model (YAML 1.2.2, JSON schema): scalars keep their place and their text, numbers are exact,
 * and whatever YAML 1.1 reads differently must be quoted.
 */
export type YamlNode = YamlScalar | YamlList | YamlMap;

export interface YamlScalar {
  readonly kind: "scalar";
  readonly span: Span;
  readonly value: null | boolean | string | number | Decimal;
  /** The text between the quotes, or the plain text: what an expression is parsed from. */
  readonly text: string;
  /** For each UTF-16 unit of `text`, its offset in the file, and one more for its end. */
  readonly offsets: readonly number[];
}

export interface YamlList {
  readonly kind: "list";
  readonly span: Span;
  readonly items: readonly YamlNode[];
}

export interface YamlMap {
  readonly kind: "map";
  readonly span: Span;
  readonly entries: ReadonlyMap<string, YamlEntry>;
}

export interface YamlEntry {
  readonly key: YamlScalar;
  readonly value: YamlNode;
}

const sourceCharactersMax = 1_000_000;
const depthMax = 64;

/** Reads a file; every problem goes to the report, and what could be read comes back. Undefined when nothing could. */
export function readYaml(file: SourceFile, report: Report): YamlNode | undefined {
  const start: Span = { file, from: 0, to: 1 };
  if (file.text.length > sourceCharactersMax) {
    report.add(
      "too-large",
      start,
      `the file is over ${sourceCharactersMax} characters`,
      "split it into several contracts",
    );
    return undefined;
  }
  const documents = parseAllDocuments(file.text, {
    version: "1.2",
    schema: "failsafe",
    uniqueKeys: true,
    lineCounter: new LineCounter(),
    prettyErrors: false,
    keepSourceTokens: true,
  });
  const [document, second] = documents as readonly Document.Parsed[];
  if (document === undefined) {
    report.add("empty-file", start, "the file is empty");
    return undefined;
  }
  for (const { message, pos, code } of [...document.errors, ...document.warnings]) {
    report.add("yaml", { file, from: pos[0], to: Math.max(pos[1], pos[0] + 1) }, yamlMessage(code, message));
  }
  if (second !== undefined) {
    const from = second.range[0];
    report.add(
      "yaml",
      { file, from, to: from + 3 },
      "a second YAML document in one file",
      "put it into a file of its own",
    );
  }
  if (document.directives?.yaml.explicit === true && document.directives.yaml.version !== "1.2") {
    report.add("yaml", start, "contracts are YAML 1.2", "remove the %YAML line");
  }
  if (document.contents === null) {
    if (document.errors.length === 0) report.add("empty-file", start, "the file is empty");
    return undefined;
  }
  return new Reducer(file, report).node(document.contents, 0);
}

function yamlMessage(code: string, message: string): string {
  if (code === "DUPLICATE_KEY") return "this key stands twice in one map";
  return message.charAt(0).toLowerCase() + message.slice(1);
}

class Reducer {
  readonly #file: SourceFile;
  readonly #report: Report;

  constructor(file: SourceFile, report: Report) {
    this.#file = file;
    this.#report = report;
  }

  node(node: Node, depth: number): YamlNode | undefined {
    const span = this.#span(node);
    if (isAlias(node)) return this.#refuse(span, "an alias (`*name`)", "write the value out");
    if ("anchor" in node && node.anchor !== undefined) this.#refuse(span, "an anchor (`&name`)", "remove it");
    if (node.tag !== undefined && node.tag !== "!" && this.#hasTag(node))
      this.#refuse(span, "a tag (`!name`)", "remove it");
    if (depth > depthMax) return this.#refuse(span, `more than ${depthMax} levels`, "flatten it");
    if (isScalar(node)) return this.#scalar(node, span, false);
    if (isSeq(node)) {
      const items = node.items.map((item) => this.node(item as Node, depth + 1));
      return { kind: "list", span, items: items.filter((item) => item !== undefined) };
    }
    if (!isMap(node)) return undefined;
    const entries = new Map<string, YamlEntry>();
    for (const { key, value } of node.items) {
      const keyNode = key as Node;
      if (!isScalar(keyNode)) {
        this.#refuse(this.#span(keyNode), "a key that is not text", "quote it");
        continue;
      }
      const keyScalar = this.#scalar(keyNode, this.#span(keyNode), true);
      if (keyScalar.text === "<<") this.#refuse(keyScalar.span, "a merge key (`<<`)", "write the members out");
      const valueNode = value === null ? this.#missing(keyScalar) : this.node(value as Node, depth + 1);
      if (valueNode !== undefined) entries.set(keyScalar.text, { key: keyScalar, value: valueNode });
    }
    return { kind: "map", span, entries };
  }

  #span(node: Node): Span {
    const [from, to] = node.range ?? [0, 1];
    return { file: this.#file, from, to: Math.max(to, from + 1) };
  }

  #hasTag(node: Node): boolean {
    const from = node.range?.[0] ?? 0;
    const before = this.#file.text.slice(Math.max(0, from - 80), from);
    return /![^\s]*\s*$/.test(before) || this.#file.text[from] === "!";
  }

  #refuse(span: Span, what: string, hint: string): undefined {
    this.#report.add("yaml", span, `${what} is not part of the contract language`, hint);
  }

  #missing(key: YamlScalar): YamlScalar {
    return { kind: "scalar", span: key.span, value: null, text: "", offsets: [key.span.to] };
  }

  #scalar(node: Scalar, span: Span, isKey: boolean): YamlScalar {
    const text = String(node.value);
    const offsets = scalarOffsets(this.#file.text, span, text);
    const plain = node.type === "PLAIN";
    return { kind: "scalar", span, text, offsets, value: plain && !isKey ? this.#plain(text, span) : text };
  }

  #plain(text: string, span: Span): YamlScalar["value"] {
    if (text === "" || text === "~" || text === "null") return null;
    if (text === "true") return true;
    if (text === "false") return false;
    const number = parseNumber(text);
    if (!(typeof number === "object" && "problem" in number)) return number;
    if (/^-?[0-9][0-9.eE+-]*$/.test(text) && number.problem !== "not a number as JSON writes it") {
      this.#report.add("yaml", span, number.problem);
    } else if (ambiguous.test(text)) {
      this.#report.add(
        "ambiguous-scalar",
        span,
        `\`${text}\` is read differently by different YAML readers`,
        `quote it ("${text}"), or write a JSON number, true, false or null`,
      );
    }
    return text;
  }
}

// What YAML 1.1 or YAML 1.2's core schema take for a boolean, a null, a number, a time or a date.
const ambiguous =
  /^(?:y|n|yes|no|on|off|true|false|null|[-+]?(?:0[0-9_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[xob][0-9a-f_]+|[0-9][0-9_]*\.?[0-9_]*(?:e[-+]?[0-9]+)?|\.[0-9][0-9_]*(?:e[-+]?[0-9]+)?|\.inf)|\.nan|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*)$/i;

/** Where each unit of a scalar's value stands in the file, through quotes, escapes, folds and indentation. */
function scalarOffsets(text: string, span: Span, value: string): readonly number[] {
  const raw = text.slice(span.from, span.to);
  const offsets: number[] = [];
  const quoteMark = raw[0] === '"' || raw[0] === "'" ? raw[0] : undefined;
  let at = quoteMark === undefined ? 0 : 1;
  for (const unit of value.split("")) {
    at = advance(raw, at, unit, quoteMark);
    offsets.push(span.from + Math.min(at, raw.length - 1));
    at += width(raw, at, unit, quoteMark);
  }
  offsets.push(span.from + Math.min(at, raw.length));
  return offsets;
}

/** Skips what stands in the file but not in the value, until the unit itself or what it was written as. */
function advance(raw: string, at: number, unit: string, quoteMark: string | undefined): number {
  if (raw[at] === unit || (quoteMark === '"' && raw[at] === "\\" && !/\\\r?\n/y.test(raw.slice(at, at + 3)))) return at;
  if (unit === " " && /[\r\n]/.test(raw[at] ?? "")) return at;
  let next = at;
  while (next < raw.length && raw[next] !== unit && !(quoteMark === '"' && raw[next] === "\\")) next += 1;
  return next < raw.length ? next : at;
}

function width(raw: string, at: number, unit: string, quoteMark: string | undefined): number {
  if (quoteMark === "'" && unit === "'" && raw[at + 1] === "'") return 2;
  if (quoteMark === '"' && raw[at] === "\\") {
    const long = { x: 4, u: 6, U: 10 }[raw[at + 1] ?? ""];
    return long ?? 2;
  }
  return raw[at] === unit || /[\r\n]/.test(raw[at] ?? "") ? 1 : 0;
}
