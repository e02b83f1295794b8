import type { Form, WordShape } from "../../../core/src/contract/function.ts";
import { isQuietCode } from "./code.ts";
import { joinPath, mayGoUp, unknownFolder } from "../path/folder.ts";
import { isAnyName, isSourceEnding, isSourcePattern, plainText, segmentsOf } from "../path/name-pattern.ts";
import type { CommandUse, ShellReading } from "../shell/run.ts";
import { literal, mark, patternOf, type Arg, type TextSpan, type WordPiece } from "../shell/words.ts";

/** Patterns that one word may stand for. */
const valuesMax = 64;

/** A word with all the texts that it may be, as patterns of file names. */
export interface ReadWord {
  readonly text: string;
  /** Undefined if it is known only when the command runs. */
  readonly values: readonly string[] | undefined;
  /** Are the values whole paths already? Else they are relative to the folder of the command. */
  readonly isJoined: boolean;
  /** May it be several words, or none? */
  readonly isMany: boolean;
  readonly glob: boolean;
  readonly fixed: string;
  /** Is it the output or the input of a command: `<(...)`? */
  readonly process: boolean;
  /** Does it follow `--`, so that git takes it as a file? */
  readonly isAfterDash?: boolean;
  /** Does the form itself list the `--` before it, so that it may also be one of the form's texts? */
  readonly isText?: boolean;
  /** Where it is in the whole text, and what stands before it in its word: `--file=`. */
  readonly span?: TextSpan | undefined;
  readonly before?: string;
}

/** Finds the paths of the files that a command prints for another one: for `xargs` and `{}` of `find`. */
export type FilesOf = (feeder: CommandUse, reader: ReaderOfWords) => readonly string[] | undefined;
type ReaderOfWords = Pick<CommandUse, "loops" | "feeder" | "folders" | "wrapper">;

/** Words of commands, with the values of loop variables and of `{}`. */
export class WordReader {
  readonly #reading: ShellReading;
  readonly #filesOf: FilesOf;

  constructor(reading: ShellReading, filesOf: FilesOf) {
    this.#reading = reading;
    this.#filesOf = filesOf;
  }

  read(arg: Arg, use: ReaderOfWords): ReadWord {
    const { text, fixed, glob, pieces, process, span } = arg;
    const plain = patternOf(arg);
    const word = { text, fixed, glob, process, span, isJoined: false, isMany: glob };
    if (plain !== undefined) return { ...word, values: [plain] };
    const [only, ...rest] = pieces ?? [];
    if (typeof only === "object" && "variable" in only && only.variable === "{}" && rest.length === 0)
      return { ...word, values: use.feeder && this.#filesOf(use.feeder, use), isJoined: true, isMany: !only.isQuoted };
    const values = pieces === undefined ? undefined : this.#expand(pieces, use.loops);
    // The text shows none of these values, and they must not be options or signs of `find`.
    if (values?.some((value) => /^-|^[;+!()]$/.test(value)) === true) return { ...word, values: undefined };
    const isMany = glob || pieces?.some((piece) => typeof piece === "object" && "oneOf" in piece) === true;
    return { ...word, values, isMany, glob: glob || values?.some((value) => plainText(value) === undefined) === true };
  }

  #expand(pieces: readonly WordPiece[], loops: ReadonlySet<string>): readonly string[] | undefined {
    let values: readonly string[] = [""];
    for (const piece of pieces) {
      const next = typeof piece === "string" ? [piece] : "oneOf" in piece ? piece.oneOf : this.#valuesOf(piece, loops);
      if (next === undefined || values.length * next.length > valuesMax) return undefined;
      values = values.flatMap((start) => next.map((end) => start + end));
    }
    return values;
  }

  /** The values of a loop variable, if nothing else sets it, and its words are known. */
  #valuesOf(
    { variable, isQuoted }: { readonly variable: string; readonly isQuoted: boolean },
    loops: ReadonlySet<string>,
  ): readonly string[] | undefined {
    const words = this.#reading.loopWords.get(variable) ?? [];
    if (!loops.has(variable) || this.#reading.values.get(variable)?.length !== words.length) return undefined;
    const values = words.map(patternOf);
    if (values.some((value) => value === undefined || (!isQuoted && !/^[\w./@%+,:=-]*$/.test(value)))) return undefined;
    return values.filter((value) => value !== undefined);
  }
}

export function wordOfText(text: string): ReadWord {
  const arg = literal(text);
  const values = [patternOf(arg) ?? text];
  return { text, fixed: text, values, isJoined: false, isMany: false, glob: false, process: false };
}

/** The texts of a word that is known and not a pattern. */
export function textsOf({ values }: ReadWord): readonly string[] | undefined {
  const texts = values?.map(plainText);
  return texts?.every((text) => text !== undefined) === true ? texts.filter((text) => text !== undefined) : undefined;
}

/** Where a word is read, and lists of its table. */
export interface WordPlace {
  readonly folders: readonly string[];
  /** The folder in which the whole text starts. */
  readonly start: string;
  readonly generated: readonly string[];
  /** The patterns that may match a name which looks like an option. */
  readonly starting?: Form["starting"];
  /** Did the reader of shells find a command among its words? */
  readonly runsCommand: boolean;
  /** Is it asked whether a stricter form does not apply? Then `A=$X` is a word, although nobody knows which. */
  readonly isException?: boolean;
}

/** Folders of programs that are not code of the workspace. */
export const installed: RegExp =
  /(?:^|\/)(?:node_modules|\.?venv|env|vendor|site-packages|\.tox|\.nox|\.bundle|\.yarn)\//;

/** The paths of a word, in each folder. */
export function pathsOfWord(word: ReadWord, { folders }: Pick<WordPlace, "folders">): readonly string[] {
  const values = word.values ?? [];
  return word.isJoined
    ? values
    : [...new Set(folders.flatMap((folder) => values.map((value) => joinPath(folder, value))))];
}

const textKinds = {
  PORT: /^(?:tcp|udp)?:\d+(?:[-,]\d+)*$/i,
  TEXT: /^(?!@)/,
  PATTERN: /^/,
  NUMBER: /^[-+]?\d+(?:\.\d+)?[A-Za-z%]{0,3}$/,
  NAME: /^(?!\.+$)[A-Za-z0-9._][\w.-]*$/,
  PACKAGE: /^!?(?:\.{3}\^?)?[{[]?(?:@|\.\/)?[A-Za-z0-9*][\w.*-]*(?:\/[A-Za-z0-9*][\w.*-]*)*[}\]]?(?:\^?\.{3})?$/,
  URL: /^https?:\/\/[^\s\\]+$/,
} as const;

/** Does the word certainly fit the shape? */
export function fits(word: ReadWord, shape: WordShape, place: WordPlace): boolean {
  const { kind } = shape;
  const texts = textsOf(word);
  const isEach = (test: RegExp): boolean => texts?.every((text) => test.test(text)) === true;
  const isPlaced = (): boolean => isFile(word, place) && !place.folders.includes(unknownFolder);
  const mayBeText = shape.texts.length > 0 && (word.isAfterDash !== true || word.isText === true);
  if (mayBeText && texts?.every((text) => shape.texts.includes(text)) === true) return true;
  switch (kind) {
    case undefined:
      return false;
    case "FILE":
      if (word.process || (shape.role === "reads" && word.text === "-")) return true;
      return isPlaced() && !isEach(/(?:^|\/)\.{0,2}$/);
    case "TREE":
      // `cp -r a/. b` copies what is in the folder, and not the folder.
      if (shape.role === "copies" && word.values?.some((value) => /(?:^|\/)\.{0,2}$/.test(value)) !== false)
        return false;
      return isPlaced();
    case "LEAF":
      if (word.process && shape.role === "reads") return true;
      // Some programs read a list: `a.yaml,.env`.
      return isPlaced() && isEach(/^[^,]*[^/.,]\.(?!(?:phar|pyz)$)\w+$/i) && !isEach(installed);
    case "LOCAL":
      return isPlaced() && isEach(/^\.(?:\/[^@]*)?$/);
    case "PATHSPEC": {
      if (word.isAfterDash === true && isEach(/^:[!^]/)) return true;
      const isObject = word.isAfterDash !== true && word.values?.some((value) => value.includes(":")) !== false;
      return isPlaced() && !isObject;
    }
    case "PATH":
    case "FOLDER":
      return texts !== undefined && isPlaced();
    case "GENERATED":
      return isFile(word, place) && pathsOfWord(word, place).every((path) => isGenerated(path, place));
    case "ROOT":
      return isRoot(word, place);
    case "INCLUDE":
      return word.values?.every((value) => /^[^/!][^/]*$/.test(plainText(value) ?? value)) === true;
    case "ENDING":
      return texts?.every(isSourceEnding) === true;
    case "TASK":
      return texts?.every(isTask) === true;
    case "FORCED":
      return texts?.some((text) => /^[+:]/.test(text)) === true;
    case "REF":
      return word.isAfterDash !== true && isEach(ref);
    case "OBJECT":
      return word.isAfterDash !== true && isEach(object);
    case "SED":
    case "AWK":
    case "JQ":
      return texts?.every((text) => isQuietCode[kind](text)) === true;
    case "ARGS":
      return word.values !== undefined;
    case "ANY":
      return word.values !== undefined || (place.isException === true && word.fixed.replaceAll(mark, "") !== "");
    case "COMMAND":
      return place.runsCommand;
    default:
      return isEach(textKinds[kind]);
  }
}

const verbs =
  "assemble bench benchmark build check checks ci compile coverage cov dev doc docs e2e fmt format help integration lint " +
  "preview serve spec specs start style test tests tsc type typecheck typegen types typing unit validate verify vet watch";
const safeTask: ReadonlySet<string> = new Set(verbs.split(" "));

/** How parts of names begin, of tasks that reach another machine or lose something. */
const harms =
  "apply audit auth aws azure bump chromatic clean clear cloud codecov commit connect creat cred database db delet " +
  "deploy destroy discard disk docker down drop eas$ email empty env eras eval exec expose firebase flush fly$ " +
  "force ftp gcp gh$ helm heroku infra init install k8s key kill kube live login logout mail merge migrat netlify " +
  "ngrok notif npm$ nuke overwrit percy prd$ prod prune public publish pull purge push rebase release remote remov " +
  "reset restor revert rm$ rollback rsync s3 scp secret seed send setup sh$ share shell ship smtp snyk sonar sql " +
  "ssh stag stop submit surge sync tag tear terraform testflight tf$ token truncat tunnel uat$ uninstall updat " +
  "upgrad upload vercel version wipe wrangler";
const harmfulTask = new RegExp(`^(?:auto|pre|re|un)?(?:${harms.replaceAll(" ", "|")})`);

/** Programs with the name of a task, which run their words. pnpm and yarn start them if there is no such task. */
const programTask = /^(?:start-server-and-test|start-test|server-test|tsc-watch|(?:ts-)?node-dev|watch)$/;

/** A task by its name: it begins or ends with a verb that builds, tests or checks, and no part of it names a harm. */
function isTask(name: string): boolean {
  if (!/^:?[A-Za-z0-9][\w.:-]*$/.test(name) || programTask.test(name)) return false;
  const words = name.replaceAll(/[a-z0-9](?=[A-Z])|[A-Z](?=[A-Z][a-z])/g, "$&-").toLowerCase();
  // Gradle writes `:app:testDebug`.
  const ends = [words.split(/[:._-]+/), (words.split(":").at(-1) ?? "").split(/[._-]+/)];
  const isSafe = ends.some((parts) => safeTask.has(parts[0] ?? "") || safeTask.has(parts.at(-1) ?? ""));
  return isSafe && !words.split(/[:._-]+/).some((part) => harmfulTask.test(part));
}

/** A name of git's, or a range of two: no segment starts with a dot. */
const refName = String.raw`(?!\.)[A-Za-z0-9_@](?:(?!\/\.|\/$|\.\.|\.lock(?:\/|$))[\w.\/@{}^~-])*`;
const ref = new RegExp(`^${refName}(?:\\.{2,3}(?:${refName})?)?$`);
const object = new RegExp(`^(?:${refName})?:(?!/)[^:]+$`);

/**
 * A pattern starts with a plain segment or `./`, so no file that it matches reads as an option. Some programs read `@file` and
 * `host:file` in their own way.
 */
function isFile({ values, isJoined, glob, isAfterDash }: ReadWord, { starting }: WordPlace): boolean {
  if (isJoined) return values !== undefined;
  const mayStart = (value: string): boolean =>
    starting === "any" || (starting === "code" && isSourcePattern(segmentsOf(value).at(-1) ?? ""));
  const isOption = (value: string): boolean =>
    value.startsWith("-") || (glob && /^[*?[]/.test(value) && !mayStart(value));
  // `xargs` drops quotes and backslashes; `,` and brackets are signs of `find`; zsh goes back to an earlier folder by `+1`, and
  // `=ls` is the file of a program there.
  const isOwn = (value: string): boolean => /^[@=]|^[^/]*:|["'\n]|\\\\|^[,!()]$|^\+\d+$/.test(value);
  return values?.every((value) => value !== "" && !isOwn(value) && (isAfterDash === true || !isOption(value))) === true;
}

/** A link in `node_modules` may lead to sources, so what is below a folder with `**` is not made again. */
function isGenerated(path: string, { start, generated }: WordPlace): boolean {
  return generated.some((name) => {
    if (segmentsOf(path).some(mayGoUp)) return false;
    if (name.startsWith("**/")) return isBelow(path, start) && segmentsOf(path).at(-1) === name.slice(3);
    const folder = joinPath(start, name);
    return path === folder || path.startsWith(`${folder}/`);
  });
}

function isBelow(path: string, start: string): boolean {
  return start === "." ? !/^(?:\/|~|\*\*|\.\.)/.test(path) : path.startsWith(`${start}/`);
}

/** The path without segments at its end that name nothing: `/srv` for `/srv/*`. */
function withoutAnyNames(path: string): string {
  const segments = [...segmentsOf(path)];
  while (segments.length > 1 && isAnyName(segments.at(-1) ?? "")) segments.pop();
  return segments.join("/") || "/";
}

/** Would removing it remove everything, or what nobody knows? */
function isRoot(word: ReadWord, { folders, start }: WordPlace): boolean {
  if (word.values === undefined) return true;
  return pathsOfWord(word, { folders }).some((path) => {
    const bare = withoutAnyNames(path);
    if (/^\/[^/]*$|^~$|^\.$|^[*?]+$|(?:^|\/)\.\.(?:\/|$)/.test(bare)) return true;
    return start === bare || start.startsWith(`${bare}/`);
  });
}
