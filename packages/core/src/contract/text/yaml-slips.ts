import { isScalar, isMap, parseDocument, type Pair, type Scalar } from "yaml";
import { Report, type SourceFile, type Span } from "./diagnostic.ts";
import { documentKeys } from "./document-keys.ts";
import { parseExpression } from "./parser.ts";
import type { RepairedText } from "./yaml.ts";

/** A condition or a reason that YAML reads differently from what its author wrote. */
export interface Slip {
  /** The value as it is written, without a comment after it. */
  readonly span: Span;
  readonly message: string;
  readonly hint: string;
  /** The fix that the hint shows: it replaces the span. */
  readonly fixed: string;
  /** The author's own quotes around the value are replaced, not kept as a part of it. */
  readonly replacesQuotes?: boolean;
}

/** A value as it is written on its line. */
interface WrittenValue {
  /** With its colon; empty for an item of a list. */
  readonly key: string;
  readonly from: number;
  readonly raw: string;
  /** In a map in braces. */
  readonly inBraces: boolean;
}

/** Keys whose value is an expression; below, those whose value is a text. */
const expressionKeys: ReadonlySet<string> = new Set(["when", "requires", "sum", "since", "remembers"]);
const textKeys: ReadonlySet<string> = new Set([...expressionKeys, "reason"]);
/** Keys of documents, to find a colon without a space after it. */
const knownKeys: ReadonlySet<string> = new Set(
  (["tool", "requirement", "outcome", "rule", "counter"] as const).flatMap((map) => documentKeys[map]),
);
/** Below these keys are schemas and values, whose members may have any name. */
const foreignKeys: ReadonlySet<string> = new Set(["input", "platform", "limits", "properties", "sensitive"]);

/** No contract or mandate has maps nested as deep as this. */
const depthMax = 8;

/**
 * Finds values that YAML reads differently from what is written, each with the fix. Call it only for a file that has an
 * error: in a file that compiles, YAML's reading is the intended one.
 */
export function findSlips(file: SourceFile): readonly Slip[] {
  return entriesOf(file.text).flatMap((entry) => slipOf(file, entry) ?? []);
}

/** The text with every slip fixed, and the original offset of each of its offsets. */
export function repair(text: string, slips: readonly Slip[]): RepairedText {
  const pieces: string[] = [];
  const offsets: number[] = [];
  const copy = (from: number, to: number): void => {
    pieces.push(text.slice(from, to));
    for (let at = from; at < to; at += 1) offsets.push(at);
  };
  let at = 0;
  for (const slip of slips) {
    copy(at, slip.span.from);
    pieces.push(slip.fixed);
    offsets.push(...offsetsOfFix(text, slip));
    at = slip.span.to;
  }
  copy(at, text.length);
  offsets.push(text.length);
  return { text: pieces.join(""), original: (offset) => offsets[Math.min(offset, offsets.length - 1)] ?? text.length };
}

/** The offset of each unit of a fix in the text: added and doubled quotes are at the unit after them. */
function offsetsOfFix(text: string, { span: { from, to }, fixed, replacesQuotes }: Slip): readonly number[] {
  const written = Array.from({ length: to - from }, (_, at) => from + at);
  const doubleQuote = (at: number): readonly number[] => (text[at] === "'" ? [at, at] : [at]);
  if (replacesQuotes === true) {
    const inner = written.slice(1, -1).filter((at) => !isEscape(text, at));
    return [from, ...inner.flatMap(doubleQuote), to - 1];
  }
  if (fixed.length === to - from) return written;
  if (fixed.startsWith("'")) return [from, ...written.flatMap(doubleQuote), to - 1];
  const space = from + fixed.split("").findIndex((unit, at) => unit !== text[from + at]);
  return written.flatMap((at) => (at === space ? [at, at] : [at]));
}

/** Every value of a text key, and every key without a space after its colon, in order. */
function entriesOf(text: string): readonly WrittenValue[] {
  const found: WrittenValue[] = [];
  /** The keys around the line, with their indentation. */
  const open: { readonly indent: number; readonly key: string }[] = [];
  const lines = text.split("\n");
  let lineFrom = 0;
  let skipped = 0;
  for (const [at, line] of lines.entries()) {
    const [, blanks = "", dashes = "", rest = ""] = /^([ ]*)((?:- +)*)([^]*)$/.exec(line.trimEnd()) ?? [];
    const indent = blanks.length + dashes.length;
    const isBlank = rest === "" || rest.startsWith("#");
    if (!isBlank) while ((open.at(-1)?.indent ?? -1) >= (dashes === "" ? indent : blanks.length + 1)) open.pop();
    const around = open.map(({ key }) => key);
    const from = lineFrom + indent;
    lineFrom += line.length + 1;
    if (isBlank || at < skipped) continue;
    if (opensBraces(line)) {
      // A map in braces over several lines: its values end at commas, and are not examined.
      skipped = endOfBraces(lines, at);
      continue;
    }
    const key = /^([A-Za-z_][\w-]*):(?=\s|$)/.exec(rest)?.[1];
    if (key !== undefined) open.push({ indent, key });
    if (around.some((each) => foreignKeys.has(each)) || (key !== undefined && foreignKeys.has(key))) continue;
    const [more, ...entries] = entriesOfLine(rest, from, around);
    if (more === undefined) continue;
    const [end, continued] = withContinuation(lines, at, indent);
    const isPlain = entries.length === 0 && !more.inBraces && end > at + 1;
    found.push(
      isPlain ? { ...more, raw: `${more.raw}${line.slice(line.trimEnd().length)}${continued}` } : more,
      ...entries,
    );
    if (isPlain) skipped = end;
  }
  return found;
}

function depthOf(line: string): number {
  return line.split("").reduce((depth, unit) => depth + (unit === "{" ? 1 : unit === "}" ? -1 : 0), 0);
}

function opensBraces(line: string): boolean {
  return /^\s*(?:- +)*(?:[A-Za-z_][\w-]*:\s+)?\{/.test(line) && depthOf(line) > 0;
}

function endOfBraces(lines: readonly string[], first: number): number {
  let end = first;
  for (let depth = 0; end < lines.length; end += 1) {
    depth += depthOf(lines[end] ?? "");
    if (depth <= 0) break;
  }
  return end + 1;
}

/** The lines of a value after its first one: they are indented more than its key. */
function withContinuation(
  lines: readonly string[],
  first: number,
  indent: number,
): readonly [end: number, text: string] {
  let end = first + 1;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? "";
    if (line.trim() === "" || line.search(/\S/) <= indent) break;
  }
  return [end, ["", ...lines.slice(first + 1, end)].join("\n").trimEnd()];
}

function entriesOfLine(line: string, from: number, around: readonly string[]): readonly WrittenValue[] {
  if (line.startsWith("{")) return entriesInBraces(line, from, around);
  const parent = around.at(-1);
  const [written = "", key = "", space = ""] = /^([A-Za-z_][\w-]*):([ \t]*)/.exec(line) ?? [];
  const raw = line.slice(written.length);
  if (key === "") return parent === "requires" ? [{ key: "", from, raw: line, inBraces: false }] : [];
  if (space === "" && raw !== "") {
    return knownKeys.has(key) && around.length > 0 ? [{ key, from, raw: line, inBraces: false }] : [];
  }
  if (raw === "") return [];
  if (raw.startsWith("{") && !(textKeys.has(key) && key !== "requires"))
    return entriesInBraces(raw, from + written.length, [...around, key]);
  const isText = textKeys.has(key) ? !(key === "requires" && raw.startsWith("[")) : parent === "let";
  return isText ? [{ key: `${key}:`, from: from + written.length, raw, inBraces: false }] : [];
}

/** Members of a map in braces on one line; a value ends at the next key, or at the brace that closes the map. */
function entriesInBraces(line: string, from: number, around: readonly string[]): readonly WrittenValue[] {
  const found: WrittenValue[] = [];
  const isLet = around.at(-1) === "let";
  let at = 1;
  for (;;) {
    at += /^[\s,]*/.exec(line.slice(at))?.[0].length ?? 0;
    const [written = "", key = "", space = ""] = /^([A-Za-z_][\w-]*)\s*:(\s*)/.exec(line.slice(at)) ?? [];
    if (key === "") return found;
    const keyAt = at;
    at += written.length;
    const isText = isLet || textKeys.has(key);
    const end = valueEnd(line, at, isText && key !== "reason");
    const raw = line.slice(at, end).trimEnd();
    if (space === "" && knownKeys.has(key) && /^[^"'[{]/.test(raw))
      found.push({ key, from: from + keyAt, raw: line.slice(keyAt, end).trimEnd(), inBraces: true });
    else if (isText && !(key === "requires" && /^[[{]/.test(raw)))
      found.push({ key: `${key}:`, from: from + at, raw, inBraces: true });
    else if (raw.startsWith("{") && !foreignKeys.has(key) && around.length < depthMax)
      found.push(...entriesInBraces(raw, from + at, [...around, key]));
    at = end;
  }
}

/** The end of a value in a map in braces, as its author means it. */
function valueEnd(line: string, from: number, isExpression: boolean): number {
  const quoted = /^(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(?=\s*[,}])/.exec(line.slice(from))?.[0];
  if (quoted !== undefined) return from + quoted.length;
  const opening = isExpression ? "([{" : "{[";
  const closing = isExpression ? ")]}" : "}]";
  /** An unclosed quote has no other quote of its kind after it. */
  let quotes = isExpression ? `"'` : "";
  let depth = 0;
  for (let at = from; at < line.length; at += 1) {
    const unit = line.charAt(at);
    const isQuote = quotes.includes(unit);
    const text = isQuote ? /^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/.exec(line.slice(at))?.[0] : undefined;
    if (isQuote && text === undefined) quotes = quotes.replace(unit, "");
    if (text !== undefined) at += text.length - 1;
    else if (opening.includes(unit)) depth += 1;
    else if (depth > 0 && closing.includes(unit)) depth -= 1;
    else if (depth === 0 && (unit === "}" || (unit === "," && /^,\s*(?:[A-Za-z_][\w-]*\s*:|\})/.test(line.slice(at)))))
      return at;
  }
  return line.length;
}

function slipOf(file: SourceFile, { key, from, raw, inBraces }: WrittenValue): Slip | undefined {
  const spanOf = (text: string): Span => ({ file, from, to: from + text.length });
  if (key !== "" && !key.endsWith(":")) {
    const fixed = `${key}: ${raw.slice(key.length + 1)}`;
    return {
      span: spanOf(raw),
      message: `\`${key}:\` has no space after its colon, so YAML does not read it as a key`,
      hint: `write \`${fixed}\``,
      fixed,
    };
  }
  const text = withoutComment(raw, key === "reason:");
  if (inBraces && text !== raw)
    return {
      span: spanOf(raw),
      message: "YAML reads ` #` and everything after it as a comment, including the brace that closes the map",
      hint: "move the comment to a separate line",
      fixed: text.padEnd(raw.length),
    };
  const isAlias = /^\*[\w-]+$/.test(text); // An alias: the reader refuses it.
  if (text === "" || isAlias || isRead(text, raw, inBraces)) return undefined;
  const what = key === "reason:" ? "reason" : "condition";
  const inner = insideQuotes(text, what);
  const meant = inner ?? text;
  const fixed = `'${meant.replaceAll("'", "''")}'`;
  if (readAlone(fixed, inBraces)?.value !== foldLines(meant)) return undefined;
  const written = foldLines([key, fixed].join(" ").trim());
  if (inner !== undefined)
    return {
      span: spanOf(text),
      message: "YAML ends the value at the first quote inside it",
      hint: `write \`${written}\``,
      fixed,
      replacesQuotes: true,
    };
  const first = text.charAt(0);
  if (what === "condition" && "*&@`%|>".includes(first))
    return {
      span: spanOf(text),
      message: `a condition cannot start with ${first === "`" ? "a backtick" : `\`${first}\``}`,
      hint: "start it with a value, such as `input.amount`",
      fixed,
    };
  return {
    span: spanOf(text),
    message: causeOf(text, raw, inBraces),
    hint: `put the ${what} in quotes: \`${written}\``,
    fixed,
  };
}

/**
 * The text inside the author's quotes, if the same quotes inside it end the value too early. Undefined if the quotes
 * are a part of the value, as in `"a" == input.x || input.x == "b"`.
 */
function insideQuotes(text: string, what: "condition" | "reason"): string | undefined {
  const [, quote = "", inner = ""] = /^(["'])(.+)\1$/s.exec(text) ?? [];
  if (quote === "") return undefined;
  const meant = inner
    .split("")
    .filter((_, at) => !isEscape(inner, at))
    .join("");
  if (what === "condition") {
    const isOneText = /^'(?:[^'\\]|\\.)*'$|^"(?:[^"\\]|\\.)*"$/s.test(text);
    return (isOneText || !canBeRead(text)) && canBeRead(meant) ? meant : undefined;
  }
  // A quote after a word, and not before one, closes a quotation at the start of the reason.
  const first = inner.indexOf(quote);
  const closes = /\S/.test(inner.charAt(first - 1)) && !/[\p{L}\p{N}{]/u.test(inner.charAt(first + 1));
  return closes ? undefined : meant;
}

/** A backslash before a quote. */
function isEscape(text: string, at: number): boolean {
  return text[at] === "\\" && /["']/.test(text.charAt(at + 1));
}

/** Does YAML read the value as it is written, or is it already in quotes or a block? */
function isRead(text: string, raw: string, inBraces: boolean): boolean {
  const scalar = readAlone(raw, inBraces);
  if (scalar === undefined || scalar.tag !== undefined || scalar.anchor !== undefined) return false;
  return scalar.type === "PLAIN" ? scalar.value === foldLines(text) : true;
}

/** On one line, as YAML reads it. */
function foldLines(text: string): string {
  const lines = text.split("\n");
  const last = lines.length - 1;
  return lines
    .map((line, at) => (at === 0 ? line : line.trimStart()))
    .map((line, at) => (at === last ? line : line.trimEnd()))
    .filter((line, at) => line !== "" || at === 0 || at === last)
    .join(" ");
}

/** The value as YAML reads it alone; undefined if it is not YAML, or not one text. */
function readAlone(raw: string, inBraces: boolean): Scalar | undefined {
  const source = inBraces ? `{ k: ${raw} }\n` : `k: ${raw}\n`;
  const { contents, errors } = parseDocument(source, { version: "1.2", schema: "failsafe", prettyErrors: false });
  if (errors.length > 0 || !isMap(contents) || contents.items.length !== 1) return undefined;
  const { value } = contents.items[0] as Pair;
  return isScalar(value) ? value : undefined;
}

/** Without a comment. In an expression, ` #` starts a comment if the text before it can be parsed alone. */
function withoutComment(raw: string, isReason: boolean): string {
  const at = raw.search(isReason ? /\s#(?=\s|$)/ : /\s#/);
  if (at === -1) return raw;
  const before = raw.slice(0, at).trimEnd();
  return isReason || canBeRead(before) || !canBeRead(raw) ? before : raw;
}

function canBeRead(text: string): boolean {
  const report = new Report();
  parseExpression(
    { file: { name: "", text }, text, offsets: Array.from({ length: text.length + 1 }, () => 0) },
    report,
  );
  return report.size === 0;
}

const firstCharacters: Readonly<Record<string, string>> = {
  "!": "a value that starts with `!` as a tag",
  "&": "a value that starts with `&` as an anchor",
  "*": "a value that starts with `*` as an alias",
  "{": "a value that starts with `{` as a map",
  "[": "a value that starts with `[` as a list",
  "|": "a value that starts with `|` as a block of lines",
  ">": "a value that starts with `>` as a block of lines",
  "-": "a value that starts with `- ` as an item of a list",
  "?": "a value that starts with `? ` as a key",
  "#": "a value that starts with `#` as a comment",
};

function causeOf(text: string, raw: string, inBraces: boolean): string {
  const first = text.charAt(0);
  const readAs = firstCharacters[first];
  if (readAs !== undefined) return `YAML reads ${readAs}`;
  if (first === '"' || first === "'") return `YAML ends the value at the quote that closes the first text`;
  if (["@", "`", "%"].includes(first))
    return `a YAML value without quotes cannot start with ${first === "`" ? "a backtick" : `\`${first}\``}`;
  if (/:(?:\s|$)/.test(text)) return "YAML reads `: ` inside a value as a key and its value";
  if (/\s#/.test(text)) return "YAML reads ` #` and everything after it as a comment";
  const mark = inBraces ? /[,[\]{}]/.exec(raw)?.[0] : undefined;
  if (mark !== undefined) return `in a map in braces, YAML ends the value at \`${mark}\``;
  return "YAML does not read this value as one text";
}
