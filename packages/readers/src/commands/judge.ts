import {
  nameOfForm,
  type CommandEffect,
  type CommandTable,
  type CommandLine,
  type Form,
} from "../../../core/src/contract/function.ts";
import type { Verdict } from "../../../core/src/wire/mod.ts";
import { joinPath, unknownFolder } from "../path/folder.ts";
import { escapePattern, expandBraces, isAnyName, plainText, segmentsOf } from "../path/name-pattern.ts";
import type { CommandUse, FileRedirect, ShellReading } from "../shell/run.ts";
import { readShell } from "../shell/shell.ts";
import { mark, type Arg } from "../shell/words.ts";
import { programsOf, type ProgramForms } from "./program.ts";
import { isMisfit, matchWhole, openMatches, type CommandWords, type FormMatch, type NamedFile } from "./match.ts";
import { notListed, notListedHere, say, type FormMisfit } from "./split.ts";
import { isPersonal, mayHide } from "./personal.ts";
import { widthsOf, type CommandFit, type TextOfCommands } from "./width.ts";
import { installed, pathsOfWord, WordReader, wordOfText, type ReadWord } from "./word.ts";

/** What a table says about a command line. */
export interface TableAnswer {
  readonly verdict: Verdict;
  /** The loss, the option, the word or the file that decided. */
  readonly reason: string;
  /** The form that decided; empty if none did. */
  readonly form: string;
  /** All forms that a command fits. */
  readonly forms: ReadonlySet<string>;
  readonly does: ReadonlySet<CommandEffect>;
  readonly reads: ReadonlySet<string>;
  readonly writes: ReadonlySet<string>;
  /** Files and folders whose names are shown. */
  readonly lists: ReadonlySet<string>;
  /** Folders that are read or changed with everything below them. */
  readonly trees: ReadonlySet<string>;
}

/** The part of an answer that one command or one piece of structure decides. */
interface TableFinding {
  readonly verdict: Verdict;
  readonly reason: string;
  readonly form: string;
  readonly does: ReadonlySet<CommandEffect>;
}

const strictness: readonly Verdict[] = ["ALLOW", "ESCALATE", "BLOCK"];

/** What the table says about one command of a text, or about a piece of its structure. */
export interface CommandFinding extends TableFinding {
  /** The command as it was read; empty for structure. */
  readonly command: string;
  readonly match: FormMatch | undefined;
}

/** Reads a text, and says what the table says about it. */
export function readCommands(text: string, table: CommandTable, start: string): TextJudge {
  return new TextJudge({ text, start, reading: readShell(text, start) }, table);
}

/** What the table says about a text: the strictest finding decides; of equal ones, that of a form. */
export class TextJudge {
  readonly #whole: TextOfCommands;
  readonly #reading: ShellReading;
  readonly #table: CommandTable;
  readonly #start: string;
  readonly #words: WordReader;
  readonly #programs: ReadonlyMap<string, ProgramForms>;
  readonly #commands = new Map<CommandUse, CommandWords>();
  readonly #matches = new Map<CommandUse, FormMatch | FormMisfit>();
  readonly #strict = new Map<CommandUse, readonly FormMatch[] | undefined>();
  readonly #reads = new Set<string>();
  readonly #writes = new Set<string>();
  readonly #trees = new Set<string>();
  readonly #lists = new Set<string>();
  readonly #fitting = new Set<string>();

  constructor(whole: TextOfCommands, table: CommandTable) {
    const { reading, start } = whole;
    this.#whole = whole;
    this.#reading = reading;
    this.#table = table;
    this.#start = start;
    this.#words = new WordReader(reading, (feeder, use) => this.#filesPrintedBy(feeder, use));
    this.#programs = programsOf(table);
  }

  answer(): TableAnswer {
    const findings = [
      ...this.#judgeStructure(),
      ...this.#reading.uses.map((use) => this.#judgeCommand(use)),
      ...this.#reading.redirects.flatMap((redirect) => this.#judgeRedirect(redirect)),
    ];
    const does = new Set(findings.flatMap((finding) => [...finding.does]));
    const { verdict, form } = findings.reduce(stricter, { verdict: "ALLOW", reason: "", form: "", does });
    const reason = verdict === "ALLOW" ? summary(does) : reasonOf(findings, verdict);
    const [reads, writes, lists, trees] = [this.#reads, this.#writes, this.#lists, this.#trees];
    return { verdict, reason, form, forms: this.#fitting, does, reads, writes, lists, trees };
  }

  /** About each command, in order, and then about the structure of the text. */
  each(): readonly CommandFinding[] {
    const { uses, redirects } = this.#reading;
    const commands = uses.map((use) => {
      const match = this.#matchOf(use);
      const command = [use.program, ...use.args.map(({ text }) => text)].join(" ");
      return { ...this.#judgeCommand(use), command, match: isMisfit(match) ? undefined : match };
    });
    const rest = [...redirects.flatMap((redirect) => this.#judgeRedirect(redirect)), ...this.#judgeStructure()];
    return [...commands, ...rest.map((finding) => ({ ...finding, command: "", match: undefined }))];
  }

  line(): CommandLine {
    const fits = this.#fits();
    return { widths: widthsOf(this.#whole, fits), isPersonal: isPersonal(this.#whole, fits) };
  }

  #fits(): readonly CommandFit[] {
    return this.#reading.uses.map((use) => {
      const words = this.#commandWords(use);
      const program = this.#programOf(use.name);
      const whole = this.#matchOf(use);
      const strict = this.#strictOf(use);
      // A stricter form decides, so its own positions count.
      const own = strict.map(({ form }) => program && matchWhole(form, program, words));
      const match = strict.length === 0 ? whole : own.find((each) => each !== undefined && !isMisfit(each));
      const forms = [...(isMisfit(whole) ? [] : [whole]), ...strict].map(({ form }) => form);
      return {
        name: use.name,
        forms,
        isHidden: forms.length === 0 && mayHide(this.#programs, program, words),
        shape: this.#table.programs.get(use.name),
        args: words.args,
        match: match === undefined || isMisfit(match) ? undefined : match,
        isRunner: this.#reading.runners.has(use),
      };
    });
  }

  /** The forms of a program. One that is named by its path has those of its name, or it is code of the workspace. */
  #programOf(name: string): ProgramForms | undefined {
    const own = this.#programs.get(name);
    if (own !== undefined || !name.includes("/")) return own;
    const named = this.#programs.get(name.slice(name.lastIndexOf("/") + 1));
    return named !== undefined || installed.test(name) ? named : this.#programs.get("FILE");
  }

  #commandWords(use: CommandUse): CommandWords {
    return this.#commands.getOrInsertComputed(use, () => this.#readWords(use));
  }

  #readWords(use: CommandUse): CommandWords {
    const { generated } = this.#table;
    const place = { folders: use.folders, start: this.#start, generated, runsCommand: this.#reading.runners.has(use) };
    return { args: use.args.map((arg) => this.#words.read(arg, use)), place };
  }

  /** The stricter forms that a command fits. */
  #strictOf(use: CommandUse): readonly FormMatch[] {
    const program = this.#programOf(use.name);
    return this.#strict.getOrInsertComputed(use, () => program && openMatches(program, this.#commandWords(use))) ?? [];
  }

  /** The form that permits the command, or the first piece that no such form lists. */
  #matchOf(use: CommandUse): FormMatch | FormMisfit {
    const known = this.#matches.get(use);
    if (known !== undefined) return known;
    const match = this.#findMatch(use);
    this.#matches.set(use, match);
    return match;
  }

  #findMatch(use: CommandUse): FormMatch | FormMisfit {
    const program = this.#programOf(use.name);
    const words = this.#commandWords(use);
    const texts = new Set(words.args.map(({ text }) => text));
    let nearest = notListed;
    for (const form of program?.whole ?? []) {
      if (program === undefined || !form.run.every((word, at) => at === 0 || texts.has(word))) continue;
      const match = matchWhole(form, program, words);
      if (!isMisfit(match)) return match;
      if (match.at > nearest.at) nearest = match;
    }
    if (nearest !== notListed || program === undefined) return nearest;
    const first = words.args.find(({ text }) => !text.startsWith("-")) ?? words.args[0];
    return { at: 0, problem: first === undefined ? "it is not listed without a word" : notListedHere(first) };
  }

  #judgeCommand(use: CommandUse): TableFinding {
    const words = this.#commandWords(use);
    const match = this.#matchOf(use);
    const program = this.#programOf(use.name);
    const strict = program === undefined ? this.#refusedBehind(words) : this.#strictOf(use);
    for (const each of [...(isMisfit(match) ? [] : [match]), ...strict]) this.#fitting.add(nameOfForm(each.form));
    const isUnknownFolder = use.folders.includes(unknownFolder) && !isMisfit(match) && match.form.does.size > 0;
    if (isMisfit(match) || isUnknownFolder) this.#noteLoose(words.args, use.folders);
    else this.#noteMatch(match, use);
    if (use.name.includes("/")) this.#noteLoose([this.#words.read(programWord(use), use)], use.folders, [this.#reads]);
    const [first, ...rest] = strict.toSorted((a, b) => detail(b.form) - detail(a.form)).map((each) => findingOf(each));
    if (first !== undefined) return rest.reduce(stricter, first);
    const isListed = program !== undefined;
    if (!isMisfit(match)) {
      if (this.#reading.withCode.has(use) && !quietCode.has(use.name))
        return ask(`${say({ text: use.name })} runs code that is written in the text`);
      if (use.hasText && match.form.words.some(({ kind }) => kind === "ARGS") && !this.#reading.runners.has(use))
        return ask(`${say({ text: use.name })} may run the text that it gets as input`);
    }
    if (isUnknownFolder) return askAboutUnlisted(use, "its folder is known only when it runs", isListed);
    if (isMisfit(match)) return askAboutUnlisted(use, match.problem, isListed);
    const finding = findingOf(match);
    // `./ls` has the name of a known program, and is code of the workspace.
    const isOwnCode = use.name.includes("/") && !ofSystem.test(use.name);
    return isOwnCode ? { ...finding, does: new Set([...finding.does, "runs"]) } : finding;
  }

  /** A program that nobody lists may run its words: `prlimit -n 10 sudo reboot`. */
  #refusedBehind({ args, place }: CommandWords): readonly FormMatch[] {
    return unmistakable.flatMap((name) => {
      const at = args.findIndex(({ text }) => text === name);
      const [program, rest] = [this.#programs.get(name), args.slice(at + 1)];
      if (at < 0 || program === undefined || rest.length === 0) return [];
      return openMatches(program, { args: rest, place }).filter(({ form }) => form.verdict === "BLOCK");
    });
  }

  #noteMatch({ form, files, loose, ...match }: FormMatch, { folders }: CommandUse): void {
    for (const file of files) this.#noteFile(file);
    // `go build` in `.git/hooks` writes there, and no word says so.
    if (form.does.has("writes") && !files.some(({ role }) => role === "writes" || role === "moves"))
      for (const folder of match.folders) this.#writes.add(folder);
    const onlyReads = form.does.size === 1 && form.does.has("reads");
    this.#noteLoose(loose, folders, onlyReads ? [this.#reads] : [this.#reads, this.#writes]);
  }

  #noteFile({ path, role, isTree }: NamedFile): void {
    const segments = segmentsOf(path);
    const last = segments.at(-1) ?? "";
    const isWhole =
      last === "**" || isAnyName(last) || (role !== "writes" && role !== "moves" && dataOfAnyName.test(last));
    const folder = isWhole ? segments.slice(0, -1).join("/") : path;
    if (role === "lists") return void this.#lists.add(folder);
    if (role !== "writes") this.#reads.add(folder);
    if (role === "writes" || role === "moves") this.#writes.add(folder);
    if (isTree || isWhole) this.#trees.add(folder);
    // A folder of settings that no word names may be among those of `**`.
    const at = segments.indexOf("**");
    if (at >= 0 && !isWhole && (role === "writes" || role === "moves"))
      this.#trees.add(segments.slice(0, at).join("/"));
    // A program that splits names at blanks reads each part as a name.
    if (/\s/.test(path)) this.#noteLoose(path.split(/\s+/).map(wordOfPattern), [this.#start]);
  }

  /** Words that may be files: each counts as read and written if nobody knows better, and so do the parts after `=`, `:` and `@`. */
  #noteLoose(
    words: readonly ReadWord[],
    folders: readonly string[],
    into: readonly Set<string>[] = [this.#reads, this.#writes],
  ): void {
    for (const word of words) {
      const named =
        word.values === undefined
          ? partlyKnown(word, folders)
          : partsOf(word).flatMap((part) => pathsOfWord(part, { folders }));
      for (const path of named) {
        const folder = isAnyName(segmentsOf(path).at(-1) ?? "") ? path.slice(0, path.lastIndexOf("/")) : path;
        if (folder === "/dev/null") continue;
        if (folder !== path) this.#trees.add(folder);
        for (const paths of into) paths.add(folder);
      }
    }
  }

  #judgeRedirect(redirect: FileRedirect): readonly TableFinding[] {
    const { file, folders, role } = redirect;
    const word = this.#words.read(file, { ...redirect, feeder: undefined, wrapper: "" });
    if (word.values === undefined || word.glob || word.isMany) {
      this.#noteLoose([word], folders);
      return [ask(`the file ${say(word)} of a redirection is known only when it runs`)];
    }
    if (word.text.startsWith("!"))
      return [ask(`${say(word)} is a part of the redirection in zsh, and a file in other shells`)];
    for (const path of pathsOfWord(word, redirect)) this.#noteFile({ path, role, isTree: false });
    return [{ verdict: "ALLOW", reason: "", form: "", does: new Set([role]) }];
  }

  #judgeStructure(): readonly TableFinding[] {
    const { functions, background, beside, variables, emptied, unread } = this.#reading;
    return [
      ...[...unread].map(ask),
      ...[...functions].map((name) => ask(`the text defines the function ${say({ text: name })}`)),
      ...[...emptied].map((text) => ask(`deletes the content of ${say({ text })}, if there is such a file`)),
      ...(background ? [ask("a command stays in the background")] : []),
      ...[...beside].map((text) => ask(`${say({ text })} is known only when it runs`)),
      ...[...variables].flatMap((name) => this.#judgeVariable(name)),
    ];
  }

  #judgeVariable(name: string): readonly TableFinding[] {
    const values = this.#reading.values.get(name) ?? [];
    const loops = this.#reading.loopWords.get(name)?.length ?? 0;
    // A variable that no program of its own reads, and that only loops set.
    if (loops > 0 && values.length === loops && isLoopName(name)) return [];
    if (!this.#table.variables.has(name)) return [ask(`the variable \`${name}\` is not listed`)];
    if (values.includes(undefined)) return [ask(`the value of the variable \`${name}\` is known only when it runs`)];
    const odd = values.find((value) => value !== undefined && !plainValue.test(value));
    return odd === undefined ? [] : [ask(`the value ${say({ text: odd })} of the variable \`${name}\` may be code`)];
  }

  /** The files whose names a command prints for another one in the same folder, if its form says so. */
  #filesPrintedBy(use: CommandUse, reader: Pick<CommandUse, "folders" | "wrapper">): readonly string[] | undefined {
    const match = this.#matchOf(use);
    const isFilter =
      !isMisfit(match) && filters.get(use.name)?.test(use.args.map(({ text }) => text).join(" ")) === true;
    if (isFilter) return use.previous && this.#filesPrintedBy(use.previous, reader);
    const isHere = use.folders.length === 1 && reader.folders.length === 1 && use.folders[0] === reader.folders[0];
    // `find` puts the names into the words itself, whatever it prints.
    if (isMisfit(match) || !isHere || !(match.printsNames || reader.wrapper === "find")) return undefined;
    // `git ls-files` and `grep -rl x` print names without a folder, which may start with a dash; `find` prints `./`.
    const isBare = (path: string): boolean => {
      const [first = "", ...rest] = segmentsOf(path.slice(this.#start.length + 1));
      return rest.length === 0 || plainText(first) === undefined;
    };
    const isOdd = match.files.some(
      ({ path, role, isImplied, isTree }) =>
        role === "enters" || (use.name !== "find" && (isImplied === true || (!isTree && isBare(path)))),
    );
    if (isOdd) return undefined;
    const below = (path: string): readonly string[] => {
      const named = match.asked.map((name) => `${path}/**/${name}`);
      return match.includes.length > 0 ? named : [`${path}/**`, ...named];
    };
    const files = match.files.flatMap(({ path, isTree }) => (isTree ? below(path) : [path]));
    return files.length === 0 ? undefined : files;
  }
}

/** Programs that pass lines on as they are, with the arguments that keep them whole. */
const filters = new Map([
  ["head", /^(?:-n ?)?(?:-?\d+)?$/],
  ["tail", /^(?:-n ?)?(?:[-+]?\d+)?$/],
  ["sort", /^(?:-[ru]+)?$/],
  ["uniq", /^$/],
  ["grep", /^-[vEFi]*v[EFi]* [\w./|-]*$/],
]);

/** A value that neither a shell nor `make` can read as code. */
const plainValue = /^[\w.,:/+=@%*-]*$/;

/** Programs also read names of lower case: `no_proxy`, and in zsh `path`. */
function isLoopName(name: string): boolean {
  return /^[a-z]{1,8}\d?$/.test(name) && !name.endsWith("path");
}

function programWord({ program }: CommandUse): Arg {
  const pieces = [escapePattern(program)];
  return { text: program, fixed: program, known: true, glob: false, single: true, process: false, pieces };
}

/** Files of any name, some of which are settings with keys in them: `*.json` says no more than `*`. */
const dataOfAnyName = /^\*+\.(?:json|ya?ml|toml)$/i;

/** Folders of programs that the system's packages installed. */
const ofSystem = /^\/(?:usr\/(?:local\/)?|opt\/homebrew\/)?s?bin\/[^/]+$/;

/** Names that are hardly anything but programs, unlike `init` and `mount`. */
const unmistakable =
  "sudo doas pkexec runuser rm dd mkfs shred shutdown reboot poweroff chown crontab useradd userdel visudo".split(" ");

/** Programs whose code the words of their forms judge. */
const quietCode = new Set(["sed", "gsed", "awk", "gawk", "mawk", "sqlite3"]);

/** The finding that decides. If two have the same verdict, a loss comes first, and a form comes before structure. */
function stricter(left: TableFinding, right: TableFinding): TableFinding {
  return rank(right) > rank(left) ? right : left;
}

function rank({ verdict, does, form }: TableFinding): number {
  return strictness.indexOf(verdict) * 4 + (does.has("destroys") ? 2 : 0) + (form === "" ? 0 : 1);
}

/** The reasons of the findings that decide, losses first: a person who is asked about three commands sees what each may do. */
function reasonOf(findings: readonly TableFinding[], verdict: Verdict): string {
  const worst = findings.filter((finding) => finding.verdict === verdict).toSorted((a, b) => rank(b) - rank(a));
  const reasons = [...new Set(worst.map(({ reason }) => reason))];
  const more = reasons.length > reasonsMax ? [`and ${reasons.length - reasonsMax} more`] : [];
  return [...reasons.slice(0, reasonsMax), ...more].join("; ");
}

const reasonsMax = 3;

/** A form that says more about the command gives the reason. */
function detail({ run, marked, any }: Form): number {
  return run.length * 2 + (marked.length > 0 || any !== undefined ? 1 : 0);
}

function isSubcommand<T extends { readonly text: string }>(word: T | undefined): word is T {
  return word !== undefined && /^[a-z][\w-]{0,30}$/.test(word.text);
}

function ask(reason: string): TableFinding {
  return { verdict: "ESCALATE", reason, form: "", does: new Set() };
}

function askAboutUnlisted({ name, args }: CommandUse, problem: string, isListed: boolean): TableFinding {
  const [first] = args;
  if (!isListed || !isSubcommand(first)) return ask(`${say({ text: name })}: ${problem}`);
  // The label has the word already.
  const rest = problem === notListedHere(first) ? notListed.problem : problem;
  return ask(`${say({ text: `${name} ${first.text}` })}: ${rest}`);
}

function findingOf({ form, words, option }: FormMatch): TableFinding {
  const written = form.reason ?? "";
  const shown = words.length === 0 ? written.replace(/: \{words\}$/, "") : written;
  const reason = shown.replace(/\{(word\.(\d+)|option|words)\}/g, (_, what: string, at: string) => {
    if (what === "option") return option ?? "";
    if (what === "words") return words.map(say).join(" ");
    const word = words[Number(at) - 1];
    return word === undefined ? "" : say(word);
  });
  return {
    verdict: form.verdict,
    reason: reason.trim().replace(/ {2,}/g, " ").replace(/ ,/g, ","),
    form: nameOfForm(form),
    does: form.does,
  };
}

const sentences: Readonly<Record<CommandEffect, string>> = {
  reads: "read",
  writes: "change files",
  runs: "run code of the workspace",
  sends: "contact other machines",
  destroys: "delete data",
};

function summary(does: ReadonlySet<CommandEffect>): string {
  const verbs = Object.entries(sentences).flatMap(([effect, verb]) =>
    does.has(effect as CommandEffect) ? [verb] : [],
  );
  const before = verbs.slice(0, -1).join(", ");
  return `the commands ${before === "" ? "" : `${before} and `}${verbs.at(-1) ?? "change nothing"}`;
}

function wordOfPattern(pattern: string): ReadWord {
  return { ...wordOfText(pattern), values: [pattern] };
}

/** The word, and its parts between signs, each as a word. */
function partsOf(word: ReadWord): readonly ReadWord[] {
  const parts = (word.values ?? []).flatMap((value) => {
    const bundled = /^-[^-./~]+([.~].+)$/.exec(value)?.[1] ?? "";
    const attached = /^-[^-]./.test(value) ? [value.slice(2), bundled] : [];
    if (webAddress.test(value)) return [];
    return [...attached, ...value.split(/[\s=:@,;"'{}[\]()]+/)].filter((part) => part !== "" && part !== value);
  });
  const patterns = [...(word.values ?? []), ...parts].flatMap(patternsIn);
  return [word, ...[...new Set([...parts, ...patterns])].map(wordOfPattern)];
}

/** The parts of an address of the web are not paths. */
const webAddress = /^(?:--[\w-]+=)?https?:\/\/[\w.~:/?#!&=%-]+$/;

/** The patterns of names in a quoted word, which some programs read themselves: `'.e*'`. */
function patternsIn(value: string): readonly string[] {
  const text = /\\[*?[]|\{/.test(value) ? plainText(value) : undefined;
  if (text === undefined || /\s/.test(text)) return [];
  const isNamed = (segment: string): boolean =>
    plainText(segment) === undefined && !isAnyName(segment) && !dataOfAnyName.test(segment);
  return (expandBraces(text) ?? ["*"]).filter((pattern) => pattern !== text || segmentsOf(pattern).some(isNamed));
}

/** A word that is partly known: its folders before the unknown part, and the names after it. */
function partlyKnown({ fixed }: ReadWord, folders: readonly string[]): readonly string[] {
  // One shell reads the word like this, and another one does not.
  if (!fixed.includes(mark)) return folders.map((folder) => joinPath(folder, escapePattern(fixed)));
  if (!fixed.includes("/")) return [];
  const segments = fixed.split("/");
  const first = segments.findIndex((segment) => segment.includes(mark));
  const last = segments.findLastIndex((segment) => segment.includes(mark));
  const before = segments.slice(0, Math.max(first, 0)).join("/");
  const after = segments.slice(last + 1).join("/");
  const found: string[] = [];
  if (before !== "") found.push(...folders.map((folder) => joinPath(folder, escapePattern(before))));
  if (after !== "") found.push(joinPath(unknownFolder, escapePattern(after)));
  return found;
}
