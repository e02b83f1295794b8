import { isAlias, isMap, isScalar, isSeq, parseAllDocuments, type Document, type Node, type Scalar } from "yaml";
import { parseNumber, type Decimal, type Json } from "../../wire/mod.ts";
import type { Report, SourceFile, Span } from "./diagnostic.ts";
import { scalarOffsets, type ScalarStyle } from "./scalar-offsets.ts";

/**
 * YAML reduced to JSON's model (YAML 1.2.2, JSON schema). Scalars keep their span and their text, and numbers are
 * exact. Values that YAML 1.1 reads differently must be quoted.
 */
export type YamlNode = YamlScalar | YamlList | YamlMap;

export interface YamlScalar {
  readonly kind: "scalar";
  readonly span: Span;
  readonly value: null | boolean | string | number | Decimal;
  /** The text between the quotes, or the plain text: expressions are parsed from it. */
  readonly text: string;
  /** The offset of each UTF-16 unit of `text` in the file, and one more for its end. */
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

/** The items of a list, or the node alone. */
export function itemsOf(node: YamlNode | undefined): readonly YamlNode[] {
  return node === undefined ? [] : node.kind === "list" ? node.items : [node];
}

/** A member of a map; undefined for another node. */
export function memberOf(node: YamlNode | undefined, name: string): YamlNode | undefined {
  return node?.kind === "map" ? node.entries.get(name)?.value : undefined;
}

const sourceCharactersMax = 1_000_000;
const depthMax = 64;

/** The text of a file with its slips fixed, and the offset in the file of each of its offsets. */
export interface RepairedText {
  readonly text: string;
  readonly original: (at: number) => number;
}

/**
 * Reads a file. Every problem goes to the report, and the readable part is returned. Undefined if nothing is readable.
 *
 * @param repaired the text to read instead of the file's; all positions are those in the file
 */
export function readYaml(
  file: SourceFile,
  report: Report,
  repaired: RepairedText = { text: file.text, original: (at) => at },
): YamlNode | undefined {
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
  checkCharacters(file, report);
  const documents = parseAllDocuments(repaired.text, {
    version: "1.2",
    schema: "failsafe",
    uniqueKeys: true,
    prettyErrors: false,
    keepSourceTokens: true,
  });
  const [document, second] = documents as readonly Document.Parsed[];
  if (document === undefined) {
    report.add("empty-file", start, "the file is empty");
    return undefined;
  }
  if (reportSyntax({ file, repaired }, document, report)) return undefined;
  if (second !== undefined) {
    const from = repaired.original(second.range[0]);
    report.add(
      "yaml",
      { file, from, to: from + 3 },
      "a second YAML document in one file",
      "put it into a separate file",
    );
  }
  if (document.directives?.yaml.explicit === true && document.directives.yaml.version !== "1.2") {
    report.add("yaml", start, "contracts are YAML 1.2", "remove the %YAML line");
  }
  if (document.contents === null) {
    report.add("empty-file", start, "the file is empty");
    return undefined;
  }
  const reducer = new Reducer(file, report, repaired);
  const root = reducer.node(document.contents, 0);
  return reducer.isTooDeep ? undefined : root;
}

// Controls that YAML does not print, a byte order mark, and the bidirectional controls: a reviewer must see the same
// rules that the gate reads.
const unprintable = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|(?![\t\n\r])\p{Cc}|\p{Cs}/gu;

function checkCharacters(file: SourceFile, report: Report): void {
  for (const { 0: character, index } of file.text.matchAll(unprintable)) {
    const code = character.charCodeAt(0).toString(16).padStart(4, "0");
    const hint =
      code === "feff" ? "save the file as UTF-8 without a byte order mark" : `write it as an escape: "\\u${code}"`;
    report.add(
      "yaml",
      { file, from: index, to: index + 1 },
      `the character U+${code.toUpperCase()} is invisible`,
      hint,
    );
  }
}

/**
 * Reports invalid YAML: the first problem of each kind, because the others follow from it. Returns whether to ignore
 * the rest of the file.
 */
function reportSyntax(
  { file, repaired }: { readonly file: SourceFile; readonly repaired: RepairedText },
  document: Document.Parsed,
  report: Report,
): boolean {
  const seen = new Set<string>();
  // The other errors follow from one of these.
  const first = document.errors.find(({ code }) => code === "RESOURCE_EXHAUSTION" || code === "TAB_AS_INDENT");
  for (const { message, pos, code } of first === undefined ? document.errors : [first]) {
    const from = repaired.original(pos[0]);
    const span = { file, from, to: Math.max(repaired.original(pos[1]), from + 1) };
    if (code === "DUPLICATE_KEY") report.add("yaml", span, "this key appears twice in one map");
    else if (!seen.has(code)) {
      report.add("yaml", span, yamlMessage(code, message), yamlHints.get(code));
      seen.add(code);
    }
  }
  return seen.size > 0;
}

function yamlMessage(code: string, message: string): string {
  if (code === "RESOURCE_EXHAUSTION") return "nested too deeply";
  if (code === "TAB_AS_INDENT") return "YAML does not allow a tab for indentation";
  return message.charAt(0).toLowerCase() + message.slice(1);
}

const quoteHint = "if this is in a condition or a reason, put the whole value in single quotes";
const yamlHints: ReadonlyMap<string, string> = new Map([
  ["TAB_AS_INDENT", "indent the line with spaces"],
  ["BAD_SCALAR_START", quoteHint],
  ["BLOCK_AS_IMPLICIT_KEY", quoteHint],
  ["BLOCK_IN_FLOW", quoteHint],
]);

class Reducer {
  readonly #repaired: RepairedText;
  readonly #file: SourceFile;
  readonly #report: Report;
  /** A part was left out because it is too deep: without this flag, it would be reported as missing. */
  isTooDeep: boolean = false;

  constructor(file: SourceFile, report: Report, repaired: RepairedText) {
    this.#repaired = repaired;
    this.#file = file;
    this.#report = report;
  }

  node(node: Node, depth: number): YamlNode | undefined {
    const span = this.#span(node);
    if (isAlias(node))
      return this.#refuse(span, "an alias (`*name`)", "write the value out, or put it in quotes if it is text");
    this.#bare(node, span);
    if (depth > depthMax) {
      this.isTooDeep = true;
      return this.#refuse(span, `more than ${depthMax} levels`, "flatten it");
    }
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
      this.#bare(keyNode, this.#span(keyNode));
      const keyScalar = this.#scalar(keyNode, this.#span(keyNode), true);
      if (keyScalar.text === "<<") this.#refuse(keyScalar.span, "a merge key (`<<`)", "write the members out");
      const valueNode = value === null ? this.#makeNull(keyScalar) : this.node(value as Node, depth + 1);
      if (valueNode !== undefined) entries.set(keyScalar.text, { key: keyScalar, value: valueNode });
    }
    return { kind: "map", span, entries };
  }

  #span(node: Node): Span {
    const [from, to] = (node.range ?? [0, 1]).map(this.#repaired.original) as [number, number];
    return { file: this.#file, from, to: Math.max(to, from + 1) };
  }

  /** Refuses an anchor or a tag of a node: JSON's model has neither. */
  #bare(node: Node, span: Span): void {
    if ("anchor" in node && node.anchor !== undefined)
      this.#refuse(span, "an anchor (`&name`)", "put the value in quotes if it is text");
    if (node.tag !== undefined)
      this.#refuse(span, "a tag (`!name`)", "put the value in quotes: then `!` is a part of it");
  }

  #refuse(span: Span, what: string, hint: string): undefined {
    this.#report.add("yaml", span, `${what} is not part of the contract language`, hint);
  }

  #makeNull(key: YamlScalar): YamlScalar {
    return { kind: "scalar", span: key.span, value: null, text: "", offsets: [key.span.to] };
  }

  #scalar(node: Scalar, span: Span, isKey: boolean): YamlScalar {
    const text = String(node.value);
    const style = styles.get(node.type ?? "") ?? "plain";
    const [from, to] = node.range ?? [span.from, span.to];
    const raw = this.#repaired.text.slice(from, to);
    const offsets = scalarOffsets(raw, style, text).map((offset) => this.#repaired.original(from + offset));
    const value = style === "plain" && !isKey ? this.#plain(text, span) : text;
    return { kind: "scalar", span, text, offsets, value };
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

const styles: ReadonlyMap<string, ScalarStyle> = new Map([
  ["QUOTE_SINGLE", "single"],
  ["QUOTE_DOUBLE", "double"],
  ["BLOCK_FOLDED", "block"],
  ["BLOCK_LITERAL", "block"],
]);

// Values that YAML 1.1 or YAML 1.2's core schema read as a boolean, a null, a number, a time or a date.
const ambiguous = new RegExp(
  `^(?:${[
    "y|n|yes|no|on|off|true|false|null",
    String.raw`[-+]?(?:0[0-9_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|0[xob][0-9a-f_]+)`,
    String.raw`[-+]?(?:[0-9][0-9_]*\.?[0-9_]*(?:e[-+]?[0-9]+)?|\.[0-9][0-9_]*(?:e[-+]?[0-9]+)?|\.inf)`,
    String.raw`\.nan|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[t\s].*)?`,
  ].join("|")})$`,
  "i",
);

export function toJson(node: YamlNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(toJson);
  return new Map([...node.entries].map(([name, { value }]) => [name, toJson(value)]));
}
