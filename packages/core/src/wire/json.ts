import { limits } from "./limits.ts";
import { parseNumber, Decimal, type JsonNumber } from "./number.ts";
import { quote } from "./quote.ts";
import { bad, good, type Result } from "./result.ts";

/** JSON as the gate represents it. Objects are Maps: they have no prototype, so `__proto__` is an ordinary name. */
export type Json = null | boolean | string | JsonNumber | JsonArray | JsonObject;
export type JsonArray = readonly Json[];
export type JsonObject = ReadonlyMap<string, Json>;

/** Where and why a text is not the strict JSON that the gate reads. Lines and columns (in characters) start at 1. */
export interface JsonFault {
  readonly sentence: string;
  readonly line: number;
  readonly column: number;
}

/** One JSON object, and the received text of each of its members without white space outside strings. */
export interface JsonDocument {
  readonly members: JsonObject;
  source(name: string): string | undefined;
}

/**
 * Reads a text that is exactly one JSON object (RFC 8259; RFC 7493, I-JSON, for names and surrogates). It refuses
 * everything that two parsers could read differently. It repairs, folds and adds nothing.
 *
 * @returns the document, or the first fault with its position. Never throws.
 */
export function readJson(text: string): Result<JsonDocument, JsonFault> {
  const reader = new JsonReader(text);
  try {
    return good(reader.document());
  } catch (error) {
    if (error instanceof JsonFaultError) return bad(locateFault(text, error.at, error.message));
    throw error;
  }
}

/** The JSON text of a value, each number as it was written. */
export function jsonText(value: Json): string {
  if (value === null || typeof value === "boolean" || typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (value instanceof Decimal) return value.text;
  if (value instanceof Map) {
    const members = [...value].map(([name, member]) => `${JSON.stringify(name)}:${jsonText(member)}`);
    return `{${members.join(",")}}`;
  }
  return `[${(value as readonly Json[]).map(jsonText).join(",")}]`;
}

/**
 * The position of the first byte that is not well-formed UTF-8 (RFC 3629), or undefined if all bytes are well-formed.
 *
 * @param text the decoded bytes, with U+FFFD for each fault
 */
export function findUtf8Fault(bytes: Uint8Array, text: string): JsonFault | undefined {
  let [from, at] = [0, 0];
  for (const character of text) {
    const isSent = bytes[from] === 0xef && bytes[from + 1] === 0xbf && bytes[from + 2] === 0xbd;
    if (character === "\ufffd" && !isSent) return locateFault(text, at, "invalid UTF-8");
    from += utf8Bytes(character);
    at += character.length;
  }
  return undefined;
}

/** The length of a well-formed text in UTF-8, in bytes. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

class JsonFaultError extends Error {
  readonly at: number;
  constructor(at: number, sentence: string) {
    super(sentence);
    this.at = at;
  }
}

interface SourceSpan {
  readonly from: number;
  readonly to: number;
  readonly spaced: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const escapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

class JsonReader {
  readonly #text: string;
  readonly #spans = new Map<string, SourceSpan>();
  #at = 0;
  #depth = 0;
  #containers = 0;
  #spaces = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): JsonDocument {
    const text = this.#text;
    if (text.charCodeAt(0) === 0xfeff) throw new JsonFaultError(0, "a byte order mark; send UTF-8 without one");
    if (!text.isWellFormed()) throw new JsonFaultError(text.search(/\p{Surrogate}/u), "an unpaired surrogate");
    this.#space();
    if (text.charCodeAt(this.#at) !== 0x7b) throw new JsonFaultError(this.#at, "expected one JSON object");
    const members = this.#object();
    this.#space();
    if (this.#at < text.length) throw new JsonFaultError(this.#at, "more after the end of the object");
    const spans = this.#spans;
    return {
      members,
      source(name) {
        const span = spans.get(name);
        if (span === undefined) return undefined;
        const source = text.slice(span.from, span.to);
        return span.spaced ? withoutSpace(source) : source;
      },
    };
  }

  #value(): Json {
    const code = this.#text.charCodeAt(this.#at);
    if (code === QUOTE) return this.#string();
    if (code === 0x7b) return this.#object();
    if (code === 0x5b) return this.#array();
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return this.#number();
    return this.#word();
  }

  #object(): JsonObject {
    const members = new Map<string, Json>();
    this.#enter();
    while (!this.#closes(0x7d, members.size === 0)) {
      const nameAt = this.#at;
      if (this.#text.charCodeAt(nameAt) !== QUOTE)
        throw new JsonFaultError(nameAt, "expected a member name in double quotes");
      const name = this.#string();
      if (members.has(name)) throw new JsonFaultError(nameAt, `the member ${quote(name)} appears twice`);
      if (name.includes("\0")) throw new JsonFaultError(nameAt, `the member name ${quote(name)} contains a NUL`);
      this.#space();
      if (this.#text.charCodeAt(this.#at) !== 0x3a)
        throw new JsonFaultError(this.#at, "expected `:` after a member name");
      this.#at += 1;
      this.#space();
      if (this.#depth === 1) members.set(name, this.#readTopMember(name));
      else members.set(name, this.#value());
    }
    this.#depth -= 1;
    return members;
  }

  #readTopMember(name: string): Json {
    const from = this.#at;
    const spaces = this.#spaces;
    const value = this.#value();
    this.#spans.set(name, { from, to: this.#at, spaced: this.#spaces > spaces });
    return value;
  }

  #array(): JsonArray {
    const items: Json[] = [];
    this.#enter();
    while (!this.#closes(0x5d, items.length === 0)) items.push(this.#value());
    this.#depth -= 1;
    return items;
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > limits.jsonDepthMax)
      throw new JsonFaultError(this.#at, `nested deeper than ${limits.jsonDepthMax} levels`);
    this.#containers += 1;
    if (this.#containers > limits.jsonContainersMax)
      throw new JsonFaultError(this.#at, `over ${limits.jsonContainersMax} objects and arrays`);
    this.#at += 1;
  }

  /** Steps over the closing bracket and returns true, or steps over the comma before the next item. */
  #closes(bracket: number, first: boolean): boolean {
    this.#space();
    const code = this.#text.charCodeAt(this.#at);
    if (code === bracket) {
      this.#at += 1;
      return true;
    }
    if (first) return false;
    if (code !== 0x2c) throw this.#makeFault(`\`,\` or \`${String.fromCharCode(bracket)}\``);
    this.#at += 1;
    this.#space();
    return false;
  }

  #string(): string {
    const text = this.#text;
    const from = this.#at + 1;
    let at = from;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return text.slice(from, at);
      }
      if (code === BACKSLASH) return this.#readEscapedString(from, at);
      if (!(code >= 0x20)) throw stringFault(text, at);
      at += 1;
    }
  }

  #readEscapedString(from: number, firstEscape: number): string {
    const text = this.#text;
    let value = text.slice(from, firstEscape);
    let at = firstEscape;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      if (code !== BACKSLASH) {
        if (!(code >= 0x20)) throw stringFault(text, at);
        value += text[at];
        at += 1;
        continue;
      }
      const letter = text.charAt(at + 1);
      const plain = escapes.get(letter);
      if (letter !== "u" && plain === undefined) throw new JsonFaultError(at, "an escape that JSON does not have");
      value += plain ?? String.fromCharCode(hex4(text, at));
      at += plain === undefined ? 6 : 2;
    }
    this.#at = at + 1;
    if (!value.isWellFormed()) throw new JsonFaultError(from - 1, "a string with an unpaired surrogate");
    return value;
  }

  #number(): JsonNumber {
    const text = this.#text;
    const from = this.#at;
    let at = from;
    let value = 0;
    for (;;) {
      const digit = text.charCodeAt(at) - 0x30;
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
      at += 1;
    }
    const plain = at > from && at - from <= 15 && (at - from === 1 || text.charCodeAt(from) !== 0x30);
    if (plain && !continuesNumber(text.charCodeAt(at))) {
      this.#at = at;
      return value;
    }
    while (continuesNumber(text.charCodeAt(at))) at += 1;
    const number = parseNumber(text.slice(from, at));
    if (typeof number !== "number" && !(number instanceof Decimal)) throw new JsonFaultError(from, number.problem);
    this.#at = at;
    return number;
  }

  #word(): null | boolean {
    for (const [word, value] of words) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    throw this.#makeFault("a value");
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at += 1;
      this.#spaces += 1;
    }
  }

  #makeFault(expected: string): JsonFaultError {
    const found = this.#text.codePointAt(this.#at);
    const what = found === undefined ? "the end" : quote(String.fromCodePoint(found));
    return new JsonFaultError(this.#at, `expected ${expected}, found ${what}`);
  }
}

const words: readonly (readonly [string, null | boolean])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

function continuesNumber(code: number): boolean {
  const digit = code >= 0x30 && code <= 0x39;
  return digit || code === 0x2e || code === 0x2b || code === 0x2d || code === 0x45 || code === 0x65;
}

function stringFault(text: string, at: number): JsonFaultError {
  if (at >= text.length) return new JsonFaultError(at, "the text ends inside a string");
  return new JsonFaultError(at, "a control character inside a string; write it as an escape");
}

function hex4(text: string, at: number): number {
  const digits = text.slice(at + 2, at + 6);
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new JsonFaultError(at, "expected four hexadecimal digits after `\\u`");
  return Number.parseInt(digits, 16);
}

/** Removes white space outside strings; escapes and digits stay as they were received. */
function withoutSpace(source: string): string {
  return source.replace(/"[^"\\]*(?:\\.[^"\\]*)*"?|[ \t\r\n]+/g, (piece) => (piece.startsWith('"') ? piece : ""));
}

function locateFault(text: string, at: number, sentence: string): JsonFault {
  const before = text.slice(0, at);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { sentence, line: before.split("\n").length, column: Array.from(before.slice(lineStart)).length + 1 };
}
