import {
  boolean,
  type ContractFunction,
  EvaluationError,
  listType,
  recordType,
  string,
  type Value,
} from "../../../core/src/contract/function.ts";

/** The longest path that Linux accepts. */
const lengthMax = 4096;

/** File paths, as text only: no file is looked up, so a link may lead elsewhere. */
export const pathFunctions: readonly ContractFunction[] = [
  {
    name: "path",
    style: "function",
    parameters: ["string"],
    result: recordType({
      absolute: boolean,
      segments: listType(string, lengthMax / 2),
      name: string,
      extension: string,
    }),
    doc:
      "A POSIX path that every program reads alike: `absolute`, `segments`, `name` (the last segment) and `extension` (`gz`, " +
      "or empty). `.`, `..`, `//`, a slash at the end and everything else that could be read as another path are errors.",
    examples: [['path("/srv/report.tar.gz").extension', '"gz"']],
    cost: costOfPath,
    run: ([text]) => {
      const { absolute, segments: written } = readPath(text as string);
      const segments = written.map(toNfc);
      const name = segments.at(-1) ?? "";
      return new Map<string, Value>([
        ["absolute", absolute],
        ["segments", segments],
        ["name", name],
        ["extension", /^.+\.([^.]+)$/.exec(name)?.[1] ?? ""],
      ]);
    },
  },
  {
    name: "under",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc:
      "Is the path the folder or below it, segment by segment (`startsWith` would accept `/srv-evil` for `/srv`)? " +
      "As text and case-sensitive; the same doubts as for `path` are errors, and so is one absolute path with a relative one.",
    examples: [
      ['"/srv/a.txt".under("/srv")', "true"],
      ['"/srv-evil/a.txt".under("/srv")', "false"],
    ],
    checkLiteral: (literal) => {
      const problem = doubtIn(literal);
      return problem === undefined
        ? undefined
        : { message: `not a folder: ${problem}`, hint: 'write one such as "/srv"' };
    },
    cost: costOfPath,
    run: ([text, folder]) => {
      const [inner, outer] = [readPath(text as string), readPath(folder as string)];
      if (inner.absolute !== outer.absolute)
        throw new EvaluationError(
          "one path is absolute and the other is relative, so it is unknown whether one is under the other",
        );
      return oneAnswer(
        startsWith(inner.segments, outer.segments),
        startsWith(inner.segments.map(toNfc), outer.segments.map(toNfc)),
      );
    },
  },
];

function startsWith(segments: readonly string[], first: readonly string[]): boolean {
  return first.every((segment, at) => segments[at] === segment);
}

/**
 * The text in Unicode's composed form (NFC). On macOS the composed and the decomposed spelling name one file; on Linux they
 * name two. A rule must give the same answer for both spellings, or fail: otherwise the other spelling bypasses the rule.
 * ASCII names are safe: no decomposed text composes to one, and `.ssh` with a combining mark is another name everywhere.
 */
export function toNfc(text: string): string {
  return text.normalize("NFC");
}

/** @throws {EvaluationError} if the answer depends on how the disk compares accents */
export function oneAnswer(asWritten: boolean, asComposed: boolean): boolean {
  if (asWritten === asComposed) return asWritten;
  throw new EvaluationError("a path that is in doubt: its accents match the rule on some disks, and not on others");
}

export function costOfPath(texts: readonly Value[]): number {
  return texts.reduce<number>((steps, text) => steps + 2 + ((text as string).length >> 1), 0);
}

interface Path {
  readonly absolute: boolean;
  readonly segments: readonly string[];
}

/** @throws {EvaluationError} if a program could read it as another path */
export function readPath(text: string): Path {
  const doubt = doubtIn(text);
  if (doubt !== undefined) throw new EvaluationError(`a path that is in doubt: ${doubt}`);
  const absolute = text.startsWith("/");
  const rest = absolute ? text.slice(1) : text;
  return { absolute, segments: rest === "" ? [] : rest.split("/") };
}

/** Texts that some program reads as another path: POSIX, Windows, URL decoders, shells and Unicode folding. */
const doubts: readonly (readonly [RegExp, string])[] = [
  [/^$/, "it is empty"],
  [/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034F\u115F\u1160\u2800\u3164\uFFA0]/u, "it has a control or invisible character"],
  [/\p{Cs}/u, "it has half a character"],
  [/^[A-Za-z]:[\\/]|^\\\\/, "it is a path of Windows, which is not read"],
  [
    /[\\\u2216\u29F5\u29F9\uFF3C\uFE68]/,
    "it has a backslash, as paths of Windows have, or a character that looks like one",
  ],
  [/[\u2044\u2215\u29F8\uFF0F]/, "it has a character that looks like a slash"],
  [/[\u2024\u2025\uFE52\uFF0E]/, "it has a character that looks like a dot"],
  [/(?:^|\/)\.{1,2}(?:\/|$)/, "it has the segment `.` or `..`"],
  [/\/\//, "it has an empty segment"],
  [/.\/$/, "it ends in a slash"],
  [/(?:^|\/)\s|\s(?:\/|$)/, "a segment starts or ends with white space"],
  [/\.(?:\/|$)/, "a segment ends in a dot"],
  [/%[0-9A-Fa-f]{2}/, "it is percent-encoded"],
  [/:/, "it has a colon"],
  [/^~|~[0-9]/, "it has `~` where it may mean another folder"],
  [/^-/, "it starts like an option"],
];

function doubtIn(text: string): string | undefined {
  if (text.length > lengthMax) return `it is over ${lengthMax} characters long`;
  const found = doubts.find(([pattern]) => pattern.test(text));
  if (found !== undefined) return found[1];
  return text.split("/").every(isOneForm)
    ? undefined
    : "a segment is neither in Unicode's composed form (NFC) nor in its decomposed form (NFD)";
}

/**
 * People type names composed; macOS lists them decomposed. Other spellings, such as the Kelvin sign for K, hide a name.
 */
function isOneForm(segment: string): boolean {
  return segment.normalize("NFC") === segment || segment.normalize("NFD") === segment;
}
