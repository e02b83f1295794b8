import { quote } from "../../../core/src/wire/mod.ts";
import { doubt } from "./doubt.ts";
import { isDevice } from "./folders.ts";
import { isIn, literal, optionsIn, type Arg } from "./words.ts";

/** The options with which a program that runs code receives this code. Spaces separate the options in a list. */
export interface Interpreter {
  readonly language: string;
  /** Options whose value is code, those with another value, and those with only an attached value. */
  readonly codes?: string;
  readonly values?: string;
  readonly attached?: string;
  /** Options with which the code is elsewhere: in a module or a file. */
  readonly elsewhere?: string;
  /** The first word, or the word at this index, is code. */
  readonly codeWord?: number;
  /** A word after which the next word is code: `deno eval`. */
  readonly verb?: string;
  /** Code may come on standard input. */
  readonly reads?: boolean;
  /** Words are not files of code, and options may follow them. */
  readonly client?: boolean;
}

const python: Interpreter = { language: "python", codes: "-c", elsewhere: "-m", values: "-W -X", reads: true };
const node: Interpreter = {
  language: "javascript",
  codes: "-e -p --eval --print",
  values: "-r -C --require --import --loader --experimental-loader --conditions --env-file --title",
  elsewhere: "--test --run --test-only",
  reads: true,
};
const ruby: Interpreter = {
  language: "ruby",
  codes: "-e",
  values: "-r -I -E -C -F",
  attached: "-0 -i -K -T -W -x",
  reads: true,
};
const perl: Interpreter = {
  language: "perl",
  codes: "-e -E",
  values: "-I",
  attached: "-0 -C -D -F -i -M -m -l -V -x",
  reads: true,
};
const psql: Interpreter = {
  language: "sql",
  codes: "-c --command",
  elsewhere: "-f -l --file --list",
  values:
    "-d -h -p -U -v -F -P -R -T -L -o --dbname --host --port --username --variable --set --field-separator --pset " +
    "--record-separator --output --log-file",
  reads: true,
  client: true,
};
const mysql: Interpreter = {
  language: "sql",
  codes: "-e --execute",
  values: "-h -P -u -D -S --host --port --user --database --socket",
  attached: "-p",
  reads: true,
  client: true,
};
const awk: Interpreter = { language: "awk", codes: "-e --source", values: "-F -v -i", elsewhere: "-f", codeWord: 0 };
const sed: Interpreter = {
  language: "sed",
  codes: "-e --expression",
  attached: "-i -l",
  elsewhere: "-f",
  codeWord: 0,
  client: true,
};
const vim: Interpreter = { language: "vim", codes: "-c --cmd", values: "-S -u -U -i -T -w -W", client: true };

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
    php: { language: "php", codes: "-r -B -R -E", values: "-c -d -z", elsewhere: "-f -F -S", reads: true },
    lua: { language: "lua", codes: "-e", values: "-l", reads: true },
    luajit: { language: "lua", codes: "-e", values: "-l -j", reads: true },
    rscript: { language: "r", codes: "-e" },
    julia: { language: "julia", codes: "-e -E --eval --print", values: "-L -p -J -t -C", reads: true },
    osascript: { language: "applescript", codes: "-e", values: "-l -s", reads: true },
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
    emacs: { language: "elisp", codes: "--eval --execute", values: "--load --funcall", client: true },
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

export interface InterpreterCode {
  readonly codes: readonly Arg[];
  /**
   * Is the code in a file or module, or does the program only print information? Otherwise the code is its standard
   * input.
   */
  readonly isElsewhere: boolean;
}

const said = new Set("--version --help -V -h -v -?".split(" "));

/** Finds the code for an interpreter. @throws {EvaluationError} if that depends on text that the shell inserts */
export function findCode(name: string, interpreter: Interpreter, args: readonly Arg[]): InterpreterCode {
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
    isElsewhere ||= option.isElsewhere === true;
    isSure &&= option.isUnknown !== true;
    if (option.takesNext === true) at += 1;
    // Everything after the code or the module belongs to that code: `python -c code -c other`.
    if (interpreter.language === "python" && (option.code !== undefined || option.isElsewhere === true)) break;
  }
  return { codes, isElsewhere: isElsewhere || interpreter.reads !== true };
}

interface InterpreterOption {
  readonly code?: Arg;
  readonly isElsewhere?: boolean;
  readonly isUnknown?: boolean;
  /** Its value is the next word. */
  readonly takesNext?: boolean;
}

function readOption(interpreter: Interpreter, arg: Arg, next: Arg | undefined): InterpreterOption {
  const { text } = arg;
  if (text.startsWith("+")) return { code: { ...arg, text: text.slice(1) } };
  const isLong = text.startsWith("--");
  for (const [option, attached] of optionsIn(text)) {
    const takesNext = attached === undefined;
    const value = takesNext ? (next ?? literal("")) : { ...arg, text: attached };
    // `node -pe code`: both letters take code.
    const isMore =
      interpreter.language === "javascript" && !isLong && !takesNext && isLetters(attached, interpreter.codes);
    if (isAmong(interpreter.codes, option) && !isMore) return { code: value, takesNext };
    if (isAmong(interpreter.elsewhere, option)) {
      checkCodeFile(value);
      return { isElsewhere: true, takesNext: takesNext && !isLong };
    }
    if (isAmong(interpreter.values, option)) return { takesNext };
    if (isLong) return { isUnknown: takesNext };
    // `perl -lane code`, `perl -i -pe code`, `sed -ie`: the attached text may be further letters.
    const mayGoOn = /[A-Za-z]$/.test(text) && interpreter.language !== "sed";
    if (isIn(interpreter.attached, option) && !mayGoOn) return {};
  }
  return {};
}

/** @throws {EvaluationError} if the code is not in a file */
function checkCodeFile({ text }: Arg): void {
  if (text === "-" || isDevice(text)) doubt(`the code that is read from ${quote(text)} is known only when it runs`);
}

/** Is each of the letters one of these options? */
function isLetters(letters: string, options: string | undefined): boolean {
  return Array.from(letters).every((letter) => isIn(options, `-${letter}`));
}

/** Is the option one of these? Long options may be abbreviated if the rest is unambiguous. */
function isAmong(options: string | undefined, option: string): boolean {
  return (
    isIn(options, option) || (option.length > 4 && options?.split(" ").some((each) => each.startsWith(option)) === true)
  );
}
