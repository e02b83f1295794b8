/** The kinds and paths of single words, for the model of a table of commands. */
import { posix } from "node:path";
import type { WordShape } from "../../packages/core/src/contract/commands/form.ts";

/** The folder in which the command runs. */
const start = "/srv/app";

export interface Word {
  readonly text: string;
  /** After `--` a word is a file. It is never an option or a branch. */
  readonly isAfterDashes: boolean;
  /** May it be a text of the form? After `--` only if the form lists the `--`. */
  readonly isText: boolean;
}

/** A word, or a value of an option, and what the form says of it. */
export type Place = readonly [word: Word, shape: WordShape];

export interface ModelPaths {
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  readonly lists: ReadonlySet<string>;
}

/**
 * Is the word certainly of the kind, or one of the texts? The specification has only a line about each kind. The rest follows
 * the matcher: the units of a number, the ends of a range, and `.`, which is neither a file nor a name.
 */
export function fits(word: Word, { kind, texts, role }: WordShape): boolean {
  const { text, isAfterDashes, isText } = word;
  switch (kind) {
    case undefined:
      return texts.includes(text) && isText;
    case "FILE":
      return (isInput(word) && role === "reads") || (isPath(word) && !/(?:^|\/)(?:\.\.?)?$/.test(text));
    case "PATH":
    case "FOLDER":
    case "TREE":
      return isPath(word);
    case "LEAF":
      // Some name, and an ending of its own.
      return isPath(word) && !text.includes(",") && /[^/.]\.[A-Za-z0-9_]+$/.test(text);
    case "TEXT":
      return !text.startsWith("@");
    case "NUMBER":
      return /^[-+]?\d+(?:\.\d+)?[A-Za-z]{0,3}$/.test(text);
    case "NAME":
      return /^[\w.][\w.-]*$/.test(text) && !/^\.\.?$/.test(text);
    case "PATTERN":
      return true;
    case "PACKAGE": {
      const [scope = "", ...rest] = text.replace(/^\.{3}/, "").split("/");
      const first = rest.length === 0 || scope !== "." ? scope.replace(/^@/, "") : rest.shift();
      return [first ?? "", ...rest].every((part) => /^[\w.-]+$/.test(part) && /^[A-Za-z0-9]/.test(part));
    }
    case "TASK":
      return isTask(text);
    case "REF":
      return !isAfterDashes && isReference(text);
    case "ROOT":
      // Each folder of `/` counts as a root.
      return `${start}/`.startsWith(`${absolute(text)}/`) || /^\/[^/]*$/.test(absolute(text));
    case "ARGS":
      return true;
    default:
      throw new Error(`the model does not know ${kind}`);
  }
}

/** The model knows few verbs and harms, so its words have no others. */
function isTask(text: string): boolean {
  const [, name = ""] = /^:?([A-Za-z0-9][A-Za-z0-9_.:-]*)$/.exec(text) ?? [];
  if (/deploy|push|reset/i.test(name)) return false;
  const last = name.slice(name.lastIndexOf(":") + 1);
  return [/^(?:test|lint)(?![a-z])/, /(?:^|[^a-z])(?:test|lint)$/, /[a-z](?:Test|Lint)$/].some(
    (verb) => verb.test(name) || verb.test(last),
  );
}

/** A name of git, or a range of two, of which the second may be left out. */
function isReference(text: string): boolean {
  const [first = "", ...others] = text.split(/\.{2,3}/);
  const isName = (name: string): boolean =>
    /^[^-+:=/][^+:=]*$/.test(name) && !name.endsWith("/") && !/(?:^|\/)\./.test(name);
  return isName(first) && others.length < 2 && others.every((other) => other === "" || isName(other));
}

/** Some programs read `@file` and `host:file` in their own way, zsh reads `=file`, and a dash may begin an option. */
function isPath({ text, isAfterDashes }: Word): boolean {
  return text !== "" && !/^[@=]|^[^/]*:|^\+\d+$/.test(text) && (isAfterDashes || !text.startsWith("-"));
}

/** The files that the words of one way name. Words without a role, and their parts, count too. */
export function pathsOf(places: readonly Place[]): ModelPaths {
  const loose = places.filter(([, shape]) => isLoose(shape)).flatMap(([{ text }]) => partsOf(text));
  const named = (role: WordShape["role"]): readonly string[] =>
    places.filter(([word, shape]) => shape.role === role && !isInput(word)).map(([{ text }]) => text);
  const paths = (words: readonly string[]): ReadonlySet<string> => new Set(words.map(absolute));
  return {
    reads: paths([...named("reads"), ...loose]),
    // All forms of the model only read, so a word without a role is not written.
    writes: paths(named("writes")),
    lists: paths(named("lists")),
  };
}

/** The word `-` is the standard input, but a file after `--`. */
function isInput({ text, isAfterDashes }: Word): boolean {
  return text === "-" && !isAfterDashes;
}

/** Texts, numbers and the texts of a form never count as files. */
function isLoose({ role, kind }: WordShape): boolean {
  return role === undefined && kind !== undefined && kind !== "TEXT" && kind !== "NUMBER" && kind !== "PATTERN";
}

/** The word, its parts beside `=`, `:` and `@`, and a value that may be joined to a short option. */
function partsOf(word: string): readonly string[] {
  const [, bundled = ""] = /^-[^-./~]+([.~].+)$/.exec(word) ?? [];
  return [word, ...word.split(/[=:@]/), /^-[^-]/.test(word) ? word.slice(2) : "", bundled].filter(
    (part) => part !== "",
  );
}

export function plain(text: string): Word {
  return { text, isAfterDashes: false, isText: true };
}

function absolute(word: string): string {
  return posix.resolve(start, word);
}
