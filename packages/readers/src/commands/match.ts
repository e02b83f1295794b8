import {
  fileKinds,
  kinds,
  type Form,
  type FormException,
  type FormOption,
  type FileRole,
  type WordPosition,
  type WordShape,
} from "../../../core/src/contract/function.ts";
import { fits, pathsOfWord, textsOf, wordOfText, type ReadWord, type WordPlace } from "./word.ts";
import { unknownFolder } from "../path/folder.ts";
import { isSourcePattern, patternOfGlob, plainText, segmentsOf } from "../path/name-pattern.ts";
import { namesOf, valuesOf, type ProgramForms, type ValuedOptions } from "./program.ts";
import { dashFirst, notListed, say, splitCommand, type FormMisfit, type ReadOption } from "./split.ts";
import { mark } from "../shell/words.ts";

/** A file that a command names. */
export interface NamedFile {
  /** A pattern of whole paths, or of paths relative to the folder in which the text starts. */
  readonly path: string;
  readonly role: FileRole;
  /** Does it stand for everything below it? */
  readonly isTree: boolean;
  /** Does no word name it? */
  readonly isImplied?: boolean;
}

/** A form that a command fits. */
export interface FormMatch {
  readonly form: Form;
  readonly files: readonly NamedFile[];
  /** Its words and values of options, each with what the form says about it. */
  readonly placed: readonly PlacedWord[];
  /** Where the command runs, after the options that change its folder. */
  readonly folders: readonly string[];
  /** Words that are not certain to be no file: they count as read and written. */
  readonly loose: readonly ReadWord[];
  /** For the reason: the words, and the option that decided. */
  readonly words: readonly ReadWord[];
  readonly option: string | undefined;
  /** The patterns of names that it is restricted to. */
  readonly includes: readonly string[];
  readonly asked: readonly string[];
  /** Does the command print names of files, and nothing else? */
  readonly printsNames: boolean;
}

/** A command as the forms of one program see it. */
export interface CommandWords {
  readonly args: readonly ReadWord[];
  readonly place: WordPlace;
}

export function isMisfit(match: FormMatch | FormMisfit): match is FormMisfit {
  return "problem" in match;
}

/** Compares a command with a form that permits it: each option and each word must be listed. */
export function matchWhole(form: Form, program: ProgramForms, { args, place }: CommandWords): FormMatch | FormMisfit {
  const split = splitCommand(args, {
    style: program.style,
    first: [...program.options, ...program.everywhere],
    options: [...form.options, ...program.everywhere, ...(form.run.length === 1 ? program.options : [])],
    run: form.run.slice(1),
    wordsBefore: wordsBefore(form.words),
    isDashWord: form.words.some(({ texts }) => texts.includes("--")),
  });
  if ("problem" in split) return split;
  const { options, words } = split;
  const isNeeded =
    form.needs.length === 0 ||
    options.some(
      ({ option }) => form.options.includes(option) && option.names.some((name) => form.needs.includes(name)),
    );
  if (!isNeeded)
    return form.run.length === 1 ? notListed : { at: 0, problem: `\`${form.needs.join("` or `")}\` is missing` };
  const refused = refusedOption(args, form.refuses);
  if (refused !== undefined) return { at: args.length, problem: `the option \`${refused}\` is not listed` };
  const code = form.words.at(-1)?.kind === "ARGS" ? args.find(mayBeCode) : undefined;
  if (code !== undefined) return { at: args.length, problem: `${say(code)} may be code` };
  const { starting } = form;
  let folders = place.folders;
  const named: PlacedWord[] = [];
  for (const { name, option, value } of options) {
    if (option.value === undefined || value === undefined) continue;
    const here = { ...place, folders };
    if (value.isMany || !fits(value, option.value, here))
      return { at: args.length, problem: `the value ${say(value)} of \`${name}\` is not ${describe(option.value)}` };
    if (option.value.role === "enters") {
      // Of two, some programs take the last one, and others go from the first into the second.
      if (folders !== place.folders) return { at: args.length, problem: `the option \`${name}\` is there twice` };
      folders = pathsOfWord(value, here);
    }
    named.push([value, option.value, here]);
  }
  const here = { ...place, folders, starting };
  const assigned = assignWords(words, form.words, here);
  if ("problem" in assigned) return { at: args.length + assigned.at, problem: assigned.problem };
  const asked = includesOf(options);
  const includes = asked.every((name) => isSourcePattern(name) || place.generated.includes(`**/${name}`)) ? asked : [];
  const placed = [...named, ...assigned.map(([word, shape]) => [word, shape, here] as const)];
  const found = placed.flatMap(([word, shape, at]) => filesOfWord(word, shape, { place: at, includes, asked }));
  const isImplied = assigned.length > words.length;
  const files = [...found.map((file) => ({ ...file, isImplied })), ...copiesOf(found)];
  const loose = placed.flatMap(([word, shape]) => (isLoose(shape) && !isHead(word, shape) ? [word] : []));
  const printsNames =
    form.prints === true || (form.prints || []).some((name) => options.some((each) => each.name === name));
  return { form, files, placed, folders, loose, words, option: undefined, includes, asked, printsNames };
}

const joins = /^(?:-o|-or|,|[()]|--exclude)$/;
const actions = /^-(?:exec|execdir|print|print0|printf|ls|quit|prune)$/;

/** The patterns of names to which a program is restricted. None if it joins or negates them, and if `find` acts before it tests. */
function includesOf(options: readonly ReadOption[]): readonly string[] {
  if (options.some(({ name }) => joins.test(name))) return [];
  const first = options.findIndex(({ name }) => actions.test(name));
  const before = first < 0 ? options : options.slice(0, first);
  return before.flatMap(({ option, value }, at) => {
    if (/^(?:-not|!)$/.test(before[at - 1]?.name ?? "")) return [];
    if (option.value?.kind === "ENDING") return (value?.values ?? []).map((ending) => `*.${ending}`);
    return option.value?.kind === "INCLUDE" ? (value?.values ?? []).flatMap(includedNames) : [];
  });
}

/** The program itself reads the pattern: `*.{ts,tsx}` is two. */
function includedNames(value: string): readonly string[] {
  const name = plainText(value) ?? value;
  const [, start = "", names, end = ""] = /^([^{}]*)\{([^{}]*)\}([^{}]*)$/.exec(name) ?? [];
  return names === undefined ? [name] : names.split(",").map((each) => start + each + end);
}

/** After this number of words everything is a word: before `ARGS`, and after the first word of `COMMAND`. */
function wordsBefore(positions: readonly WordPosition[]): number | undefined {
  const last = positions.at(-1);
  if (positions.some(({ texts }) => texts.includes("--"))) return undefined;
  if (last?.kind === "COMMAND") return positions.length;
  return last?.kind === "ARGS" ? positions.length - 1 : undefined;
}

/** Programs load code from `data:` and `file:` addresses, and some take settings as JSON. URL parsers drop tabs and newlines. */
function mayBeCode({ text, values = [text] }: ReadWord): boolean {
  const plain = values.map((value) => (plainText(value) ?? value).replaceAll(/[\t\n\r]/g, ""));
  const isAddress = (value: string): boolean => /(?:^|[=,\s])(?:data|file):/i.test(value);
  return plain.some((value) => isAddress(value) || (value.includes(":") && /(?:^|=)\s*\{/.test(value)));
}

const looseKinds: ReadonlySet<WordShape["kind"]> = new Set(["NAME", "PACKAGE", "TASK", "REF", "URL", "ARGS"]);

function isLoose({ kind }: WordShape): boolean {
  return looseKinds.has(kind);
}

/** git takes `HEAD` for a commit, whatever files there are. */
function isHead({ text }: ReadWord, { kind }: WordShape): boolean {
  return kind === "REF" && /^(?:HEAD|@)(?:[~^]\d*)*$/.test(text);
}

/** Some parsers take `--out-dir` for `--outDir`, and `--api.host` for a part of `--api`; others take an abbreviation. */
function isSameOption(name: string, word: string): boolean {
  const plain = (option: string): string => option.replaceAll(/-(?=\w)/g, "").toLowerCase();
  const isSame = /[A-Z]/.test(name) ? plain(name) === plain(word) : plain(name).startsWith(plain(word));
  return isSame || plain(word).startsWith(`${plain(name)}.`);
}

/** A kind for people: `a folder by its name`, `one of main, master`. */
function describe({ kind, texts }: WordShape): string {
  const listed = `one of ${texts.slice(0, shownTexts).join(", ")}${texts.length > shownTexts ? ", ..." : ""}`;
  if (kind === undefined) return listed;
  const named = kinds[kind].replace(/(?:;|, so) .*/, "");
  return texts.length === 0 ? named : `${named}, or ${listed}`;
}

const shownTexts = 6;

interface NamingPlace {
  readonly place: WordPlace;
  /** The patterns, if all are names of code. Other names may be in a folder of secrets. */
  readonly includes: readonly string[];
  /** The patterns. */
  readonly asked: readonly string[];
}

function filesOfWord(
  word: ReadWord,
  { kind, role }: WordShape,
  { place, includes, asked }: NamingPlace,
): readonly NamedFile[] {
  if (kind === undefined || role === undefined || !fileKinds.has(kind)) return [];
  if (kind === "OBJECT")
    return (textsOf(word) ?? []).flatMap((text) =>
      pathsOfWord(wordOfText(text.slice(text.indexOf(":") + 1)), place).map((path) => ({ path, role, isTree: false })),
    );
  if (kind === "PATHSPEC") return pathspecFiles(word, role, place);
  if (word.text === "-" && word.isAfterDash !== true) return [];
  const paths = pathsOfWord(word, place);
  // To remove what a build made says nothing about other names there.
  if (kind === "GENERATED") return paths.map((path) => ({ path: plainStart(path), role, isTree: false }));
  if (word.isJoined && !paths.every((path) => path.endsWith("/**")))
    return paths.map((path) => ({ path, role, isTree: false }));
  if (kind !== "TREE" || role === "lists") return paths.map((path) => ({ path, role, isTree: kind === "TREE" }));
  // ripgrep reads a file that the shell names, whatever its pattern says.
  if (word.glob) return paths.map((path) => ({ path, role, isTree: true }));
  const named = paths.flatMap((path) =>
    asked.filter(isName).map((name) => ({ path: `${path}/**/${name}`, role, isTree: false })),
  );
  return includes.length === 0 ? [...paths.map((path) => ({ path, role, isTree: true })), ...named] : named;
}

/** Does the pattern say how names begin? A pattern such as `*.json` says no more than its folder. */
function isName(pattern: string): boolean {
  return !/^[*?[]/.test(pattern) || isSourcePattern(pattern);
}

/** The path up to its first pattern. */
function plainStart(path: string): string {
  const segments = segmentsOf(path);
  const at = segments.findIndex((segment) => plainText(segment) === undefined);
  return at < 0 ? path : segments.slice(0, at).join("/");
}

/** git reads the pattern itself: its `*` also matches slashes and leading dots. */
function pathspecFiles(word: ReadWord, role: FileRole, place: WordPlace): readonly NamedFile[] {
  const values = word.glob
    ? (word.values ?? [])
    : (word.values ?? []).map((value) => patternOfGlob(plainText(value) ?? value));
  return pathsOfWord({ ...word, values }, place).map((path) => {
    // `src/*` has become `src` here.
    const isPlain = plainText(path) !== undefined;
    return { path, role, isTree: isPlain && (role === "lists" || (role !== "reads" && /[*?[]/.test(word.text))) };
  });
}

/** What is copied or moved into a folder has the same name there. */
function copiesOf(files: readonly NamedFile[]): readonly NamedFile[] {
  const names = files.flatMap(({ path, role }) =>
    role === "copies" || role === "moves" ? [segmentsOf(path).at(-1) ?? ""] : [],
  );
  const ending = /[^/.]\.\w+$/;
  // `cp a.json b.json` names a file, and no folder.
  const isFile = (path: string): boolean => names.length === 1 && ending.test(path) && ending.test(names[0] ?? "");
  const into = files.flatMap(({ path, role }) => (role === "writes" && !isFile(path) ? [path] : []));
  return into.flatMap((folder) =>
    names.map((name) => ({ path: `${folder}/${name}`, role: "writes" as const, isTree: false })),
  );
}

type PlacedWord = readonly [word: ReadWord, shape: WordShape, place: WordPlace];
type AssignedWord = readonly [word: ReadWord, shape: WordShape];

/** A position that takes one word, or any number of words. */
interface WordStep {
  readonly shape: WordPosition;
  readonly isMany: boolean;
  readonly isOptional: boolean;
}

/** Gives each word a position. Each pair of a word and a position is visited once. */
function assignWords(
  words: readonly ReadWord[],
  positions: readonly WordPosition[],
  place: WordPlace,
): readonly AssignedWord[] | FormMisfit {
  const steps = positions.flatMap(stepsOf);
  const takes = (at: number, step: number): boolean => {
    const [word, { shape } = nothing] = [words[at], steps[step]];
    return word !== undefined && (shape.isRepeated || !word.isMany) && fits(word, shape, place);
  };
  const ends = endings(words.length, steps, takes);
  if (ends[0]?.[0] !== true) {
    const at = farthest(words.length, steps, takes);
    const isLost = words[at] !== undefined && place.folders.includes(unknownFolder);
    return isLost ? { at, problem: "its folder is known only when it runs" } : wordMisfit(words, positions, at);
  }
  const assigned: AssignedWord[] = [];
  for (let [at, step] = [0, 0]; at < words.length;) {
    const [word, next] = [words[at], steps[step]];
    if (word === undefined || next === undefined || next.shape.kind === "COMMAND") break;
    const after = next.isMany ? step : step + 1;
    if (takes(at, step) && ends[at + 1]?.[after] === true) {
      assigned.push([word, next.shape]);
      [at, step] = [at + 1, after];
    } else step += 1;
  }
  const missing = positions.flatMap((position) => {
    const { fallback } = position;
    const isThere = assigned.some(([, shape]) => shape === position);
    return fallback === undefined || isThere ? [] : [[wordOfText(fallback), position] as const];
  });
  return [...assigned, ...missing];
}

const nothing = { shape: { isRepeated: false, kind: undefined, texts: [], role: undefined } };

/** `X +` is one `X`, and then any number. */
function stepsOf(shape: WordPosition): readonly WordStep[] {
  const { isOptional, isRepeated } = shape;
  const one = { shape, isMany: false, isOptional };
  if (!isRepeated) return [one];
  const many = { shape, isMany: true, isOptional: true };
  return isOptional ? [many] : [one, many];
}

type Takes = (at: number, step: number) => boolean;

/** For each word and step: can the words from there be given to the steps from there? */
function endings(count: number, steps: readonly WordStep[], takes: Takes): readonly (readonly boolean[])[] {
  const rows: boolean[][] = [];
  for (let at = count; at >= 0; at -= 1) {
    const row: boolean[] = [];
    rows[at] = row;
    row[steps.length] = at === count;
    for (let step = steps.length - 1; step >= 0; step -= 1) {
      const { shape, isMany, isOptional } = steps[step] ?? { ...nothing, isMany: false, isOptional: false };
      const isTaken = at < count && rows[at + 1]?.[isMany ? step : step + 1] === true && takes(at, step);
      row[step] =
        shape.kind === "COMMAND" ? at < count && takes(at, step) : isTaken || (isOptional && row[step + 1] === true);
    }
  }
  return rows;
}

/** The first word that no step takes. */
function farthest(count: number, steps: readonly WordStep[], takes: Takes): number {
  let open = skipOptional(new Set([0]), steps);
  for (let at = 0; at < count; at += 1) {
    const next = [...open]
      .filter((step) => takes(at, step))
      .map((step) => (steps[step]?.isMany === true ? step : step + 1));
    if (next.length === 0) return at;
    open = skipOptional(new Set(next), steps);
  }
  return count;
}

function skipOptional(open: ReadonlySet<number>, steps: readonly WordStep[]): ReadonlySet<number> {
  const all = new Set(open);
  for (const step of all) if (steps[step]?.isOptional === true) all.add(step + 1);
  return all;
}

function wordMisfit(words: readonly ReadWord[], positions: readonly WordPosition[], at: number): FormMisfit {
  const word = words[at];
  if (word === undefined) return { at, problem: "a word is missing" };
  if (word.values === undefined) {
    const isRead = !word.fixed.includes(mark);
    return { at, problem: `${say(word)} is ${isRead ? "not the same in all shells" : "known only when it runs"}` };
  }
  if (word.glob && /^[*?[]/.test(word.text))
    return { at, problem: `${say(word)} may match a name that looks like an option; begin it with \`./\`` };
  const wanted = positions.filter(({ kind, texts }) => kind !== "ARGS" && !texts.includes("--"));
  // A form that lists no words at all says less.
  if (wanted.length === 0) return { at: at - 0.5, problem: `${say(word)} is not listed` };
  return { at, problem: `${say(word)} is not ${[...new Set(wanted.map(describe))].join(" or ")}` };
}

/** The first of these options: whole, abbreviated, with its value, or behind flags that most tools have. */
function refusedOption(args: readonly ReadWord[], refuses: readonly FormOption[]): string | undefined {
  const names = refuses.flatMap((option) => option.names);
  return names.find((name) =>
    args.some(({ text }) => {
      const [word = ""] = text.split("=", 1);
      if (name.startsWith("--")) return word.startsWith("--") && word.length > 2 && isSameOption(name, word);
      return name.length > 2
        ? word === name
        : !text.startsWith("--") && new RegExp(`^-[vqxslf]*${name.slice(1)}`).test(text);
    }),
  );
}

/** The stricter forms that match by one sign. */
export function openMatches(program: ProgramForms, words: CommandWords): readonly FormMatch[] {
  return program.strict.flatMap((form) => matchOpenly(form, program, words) ?? []);
}

/** Compares a command with a form that is stricter than ALLOW: one sign is enough. */
function matchOpenly(form: Form, program: ProgramForms, { args: written, place }: CommandWords): FormMatch | undefined {
  const values = valuesOf(form, program);
  const args = program.style === "bare" ? dashFirst(written, values.takeNext) : written;
  const run = form.run.slice(1);
  const words = wordsOfCommand(args, run.length, values);
  if (!run.every((word, at) => words[at]?.text.replace(/^.*\//, "") === word)) return undefined;
  const rest = words.slice(run.length);
  const last = run.length === 0 ? undefined : words[run.length - 1];
  const after = last === undefined ? args : args.slice(args.indexOf(last) + 1);
  const rules = { ...values, style: program.style };
  const own = namesOf([...program.options, ...program.everywhere]);
  const before = args.slice(0, args.length - after.length).filter((arg) => arg.text !== "--" && !words.includes(arg));
  // An option before the words of `run` may be one of the program.
  const find = (options: readonly FormOption[]): string | undefined => {
    const names = namesOf(options);
    return (
      markedOption(after, names, rules) ??
      markedOption(
        before,
        names.filter((name) => !own.includes(name)),
        rules,
      )
    );
  };
  const option = find(form.marked);
  const { any } = form;
  const isAny = any !== undefined && rest.some((word) => fits(word, any, place));
  if (form.marked.length > 0 && option === undefined) return undefined;
  if (any !== undefined && !isAny) return undefined;
  if (
    form.unless !== undefined &&
    isExcepted(form.unless, rest, { place, isMarked: find(form.unless.options) !== undefined })
  )
    return undefined;
  return {
    form,
    files: [],
    placed: [],
    folders: place.folders,
    loose: args,
    words: rest,
    option,
    includes: [],
    asked: [],
    printsNames: false,
  };
}

function isExcepted(
  { words }: FormException,
  rest: readonly ReadWord[],
  { place, isMarked }: { readonly place: WordPlace; readonly isMarked: boolean },
): boolean {
  return isMarked || (words.length > 0 && !("problem" in assignWords(rest, words, { ...place, isException: true })));
}

/** The words of a command, without options and the values that follow them. The first ones are those of `run`. */
function wordsOfCommand(
  args: readonly ReadWord[],
  runLength: number,
  { takeNext, takeNextBefore }: ValuedOptions,
): readonly ReadWord[] {
  const words: ReadWord[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at];
    if (arg === undefined) break;
    if (arg.text === "--" && words.length >= runLength) return [...words, ...args.slice(at + 1)];
    if (!/^-./.test(arg.text)) words.push(arg);
    else if ((words.length < runLength ? takeNextBefore : takeNext).has(arg.text)) at += 1;
  }
  return words;
}

type OptionRules = ValuedOptions & Pick<ProgramForms, "style">;

/** The first option of a command that is one of these: whole, abbreviated, with a value or in a bundle. */
function markedOption(
  args: readonly ReadWord[],
  names: readonly string[],
  { valued, takeNext, style }: OptionRules,
): string | undefined {
  for (const [at, { text }] of args.entries()) {
    const isValue = takeNext.has(args[at - 1]?.text ?? "");
    const isEnd = (text === "--" && style !== "single") || (style === "posix" && !text.startsWith("-") && !isValue);
    if (isEnd) return undefined;
    if (!text.startsWith("-")) continue;
    const [word = ""] = text.split("=", 1);
    const isLong = word.startsWith("--") && word.length > 2;
    const found = names.find((name) => name === word || (isLong && isAbbreviated(name, word, style)));
    if (found !== undefined) return found;
    if (isLong || style === "single" || !/^-[A-Za-z0-9]/.test(text)) continue;
    for (const letter of text.slice(1)) {
      const name = `-${letter}`;
      if (names.includes(name)) return name;
      if (valued.has(name)) break;
    }
  }
  return undefined;
}

/** `--for` is `--force`, and for Go and Java `--name` is `-name`. */
function isAbbreviated(name: string, word: string, style: ProgramForms["style"]): boolean {
  return name.startsWith(word) || (style === "single" && name === word.slice(1));
}
