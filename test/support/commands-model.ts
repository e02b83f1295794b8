/**
 * A second opinion about one simple command: how a table of forms judges it, written from the specification alone. It tries
 * every way to divide the words among the options and the positions of a form, so it is slow and plain. It knows words of
 * letters, digits and `- _ . / : = + @`, and neither patterns, nor other shell syntax, nor moves to other folders.
 *
 * The specification does not say some things, which follow the matcher here: `--` ends options except in the style `single`,
 * and only after the words of `run`; with `--` among the words before `ARGS`, options go on up to it; a form with `marked`
 * and `any` wants both.
 */
import type { Verdict } from "../../packages/core/src/wire/mod.ts";
import type {
  CommandTable,
  Form,
  FormOption,
  OptionStyle,
  ProgramShape,
  WordPosition,
} from "../../packages/core/src/contract/commands/form.ts";
import { fits, pathsOf, plain, type ModelPaths, type Place, type Word } from "./commands-model-words.ts";

/** Rules of the specification that a caller may leave out. */
export type ModelRule =
  | "an option needs its value"
  | "a form needs one of its options"
  | "a stricter form needs one of its options"
  | "each spelling of a needed option counts"
  | "options end at the first word"
  | "an option is marked before the words of run"
  | "an option of another form takes no value";
export type LeftOut = ReadonlySet<ModelRule>;

export interface ModelAnswer {
  readonly verdict: Verdict;
  /** Only for ALLOW. The specification does not say which counts if several ways to divide the words fit. */
  readonly ways: readonly ModelPaths[];
}

/** One way to tell options and words apart. */
interface Reading {
  readonly options: readonly GivenOption[];
  readonly words: readonly Word[];
}

interface GivenOption {
  readonly option: FormOption;
  /** As it is written. */
  readonly name: string;
  readonly value: string | undefined;
}

export function judgeByModel(
  table: CommandTable,
  command: readonly string[],
  without: LeftOut = new Set(),
): ModelAnswer {
  const [program = "", ...args] = command;
  const forms = table.forms.filter(({ run }) => run[0] === program);
  const stricter = forms.filter((form) => form.verdict !== "ALLOW" && isOpenMatch(table, form, args, without));
  const ways = forms
    .filter(({ verdict }) => verdict === "ALLOW")
    .flatMap((form) => waysToFit(table, form, args, without))
    .map(pathsOf);
  const verdicts = stricter.map(({ verdict }) => verdict);
  if (verdicts.includes("BLOCK")) return { verdict: "BLOCK", ways: [] };
  // A command without a form waits for a person too.
  return verdicts.length > 0 || ways.length === 0 ? { verdict: "ESCALATE", ways: [] } : { verdict: "ALLOW", ways };
}

/** A refused option counts whole, abbreviated, with a value or a part, with more dashes, and behind the flags that tools share. */
function isRefused(arg: string, name: string): boolean {
  const word = arg.split("=", 1)[0] ?? "";
  const letters = (option: string): string => option.split(/-(?=\w)/).join("");
  if (name.startsWith("--"))
    return (
      word.startsWith("--") &&
      word.length > 2 &&
      (letters(name).startsWith(letters(word)) || letters(word).startsWith(`${letters(name)}.`))
    );
  if (name.length > 2) return word === name;
  const flags = arg.startsWith("--") ? "" : arg.slice(1).split(name.slice(1), 1)[0];
  return (
    arg.startsWith("-") && arg.includes(name.slice(1)) && /^[vqxslf]*$/.test(flags ?? "x") && !arg.startsWith("--")
  );
}

/** Every way in which a form that is ALLOW lists all options and words. */
function waysToFit(table: CommandTable, form: Form, args: readonly string[], without: LeftOut): readonly Place[][] {
  if (form.refuses.some(({ names }) => names.some((name) => args.some((arg) => isRefused(arg, name))))) return [];
  const isNeeded = ({ option, name }: GivenOption): boolean =>
    form.options.includes(option) &&
    (without.has("each spelling of a needed option counts") ? [name] : option.names).some((each) =>
      form.needs.includes(each),
    );
  return readingsOf(table, form, args, without).flatMap(({ options, words }) => {
    const isLeftOut = form.needs.length === 0 || without.has("a form needs one of its options");
    if (!isLeftOut && !options.some(isNeeded)) return [];
    const values = options.flatMap(({ option, value }): readonly Place[] =>
      option.value === undefined || value === undefined ? [] : [[plain(value), option.value]],
    );
    if (!values.every(([value, shape]) => fits(value, shape))) return [];
    return divisionsOf(words, form.words).map((places) => [...values, ...places]);
  });
}

/** Every way to give the words to the positions, in their order. */
function divisionsOf(words: readonly Word[], positions: readonly WordPosition[]): readonly Place[][] {
  const [position, ...later] = positions;
  if (position === undefined) return words.length === 0 ? [[]] : [];
  return Array.from({ length: words.length + 1 }, (_, index) => words.length - index)
    .filter((count) => (count > 0 || position.isOptional) && (count < 2 || position.isRepeated))
    .filter((count) => words.slice(0, count).every((word) => fits(word, position)))
    .flatMap((count) => {
      const taken = count === 0 && position.fallback !== undefined ? [plain(position.fallback)] : words.slice(0, count);
      const places = taken.map((word): Place => [word, position]);
      return divisionsOf(words.slice(count), later).map((rest) => [...places, ...rest]);
    });
}

/** What a reader of options knows before the next word. */
interface Progress {
  /** The words of `run` that must still come. */
  readonly run: readonly string[];
  /** Words after those of `run`. */
  readonly count: number;
  /** Is everything a word from here? */
  readonly isOver: boolean;
  readonly isDashed: boolean;
}

/** Every way to read the arguments as the words of `run`, listed options and other words. */
function readingsOf(table: CommandTable, form: Form, args: readonly string[], without: LeftOut): readonly Reading[] {
  const { style, options: before, everywhere } = programOf(table, form);
  const argsAt = form.words.findIndex(({ kind }) => kind === "ARGS");
  const isPosix = style === "posix" && !without.has("options end at the first word");
  const isDashListed = form.words.some(({ texts }) => texts.includes("--"));
  const read = (
    [first, ...rest]: readonly string[],
    { run, count, isOver, isDashed }: Progress,
  ): readonly Reading[] => {
    if (first === undefined) return run.length === 0 ? [{ options: [], words: [] }] : [];
    const isWord = isOver || (run.length === 0 && argsAt >= 0 && count >= argsAt && !isDashListed);
    if (!isWord && first === "--" && style !== "single" && run.length === 0) {
      const after = read(rest, { run, count: count + Number(isDashListed), isOver: true, isDashed: true });
      return isDashListed ? after.map(({ options, words }) => ({ options, words: [plain(first), ...words] })) : after;
    }
    if (!isWord && looksLikeOption(first)) {
      const isBefore = run.length > 0 || form.run.length === 1;
      const program = isBefore ? [...before, ...everywhere] : everywhere;
      const listed = run.length > 0 ? program : [...form.options, ...everywhere, ...program];
      return splitsOf(first, rest, { listed, style, without }).flatMap(({ options: own, left }) =>
        read(left, { run, count, isOver, isDashed }).map(({ options, words }) => ({
          options: [...own, ...options],
          words,
        })),
      );
    }
    if (run.length > 0)
      return first === run[0] ? read(rest, { run: run.slice(1), count, isOver: isWord, isDashed }) : [];
    const after = read(rest, { run, count: count + 1, isOver: isWord || isPosix, isDashed });
    return after.map(({ options, words }) => ({
      options,
      words: [{ text: first, isAfterDashes: isDashed, isText: !isDashed || isDashListed }, ...words],
    }));
  };
  return read(args, { run: form.run.slice(1), count: 0, isOver: false, isDashed: false });
}

interface Split {
  readonly options: readonly GivenOption[];
  /** The words after the option and its value. */
  readonly left: readonly string[];
}

interface OptionRules {
  readonly listed: readonly FormOption[];
  readonly style: OptionStyle;
  readonly without: LeftOut;
}

/** Every way to read one word as listed options. */
function splitsOf(word: string, rest: readonly string[], { listed, style, without }: OptionRules): readonly Split[] {
  // If a form and its program list one name, that of the form counts; the specification does not say so.
  const named = (name: string): readonly FormOption[] => listed.filter(({ names }) => names.includes(name)).slice(0, 1);
  const equals = word.indexOf("=");
  const [joinedName, joinedValue] = [word.slice(0, equals), word.slice(equals + 1)];
  const mayJoin = equals > 0 && (word.startsWith("--") || style === "single");
  const joined = mayJoin ? named(joinedName).filter(({ value }) => value !== undefined) : [];
  return [
    ...named(word).flatMap((option) => withNext(option, word, rest, without)),
    ...(/^-\d+$/.test(word) ? named("-NUMBER").flatMap((option) => withNext(option, word, rest, without)) : []),
    ...joined.map((option) => ({ options: [{ option, name: joinedName, value: joinedValue }], left: rest })),
    // A listed name of several letters is not a bundle.
    ...(style === "single" || word.startsWith("--") || named(word).length > 0 ? [] : bundlesOf(word.slice(1))),
  ];

  /** `-abn5`: letters of options without values, and at most one value at the end. */
  function bundlesOf(letters: string): readonly Split[] {
    const [name, more] = [`-${letters.slice(0, 1)}`, letters.slice(1)];
    return named(name).flatMap((option) => {
      if (more === "") return withNext(option, name, rest, without);
      // Programs read `-f=x` in two ways, so no form lists it.
      if (more.startsWith("=")) return [];
      if (option.value !== undefined) return [{ options: [{ option, name, value: more }], left: rest }];
      const first = { option, name, value: undefined };
      return bundlesOf(more).map(({ options, left }) => ({ options: [first, ...options], left }));
    });
  }
}

/** An option whose value, if it must have one, is the next word. */
function withNext(option: FormOption, name: string, rest: readonly string[], without: LeftOut): readonly Split[] {
  const [value, ...left] = rest;
  if (option.value === undefined || option.isOptional || without.has("an option needs its value"))
    return [{ options: [{ option, name, value: undefined }], left: rest }];
  // A value of its own that looks like an option is not accepted: some programs read it a second time.
  return value === undefined || /^--?[A-Za-z]/.test(value) ? [] : [{ options: [{ option, name, value }], left }];
}

/** Does a stricter form match: by one marked option or one word of a kind, beside anything else? */
function isOpenMatch(table: CommandTable, form: Form, args: readonly string[], without: LeftOut): boolean {
  const { marked, any, unless, needs, options } = form;
  const { style, options: ofProgram, everywhere } = programOf(table, form);
  const valued = valuedOf(table, form, without);
  const shared = [...ofProgram, ...everywhere].flatMap(({ names }) => names);
  const valueless = [...ofProgram, ...everywhere].filter(({ value, isOptional }) => value === undefined || isOptional);
  const plainBefore = new Set(valueless.flatMap(({ names }) => names));
  const valuedBefore = valued.map((option) => ({
    ...option,
    names: option.names.filter((name) => !plainBefore.has(name)),
  }));
  const after = afterRun(args, form.run.slice(1), valuedBefore);
  if (after === undefined) return false;
  const before = without.has("an option is marked before the words of run")
    ? []
    : args.slice(0, args.length - after.length);
  const has = (listed: readonly FormOption[]): boolean => {
    const rules = { style, valued };
    // Before the words of `run`, a name that the program lists too is the program's.
    const own = listed.map((option) => ({ ...option, names: option.names.filter((name) => !shared.includes(name)) }));
    return hasOption(before, own, rules) || hasOption(beforeEnd(after, style, valued), listed, rules);
  };
  const needed = options.filter(({ names }) => names.some((name) => needs.includes(name)));
  if (needs.length > 0 && !without.has("a stricter form needs one of its options") && !has(needed)) return false;
  const words = wordsOf(after, valued);
  if (marked.length > 0 && !has(marked)) return false;
  if (any !== undefined && !words.some((word) => fits(word, any))) return false;
  if (unless === undefined) return true;
  const isExcepted = unless.words.length > 0 && divisionsOf(words, unless.words).length > 0;
  return !isExcepted && !has(unless.options);
}

/** Is the next word the value of this one? */
function takesNext(word: string | undefined, valued: readonly FormOption[]): boolean {
  return valued.some(({ names, isOptional }) => !isOptional && names.includes(word ?? ""));
}

/** The arguments after the words of `run`, beside which options may stand. */
function afterRun(
  args: readonly string[],
  run: readonly string[],
  valued: readonly FormOption[],
): readonly string[] | undefined {
  const [first, ...rest] = args;
  if (run.length === 0) return args;
  if (first === undefined) return undefined;
  if (looksLikeOption(first)) return afterRun(takesNext(first, valued) ? rest.slice(1) : rest, run, valued);
  // `sub/go` counts as `go`; the specification does not say so.
  return first.split("/").at(-1) === run[0] ? afterRun(rest, run.slice(1), valued) : undefined;
}

/** The arguments up to the end of options: `--`, or the first word. */
function beforeEnd(args: readonly string[], style: OptionStyle, valued: readonly FormOption[]): readonly string[] {
  const end = args.findIndex(
    (word, at) =>
      (word === "--" && style !== "single") ||
      (style === "posix" && !word.startsWith("-") && !takesNext(args[at - 1], valued)),
  );
  return end < 0 ? args : args.slice(0, end);
}

/** The words that are neither options nor their values. */
function wordsOf(args: readonly string[], valued: readonly FormOption[]): readonly Word[] {
  const [first, ...rest] = args;
  if (first === undefined) return [];
  if (first === "--") return rest.map(plain);
  if (!looksLikeOption(first)) return [plain(first), ...wordsOf(rest, valued)];
  return wordsOf(takesNext(first, valued) ? rest.slice(1) : rest, valued);
}

interface SearchRules {
  readonly style: OptionStyle;
  /** Options that take the rest of a bundle as their value. */
  readonly valued: readonly FormOption[];
}

/** Is one of the options in these words: whole, abbreviated, with a value, or in a bundle? */
function hasOption(args: readonly string[], options: readonly FormOption[], { style, valued }: SearchRules): boolean {
  const names = options.flatMap((option) => option.names);
  return args.some((word) => {
    const [name = ""] = word.split("=", 1);
    // Programs with options of whole words read `--name` as `-name`.
    const isSame = style === "single" && name.startsWith("--") && names.includes(name.slice(1));
    if (names.includes(name) || isSame) return true;
    if (name.startsWith("--")) return name.length > 2 && names.some((each) => each.startsWith(name));
    if (style === "single" || !/^-[A-Za-z0-9]/.test(word)) return false;
    const letters = Array.from(word.slice(1), (letter) => `-${letter}`);
    const last = letters.findIndex((letter) => valued.some((option) => option.names.includes(letter)));
    return letters.slice(0, last < 0 ? letters.length : last + 1).some((letter) => names.includes(letter));
  });
}

function looksLikeOption(word: string): boolean {
  return word.length > 1 && word.startsWith("-");
}

function programOf({ programs }: CommandTable, { run }: Form): ProgramShape {
  return programs.get(run[0] ?? "") ?? { style: "gnu", options: [], everywhere: [] };
}

/** The options with a value that a command with these words of `run` may have. */
function valuedOf(table: CommandTable, form: Form, without: LeftOut): readonly FormOption[] {
  const { options: before, everywhere } = programOf(table, form);
  // The specification does not say that forms count which share the first word after the program.
  const length = without.has("an option of another form takes no value") ? 1 : 2;
  const nameOf = ({ run }: Form): string => run.slice(0, length).join(" ");
  const own = table.forms.filter((other) => nameOf(other) === nameOf(form));
  const listed = own.flatMap(({ options, marked }) => [...options, ...marked]);
  return [...before, ...everywhere, ...listed].filter(({ value }) => value !== undefined);
}
