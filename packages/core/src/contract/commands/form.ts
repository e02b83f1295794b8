import type { Verdict } from "../../wire/mod.ts";
import type { Span } from "../text/diagnostic.ts";
import type { YamlNode, YamlScalar } from "../text/yaml.ts";

/**
 * What a command does: it reads, writes, runs code of the workspace, contacts another machine, or destroys what may exist
 * nowhere else.
 */
export const effects = ["reads", "writes", "runs", "sends", "destroys"] as const;
export type CommandEffect = (typeof effects)[number];

/** The kinds of words and option values, each with its meaning for people. */
export const kinds = {
  FILE: "a file by its name",
  PATHSPEC: "a file, or a pattern of files that git reads, without `:` at its start",
  PATH: "a file or folder by its name, without a pattern",
  LEAF: "a path whose last name has an ending, such as `src/a.ts`, so it is hardly a folder",
  LOCAL: "`.`, or a path that starts with `./`; other words may be packages on other machines",
  FOLDER: "a folder by its name",
  TREE: "a file, or a folder with everything below it",
  FORCED: "a branch after `+` or `:`, which git overwrites or deletes",
  GENERATED: "a file or folder of the list `generated`",
  ROOT: "a root, the home folder, the start folder, a folder above it, or a word that is known only when it runs",
  INCLUDE: "a pattern of file names",
  ENDING: "the ending of names of code, such as `ts`",
  PORT: "a port, such as `:3000` or `tcp:80`",
  TEXT: "a text that the program does not open",
  PATTERN: "a pattern to look for, which may begin with `@`",
  NUMBER: "a number, with a unit at most",
  NAME: "a name of letters, digits, `.`, `_` and `-`",
  PACKAGE: "a package by its name or folder, such as `@types/node` or `./packages/web`",
  TASK: "a task that builds, tests or checks by its name, such as `test:unit`",
  REF: "a branch, tag or commit of git",
  OBJECT: "a commit of git and a file in it, such as `HEAD:src/a.ts`",
  URL: "an address with `https://` or `http://`",
  SED: "a script of `sed` that runs and writes nothing",
  AWK: "a program of `awk` that runs and writes nothing, and opens no other file",
  JQ: "a filter of `jq` that does not read the environment or other files",
  COMMAND: "a command, which is judged too",
  ARGS: "all words after it, options too",
  ANY: "any word, for `echo` and `printf`",
} as const;
export type Kind = keyof typeof kinds;

/**
 * What a command does with the file that a word names. `lists` shows names only. `copies` and `moves` read or write it, and
 * write a file of the same name below the last word. `enters` makes it the folder of the words after it.
 */
export const roles = ["reads", "lists", "writes", "copies", "moves", "enters"] as const;
export type FileRole = (typeof roles)[number];

/** Kinds whose words name files, so they have a role. */
export const fileKinds: ReadonlySet<Kind> = new Set([
  "FILE",
  "PATHSPEC",
  "PATH",
  "LEAF",
  "LOCAL",
  "FOLDER",
  "TREE",
  "GENERATED",
  "OBJECT",
]);

/** A word, or the value of an option: of a kind, or one of some texts, or either. */
export interface WordShape {
  readonly kind: Kind | undefined;
  readonly texts: readonly string[];
  readonly role: FileRole | undefined;
}

/** A position of a command's words. */
export interface WordPosition extends WordShape {
  readonly isOptional: boolean;
  readonly isRepeated: boolean;
  /** The word that counts if there is none. */
  readonly fallback: string | undefined;
}

export interface FormOption {
  /** `-n`, `--lines`; `-NUMBER` is any number of digits. */
  readonly names: readonly string[];
  readonly value: WordShape | undefined;
  /** Can the value be left out? Then it is attached: `--color=auto`. */
  readonly isOptional: boolean;
}

/** The condition under which a form that is stricter than ALLOW does not apply. */
export interface FormException {
  readonly options: readonly FormOption[];
  readonly words: readonly WordPosition[];
}

/** One entry of the table of commands. */
export interface Form {
  /** The pack or contract that has it. */
  readonly source: string;
  readonly span: Span;
  /** The program and the words after it, such as `git`, `stash`, `list`. */
  readonly run: readonly string[];
  readonly options: readonly FormOption[];
  readonly words: readonly WordPosition[];
  /** One of these options is there, or the form does not apply. */
  readonly needs: readonly string[];
  /** With one of these options, also abbreviated, a form with `ARGS` does not apply. */
  readonly refuses: readonly FormOption[];
  /** Any of these options is enough. */
  readonly marked: readonly FormOption[];
  /** Any word of this kind is enough. */
  readonly any: WordShape | undefined;
  readonly unless: FormException | undefined;
  readonly does: ReadonlySet<CommandEffect>;
  /** It changes files that no word names. */
  readonly isUnseen: boolean;
  /**
   * May a pattern begin with `*`: any, or those of code such as `*.ts`? A file that it matches may have the name of an option,
   * so no option may do harm.
   */
  readonly starting: "any" | "code" | undefined;
  /** Does it print names of files and nothing else: always, or with one of these options? */
  readonly prints: boolean | readonly string[];
  readonly verdict: Verdict;
  readonly reason: string | undefined;
  readonly examples: readonly string[];
  readonly counterexamples: readonly string[];
}

/** The words with which a form is named: `git push --force`. */
export function nameOfForm({ run, marked }: Pick<Form, "run" | "marked">): string {
  const [option] = marked;
  return [...run, ...(option === undefined ? [] : [option.names[0] ?? ""])].join(" ");
}

/** How a program reads its options. */
export const optionStyles = ["gnu", "single", "bare", "posix", "words"] as const;
export type OptionStyle = (typeof optionStyles)[number];

/** What holds for all forms of a program. */
export interface ProgramShape {
  /**
   * `gnu`: `-rf` is `-r` and `-f`. `single`: options are whole words, such as `-name` and `-count=1`. `bare`: the first word
   * is options without a dash, as for `tar czf`. `posix`: options end at the first word. `words`: an option that
   * is not listed is a word, as for `echo`.
   */
  readonly style: OptionStyle;
  /** Options before the words of `run` that follow the program. */
  readonly options: readonly FormOption[];
  /** Options at any position. */
  readonly everywhere: readonly FormOption[];
}

/** A program as a pack describes it, and where. */
export interface WrittenProgram extends ProgramShape {
  readonly span: Span;
}

/** The table of commands of one contract. */
export interface CommandTable {
  readonly forms: readonly Form[];
  readonly programs: ReadonlyMap<string, ProgramShape>;
  /** Folders that a build makes again. */
  readonly generated: readonly string[];
  /** Variables that a command may set. */
  readonly variables: ReadonlySet<string>;
  /** The stricter forms of its packs that the contract leaves out. */
  readonly weakened: readonly WeakenedForm[];
}

/** A stricter form that a contract leaves out of a pack, by its name, and why. */
export interface WeakenedForm {
  readonly form: string;
  readonly because: string;
}

/** A pack as written. */
export interface PackDocument extends FormsDocument {
  /** Limits of each contract that takes the pack. */
  readonly limits: ReadonlyMap<string, YamlNode>;
}

/** The parts that a pack and a contract's `commands` share. */
export interface FormsDocument {
  readonly name: string;
  readonly forms: readonly Form[];
  readonly programs: ReadonlyMap<string, WrittenProgram>;
  readonly generated: readonly string[];
  readonly variables: readonly string[];
}

/** The `commands` of a contract as written. */
export interface CommandsDocument {
  /** The files of the packs that it takes. */
  readonly from: readonly YamlScalar[];
  /** Names of forms that are ALLOW, and are left out. */
  readonly without: readonly YamlScalar[];
  /** Names of stricter forms that are left out. */
  readonly weaken: readonly { readonly form: YamlScalar; readonly because: string }[];
  readonly own: FormsDocument;
}
