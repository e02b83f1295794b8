import { quote } from "../../../core/src/wire/mod.ts";
import { doubt } from "./doubt.ts";
import { isDevice } from "./folders.ts";
import { literal, type Arg } from "./words.ts";

/** The options with which a program that runs code receives this code. */
export interface Interpreter {
  readonly language: string;
  /** Letters of options: those whose value is code, those with another value, and those with only an attached value. */
  readonly codes?: string;
  readonly values?: string;
  readonly attached?: string;
  /** The long names of the same options. */
  readonly longCodes?: string;
  readonly longValues?: string;
  /** Letters of options with which the code is elsewhere: in a module or a file. */
  readonly elsewhere?: string;
  readonly longElsewhere?: string;
  /** The first word, or the word at this index, is code. */
  readonly codeWord?: number;
  /** A word after which the next word is code: `deno eval`. */
  readonly verb?: string;
  /** Code may come on standard input. */
  readonly reads?: boolean;
  /** Words are not files of code, and options may follow them. */
  readonly client?: boolean;
}

const python: Interpreter = { language: "python", codes: "c", elsewhere: "m", values: "WX", reads: true };
const node: Interpreter = {
  language: "javascript",
  codes: "ep",
  longCodes: "eval print",
  values: "rC",
  longValues: "require import loader experimental-loader conditions env-file title",
  longElsewhere: "test run test-only",
  reads: true,
};
const ruby: Interpreter = { language: "ruby", codes: "e", values: "rIECF", attached: "0iKTWx", reads: true };
const perl: Interpreter = { language: "perl", codes: "eE", values: "I", attached: "0CDFiMmlVx", reads: true };
const psql: Interpreter = {
  language: "sql",
  codes: "c",
  longCodes: "command",
  elsewhere: "fl",
  longElsewhere: "file list",
  values: "dhpUvFPRTLo",
  longValues: "dbname host port username variable set field-separator pset record-separator output log-file",
  reads: true,
  client: true,
};
const mysql: Interpreter = {
  language: "sql",
  codes: "e",
  longCodes: "execute",
  values: "hPuDS",
  attached: "p",
  longValues: "host port user database socket",
  reads: true,
  client: true,
};
const awk: Interpreter = {
  language: "awk",
  codes: "e",
  longCodes: "source",
  values: "Fvi",
  elsewhere: "f",
  codeWord: 0,
};
const sed: Interpreter = {
  language: "sed",
  codes: "e",
  longCodes: "expression",
  attached: "il",
  elsewhere: "f",
  codeWord: 0,
  client: true,
};
const vim: Interpreter = { language: "vim", codes: "c", longCodes: "cmd", values: "SuUiTwW", client: true };

export const interpreters: ReadonlyMap<string, Interpreter> = new Map(
  Object.entries<Interpreter>({
    python,
    pypy: python,
    ipython: python,
    node,
    nodejs: node,
    bun: node,
    deno: { ...node, verb: "eval", reads: false },
    ruby,
    jruby: ruby,
    perl,
    php: { language: "php", codes: "rBRE", values: "cdz", elsewhere: "fFS", reads: true },
    lua: { language: "lua", codes: "e", values: "l", reads: true },
    luajit: { language: "lua", codes: "e", values: "lj", reads: true },
    rscript: { language: "r", codes: "e" },
    julia: { language: "julia", codes: "eE", longCodes: "eval print", values: "LpJtC", reads: true },
    osascript: { language: "applescript", codes: "e", values: "ls", reads: true },
    psql,
    mysql,
    mariadb: mysql,
    sqlite: { language: "sql", codeWord: 1, reads: true, client: true },
    awk,
    gawk: awk,
    mawk: awk,
    nawk: awk,
    sed,
    gsed: sed,
    vi: vim,
    vim,
    nvim: vim,
    ex: vim,
    view: vim,
    emacs: { language: "elisp", longCodes: "eval execute", longValues: "load funcall", client: true },
  }),
);

/** `python3.12` is read like `python`, `sqlite3` like `sqlite`, `Rscript` like `rscript`. */
export function interpreterOf(name: string): Interpreter | undefined {
  return interpreters.get(name) ?? interpreters.get(withoutVersion(name.toLowerCase()));
}

function withoutVersion(name: string): string {
  let end = name.length;
  while (/[0-9.]/.test(name.charAt(end - 1))) end -= 1;
  return name.slice(0, end);
}

export interface Given {
  readonly codes: readonly Arg[];
  /**
   * Is the code in a file or module, or does the program only print information? Otherwise the code is its standard
   * input.
   */
  readonly isElsewhere: boolean;
}

const said = new Set("--version --help -V -h -v -?".split(" "));

/** Finds the code for an interpreter. @throws {EvaluationError} if that depends on text that the shell inserts */
export function givenCode(name: string, interpreter: Interpreter, args: readonly Arg[]): Given {
  const codes: Arg[] = [];
  let isElsewhere = false;
  let words = 0;
  // After an unknown option a word may be its value, so the search for code continues.
  let isSure = true;
  if (args.some(({ text }) => interpreter.language === "perl" && /^-[mM].*[^\w:=,]/s.test(text)))
    doubt("code follows the name of a perl module");
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? literal("");
    if ((!arg.single && interpreter.client !== true) || arg.process)
      if (!isElsewhere && codes.length === 0)
        doubt(`the code that ${quote(name)} runs depends on the value of ${quote(arg.text)}`);
    if (!/^[-+]./.test(arg.text) || arg.text === "--" || (arg.text.startsWith("+") && interpreter.language !== "vim")) {
      if (arg.text === interpreter.verb && words === 0) codes.push(args[at + 1] ?? literal(""));
      // `sed -i '' code`: on some systems `-i` needs the empty word, on others `-i` alone means the same.
      if (arg.text === "" || arg.text === "--") continue;
      if (interpreter.codeWord === words && codes.length === 0 && !isElsewhere) codes.push(arg);
      words += 1;
      if (interpreter.client === true) continue;
      if (codes.length === 0 && interpreter.codeWord === undefined && arg.text !== "-") {
        if (isDevice(arg.text))
          doubt(`${quote(name)} runs the content of ${quote(arg.text)}, which is known only when it runs`);
        isElsewhere = true;
      }
      if (isSure) break;
      continue;
    }
    if (args.length === 1 && said.has(arg.text)) return { codes, isElsewhere: true };
    const option = readOption(interpreter, arg, args[at + 1]);
    if (option.code !== undefined) codes.push(option.code);
    isElsewhere ||= option.isElsewhere;
    isSure &&= option.isKnown;
    at += option.skips;
    // Everything after the code or the module belongs to that code: `python -c code -c other`.
    if (interpreter.language === "python" && (option.code !== undefined || option.isElsewhere)) break;
  }
  return { codes, isElsewhere: isElsewhere || interpreter.reads !== true };
}

interface Option {
  readonly code?: Arg;
  readonly isElsewhere: boolean;
  readonly isKnown: boolean;
  readonly skips: number;
}

function readOption(interpreter: Interpreter, arg: Arg, next: Arg | undefined): Option {
  const { text } = arg;
  const value = { ...(next ?? literal("")) };
  if (text.startsWith("+"))
    return { code: { ...arg, text: text.slice(1) }, isElsewhere: false, isKnown: true, skips: 0 };
  if (text.startsWith("--")) {
    const [name = "", ...rest] = text.slice(2).split("=");
    const attached = rest.length > 0 ? { ...arg, text: rest.join("=") } : undefined;
    const skips = attached === undefined ? 1 : 0;
    if (matches(interpreter.longCodes, name))
      return { code: attached ?? value, isElsewhere: false, isKnown: true, skips };
    if (matches(interpreter.longElsewhere, name)) {
      checkCodeFile(attached ?? value);
      return { isElsewhere: true, isKnown: true, skips: 0 };
    }
    if (matches(interpreter.longValues, name)) return { isElsewhere: false, isKnown: true, skips };
    return { isElsewhere: false, isKnown: attached !== undefined, skips: 0 };
  }
  for (let at = 1; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    const attached = at + 1 < text.length ? { ...arg, text: text.slice(at + 1) } : undefined;
    const skips = attached === undefined ? 1 : 0;
    // `node -pe code`: both letters take code.
    if (interpreter.codes?.includes(letter) === true && !isCodes(interpreter, attached?.text))
      return { code: attached ?? value, isElsewhere: false, isKnown: true, skips };
    if (interpreter.elsewhere?.includes(letter) === true) {
      checkCodeFile(attached ?? value);
      return { isElsewhere: true, isKnown: true, skips };
    }
    if (interpreter.values?.includes(letter) === true) return { isElsewhere: false, isKnown: true, skips };
    if (interpreter.attached?.includes(letter) === true) {
      // `perl -lane code`, `perl -i -pe code`, `sed -ie`: the attached text may be further letters.
      if (!/[A-Za-z]$/.test(text) || interpreter.language === "sed")
        return { isElsewhere: false, isKnown: true, skips: 0 };
    }
  }
  return { isElsewhere: false, isKnown: true, skips: 0 };
}

/** @throws {EvaluationError} if the code is not in a file */
function checkCodeFile({ text }: Arg): void {
  if (text === "-" || isDevice(text)) doubt(`the code that is read from ${quote(text)} is known only when it runs`);
}

function isCodes({ codes, language }: Interpreter, text: string | undefined): boolean {
  return (
    language === "javascript" &&
    text !== undefined &&
    Array.from(text).every((letter) => codes?.includes(letter) === true)
  );
}

/** Long options may be abbreviated if the rest is unambiguous. */
function matches(list: string | undefined, name: string): boolean {
  return (list ?? "").split(" ").some((option) => option === name || (name.length > 2 && option.startsWith(name)));
}
