import {
  type CommandTable,
  EvaluationError,
  library,
  listType,
  recordType,
  string,
  type ContractFunction,
  type Value,
} from "../../../core/src/contract/function.ts";
import type { TextJudge } from "./judge.ts";
import { isWithinFolder, mayGoUp, mayName, readNames, type NameList } from "../path/folder.ts";
import { expandBraces, patternOfGlob, plainText, segmentsOf } from "../path/name-pattern.ts";
import { textMax } from "../shell/bounds.ts";

const reader = library("the shell parser", async () => {
  const [shell, judge] = await Promise.all([import("../shell/shell.ts"), import("./judge.ts")]);
  await shell.load();
  return { ...shell, ...judge };
});

const texts = listType(string, textMax);

type BoundTable = ReturnType<NonNullable<ContractFunction["bindCommands"]>>;

/** All calls under one table share what they read last. */
const bound = new WeakMap<CommandTable, BoundTable>();

function bindOnce(table: CommandTable): BoundTable {
  const known = bound.get(table) ?? bindTable(table);
  bound.set(table, known);
  return known;
}

function bindTable(table: CommandTable): BoundTable {
  let last: { readonly text: string; readonly start: string; readonly read: TextJudge } | undefined;
  /** The forms of a text are asked for directly after its verdict, so it is read once. */
  const readOnce = ([text, folder]: readonly Value[]): TextJudge => {
    const own = { text: text as string, start: folder as string };
    if (last?.text !== own.text || last.start !== own.start)
      last = { ...own, read: reader.use().readCommands(own.text, table, own.start) };
    return last.read;
  };
  return {
    cost: ([text]) => 256 + (text as string).length * 16,
    line: (args) => readOnce(args).line(),
    run: (args) => {
      const { forms, does, reads, writes, lists, trees, ...answer } = readOnce(args).answer();
      return new Map<string, Value>([
        ...Object.entries(answer),
        ["forms", [...forms]],
        ["does", [...does]],
        ["reads", [...reads]],
        ["writes", [...writes]],
        ["lists", [...lists]],
        ["trees", [...trees]],
      ]);
    },
  };
}

/** Command lines as the contract's table of commands reads them, and the files that they name. */
export const commandFunctions: readonly ContractFunction[] = [
  {
    name: "commands",
    style: "function",
    parameters: ["string", "string"],
    result: recordType({
      verdict: string,
      reason: string,
      form: string,
      forms: texts,
      does: texts,
      reads: texts,
      writes: texts,
      lists: texts,
      trees: texts,
    }),
    doc:
      "What the contract's table of commands says about a command line that starts in a folder: `verdict`, with a `reason` and " +
      "the `form` that decided; what it `does`; the paths that it `reads`, `writes` and only `lists`, and the folders that it " +
      "reads or changes with everything below them (`trees`). The folder is a full path, or `.` for a folder without a name. " +
      "See [commands](#commands).",
    sentences: ["reason"],
    examples: [],
    load: reader.load,
    bindCommands: bindOnce,
    run: () => {
      throw new EvaluationError("a table of commands that was not compiled");
    },
  },
  {
    name: "naming",
    style: "method",
    parameters: ["list", "list"],
    result: texts,
    doc:
      "The paths of the list, each once, that may name a file of the second list, or a file below a folder of it. A path may be " +
      "a pattern, as `commands` lists them. A name such as `.env*` or `.config/gh` counts in every folder; `!.env.example` is an " +
      "exception, but not in such a folder. A text may have several names with blanks between them, and `a.{yml,yaml}` is two. " +
      "Letters are compared without case.",
    examples: [
      ['["/srv/.env", "/srv/a.ts", "/srv/.e*"].naming([".env"])', '["/srv/.env", "/srv/.e*"]'],
      ['["a/.env.example", ".aws/.env.example"].naming([".aws", ".env*", "!.env.example"])', '[".aws/.env.example"]'],
    ],
    cost: ([paths, names]) => costOfLists(paths, names),
    run: ([paths, names]) => {
      const list = namesOf(names as readonly Value[]);
      return [...new Set(textsOf(paths))].filter((path) => mayName(path, list));
    },
  },
  {
    name: "patterns",
    style: "method",
    parameters: ["string", "string"],
    result: texts,
    doc:
      "The paths in a folder that the glob of a search tool may match, as patterns for `naming` and `outside`: braces are " +
      "expanded, and `*` also matches a leading dot. Over 64 patterns are `/**`.",
    examples: [
      ['"*.{ts,tsx}".patterns("/srv")', '["/srv/**/*.tsx", "/srv/**/*.ts"]'],
      ['"{/etc/x,../y}".patterns("/srv").outside(["/srv"])', '["/srv/../y", "/etc/x"]'],
      ['"{*env,a}".patterns("/srv").naming([".env"])', '["/srv/**env"]'],
      ['"[.][.]/*".patterns("/srv")', '["/**"]'],
    ],
    cost: ([glob]) => (glob as string).length * 64,
    run: ([glob, folder]) => {
      const globs = expandBraces(glob as string);
      const isWhole = (path: string): boolean => path.startsWith("/") || path.startsWith("~");
      // `[.][.]` is the folder above.
      const mayLeave = (each: string): boolean =>
        each.includes("[") && segmentsOf(each.replace(/[[\]]/g, "")).some(mayGoUp);
      return (globs ?? ["/**"])
        .map((each) => (mayLeave(each) ? "/**" : patternOfGlob(each)))
        .map((path) => (isWhole(path) ? path : `${folder as string}/${path}`));
    },
  },
  {
    name: "outside",
    style: "method",
    parameters: ["list", "list"],
    result: texts,
    doc:
      "The paths of the list, each once, that are not certainly in one of the folders of the second list. A path may be a " +
      "pattern, as `commands` lists them.",
    examples: [
      ['["/srv/app/a.ts", "/srv/b.ts", "~/c"].outside(["/srv/app"])', '["/srv/b.ts", "~/c"]'],
      ['["a.ts", "../b.ts"].outside(["."])', '["../b.ts"]'],
    ],
    cost: ([paths, names]) => costOfLists(paths, names),
    run: ([paths, folders]) => {
      const list = textsOf(folders);
      return [...new Set(textsOf(paths))].filter((path) => !list.some((folder) => isWithinFolder(path, folder)));
    },
  },
];

/** A limit is the same list for each decision, so its names are read once. */
const read = new WeakMap<readonly Value[], NameList>();

function namesOf(list: readonly Value[]): NameList {
  const known = read.get(list);
  if (known !== undefined) return known;
  const names = readNames(textsOf(list).flatMap((text) => text.split(/\s+/).filter(Boolean).flatMap(namesIn)));
  read.set(list, names);
  return names;
}

function namesIn(text: string): readonly string[] {
  const names = expandBraces(text);
  if (names === undefined) throw new EvaluationError(`braces with too many names: ${text.slice(0, 40)}`);
  return names;
}

function textsOf(list: Value | undefined): readonly string[] {
  return (list as readonly Value[]).map((each) => {
    if (typeof each !== "string") throw new EvaluationError("a list with something other than texts");
    return each;
  });
}

/** A path without a pattern is compared by its segments, and others letter by letter. */
function costOfLists(paths: Value | undefined, names: Value | undefined): number {
  const sum = (list: Value | undefined, weigh: (text: string) => number): number =>
    textsOf(list).reduce((total, text) => total + weigh(text) + 1, 1);
  const weighPath = (path: string): number =>
    plainText(path) === undefined ? path.length : Math.ceil(path.length / 8);
  return sum(paths, weighPath) * sum(names, (name) => name.length);
}
