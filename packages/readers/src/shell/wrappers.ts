import { quote } from "../../../core/src/wire/mod.ts";
import { checkValue, doubt } from "./doubt.ts";
import { literal, type Arg } from "./words.ts";

/** The arguments of a program that runs other programs. An option that is not listed here is refused. */
export interface Wrapper {
  /** Letters of options without a value, with a value, and with an optional attached value. */
  readonly flags?: string;
  readonly values?: string;
  readonly attached?: string;
  /** Long options: without a value, with one, and with an optional value that `=` attaches. */
  readonly long?: string;
  readonly longValues?: string;
  readonly longAttached?: string;
  /** Options whose value is code for a shell, and options with which nothing runs. */
  readonly codes?: string;
  readonly queries?: string;
  /** Words before the command: a duration, a host, a file. */
  readonly operands?: number;
  /** `NAME=value` may precede the command. */
  readonly assigns?: boolean;
  /** The words are joined by spaces, and a shell reads them. */
  readonly joined?: boolean;
  /** Words are added to the command at run time: at the value of one of these options, or at its end. */
  readonly places?: string;
  /** A lone `-` is an option. */
  readonly dash?: boolean;
  /** Without a command it runs a shell, which reads commands from standard input. */
  readonly shell?: boolean;
}

export const wrappers: ReadonlyMap<string, Wrapper> = new Map(
  Object.entries<Wrapper>({
    sudo: {
      flags: "AbEHkKnPSBiNs",
      values: "CDghprRtTuU",
      long: "askpass background preserve-env set-home reset-timestamp non-interactive preserve-groups stdin bell login shell",
      longValues: "close-from chdir group host prompt chroot role type command-timeout user other-user",
      longAttached: "preserve-env",
      queries: "-l -v -V -h --list --validate --version --help",
      assigns: true,
      shell: true,
    },
    doas: { flags: "nsL", values: "aCu", shell: true },
    pkexec: { long: "disable-internal-agent keep-cwd", longValues: "user", queries: "--version --help" },
    env: {
      flags: "i0v",
      values: "uCa",
      long: "ignore-environment null debug",
      longValues: "unset chdir argv0",
      longAttached: "block-signal default-signal ignore-signal",
      codes: "-S --split-string",
      dash: true,
      queries: "--help --version",
      assigns: true,
    },
    nohup: { queries: "--help --version" },
    setsid: { flags: "cfw", long: "ctty fork wait", queries: "--help --version -h -V" },
    time: {
      flags: "apqvl",
      values: "fo",
      long: "append portability quiet verbose",
      longValues: "format output",
      queries: "--help --version -V",
    },
    nice: { values: "n", longValues: "adjustment", attached: "0123456789", queries: "--help --version" },
    ionice: {
      flags: "t",
      values: "cn",
      long: "ignore",
      longValues: "class classdata",
      queries: "-p -P -u --pid --help",
    },
    chrt: { flags: "abdfiomrvR", values: "TPD", operands: 1, queries: "-p --pid -m --max --help" },
    taskset: { flags: "ac", operands: 1, long: "all-tasks cpu-list", queries: "-p --pid --help --version" },
    timeout: {
      flags: "vfp",
      values: "ks",
      long: "foreground preserve-status verbose",
      longValues: "kill-after signal",
      operands: 1,
      queries: "--help --version",
    },
    gtimeout: {
      flags: "vfp",
      values: "ks",
      long: "foreground preserve-status",
      longValues: "kill-after signal",
      operands: 1,
    },
    stdbuf: { values: "ioe", longValues: "input output error", queries: "--help --version" },
    unbuffer: { flags: "p" },
    command: { flags: "p", queries: "-v -V" },
    builtin: {},
    exec: { flags: "cl", values: "a" },
    busybox: { queries: "--help --list --install" },
    toybox: { queries: "--help --list" },
    xargs: {
      flags: "0oprtx",
      values: "adEILnPsJRS",
      attached: "eil",
      long: "null open-tty interactive no-run-if-empty verbose exit show-limits",
      longValues: "arg-file delimiter max-lines max-args max-procs max-chars process-slot-var",
      longAttached: "eof replace max-lines",
      queries: "--help --version",
      places: "-I -J -i --replace",
    },
    watch: {
      flags: "bcdegtxrpwC",
      values: "nqs",
      long: "beep color no-color differences errexit chgexit no-title exec precise no-rerun no-wrap",
      longValues: "interval equexit",
      queries: "--help --version -h -v",
      joined: true,
    },
    ssh: {
      flags: "46AaCfgKkMNnqsTtvXxYy",
      values: "BbcDEeFIiJLlmOPpRSWw",
      operands: 1,
      joined: true,
      queries: "-G -Q -V -O -N -W",
      shell: true,
    },
    strace: { flags: "cCdfFhiknqrtTuvVwxyYzZ", values: "aeEoOpPsSUbXI", queries: "-V -h" },
    ltrace: { flags: "bcCfiLrStTV", values: "aAeElnopsuxX", queries: "-V -h" },
    catchsegv: {},
    noglob: {},
    nocorrect: {},
    "-": {},
    chroot: {
      longValues: "groups userspec",
      long: "skip-chdir",
      operands: 1,
      shell: true,
      queries: "--help --version",
    },
    unshare: {
      shell: true,
      flags: "muinpUCTrfc",
      long: "mount uts ipc net pid user map-root-user fork",
      longAttached: "mount-proc",
    },
    flock: {
      flags: "senuoFx",
      values: "wE",
      long: "shared exclusive nonblock unlock close no-fork verbose",
      longValues: "wait timeout conflict-exit-code",
      operands: 1,
      codes: "-c --command",
      queries: "--help --version",
    },
    su: {
      dash: true,
      shell: true,
      operands: 1,
      flags: "lmpP",
      values: "gGsw",
      long: "login preserve-environment",
      longValues: "group shell",
      codes: "-c --command",
    },
    runuser: {
      dash: true,
      shell: true,
      operands: 1,
      flags: "lmpP",
      values: "gGsw",
      longValues: "group shell",
      codes: "-c --command",
    },
    script: {
      shell: true,
      operands: 1,
      flags: "aefqt",
      values: "IOBTEmo",
      long: "append flush quiet return",
      codes: "-c --command",
    },
    caffeinate: { flags: "dimsu", values: "tw" },
    arch: { flags: "x", long: "x86_64 arm64" },
    rlwrap: { flags: "acinrRvw", values: "bCDfHlOpsSz" },
    fakeroot: { values: "lsibf", flags: "u", queries: "--help --version -h -v" },
    "xvfb-run": {
      flags: "al",
      values: "efnpsw",
      long: "auto-servernum",
      longValues: "server-args server-num error-file",
    },
  }),
);

/** Two-word forms: `uv run pytest`. Options between them and the command are refused. */
export const runners: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    uv: ["run"],
    poetry: ["run"],
    pipenv: ["run"],
    rye: ["run"],
    hatch: ["run"],
    pdm: ["run"],
    bundle: ["exec"],
    pnpm: ["exec"],
    asdf: ["exec"],
    rbenv: ["exec"],
    pyenv: ["exec"],
  }),
);

export interface Unwrapped {
  readonly codes: readonly Arg[];
  /** The command after the wrapper; empty if there is none. */
  readonly command: readonly Arg[];
  readonly operands: readonly Arg[];
  /** The program only prints information: nothing runs. */
  readonly isQuery: boolean;
  readonly variables: readonly string[];
  /**
   * The placeholder in the command's words that the wrapper replaces at run time. Undefined if the wrapper appends words
   * to the command, or adds none.
   */
  readonly placeholder: string | undefined;
}

/** Finds the command after a wrapper. @throws {EvaluationError} for an unknown option */
export function unwrap(name: string, wrapper: Wrapper, args: readonly Arg[]): Unwrapped {
  const [codes, variables, operands]: [Arg[], string[], Arg[]] = [[], [], []];
  let isQuery = false;
  let placeholder: string | undefined;
  let at = 0;
  while (at < args.length) {
    const arg = args[at] ?? literal("");
    const { text } = arg;
    if (!arg.single && (/^-./.test(text) || text.includes("=")))
      doubt(`${quote(text)} may become several words; put it in double quotes`);
    if (text === "--" && arg.known) {
      at += 1;
      if (wrapper.assigns !== true) break;
    } else if (text === "-" && wrapper.dash === true) at += 1;
    else if (/^-./.test(text)) {
      const option = readOption(name, wrapper, arg, args[at + 1]);
      at += option.words;
      if (option.code !== undefined) codes.push(option.code);
      placeholder = option.placeholder ?? placeholder;
      isQuery ||= option.isQuery;
    } else if (wrapper.assigns === true && /^[A-Za-z_][A-Za-z0-9_]*=/.test(text)) {
      variables.push(text.slice(0, text.indexOf("=")));
      checkValue(text.slice(text.indexOf("=") + 1));
      at += 1;
    } else if (wrapper.assigns === true && text.includes("="))
      doubt(`${quote(text)} sets a variable without a plain name`);
    else if (operands.length < (wrapper.operands ?? 0)) {
      if (!arg.single) doubt(`the command that ${quote(name)} runs depends on the value of ${quote(text)}`);
      operands.push(arg);
      at += 1;
    } else break;
  }
  while (operands.length < (wrapper.operands ?? 0) && at < args.length) operands.push(args[at++] ?? literal(""));
  return { codes, command: args.slice(at), operands, isQuery, variables, placeholder };
}

interface Option {
  readonly words: number;
  readonly code?: Arg;
  readonly placeholder?: string;
  readonly isQuery: boolean;
}

function readOption(name: string, wrapper: Wrapper, arg: Arg, next: Arg | undefined): Option {
  if (!arg.text.startsWith("--")) return readShort(name, wrapper, arg, next);
  const found = readLong(name, wrapper, arg, next);
  const [option, value] = split(arg.text);
  return isIn(wrapper.places, option) ? { ...found, placeholder: placeholderOf(value) } : found;
}

function placeholderOf(value: string | undefined): string {
  return value === undefined || value === "" ? "{}" : value;
}

function isIn(list: string | undefined, option: string): boolean {
  return (list ?? "").split(" ").includes(option);
}

function readLong(name: string, wrapper: Wrapper, arg: Arg, next: Arg | undefined): Option {
  const [option, value] = split(arg.text.slice(2));
  if (!arg.known && value === undefined) unknown(name, arg.text);
  if (isIn(wrapper.queries, `--${option}`)) return { words: 1, isQuery: true };
  if (isIn(wrapper.codes, `--${option}`)) return code(arg, value, next);
  if (value === undefined && isIn(wrapper.long, option)) return { words: 1, isQuery: false };
  if (isIn(wrapper.longAttached, option)) return { words: 1, isQuery: false };
  if (isIn(wrapper.longValues, option)) return { words: valueWords(name, value, next), isQuery: false };
  return unknown(name, arg.text);
}

function readShort(name: string, wrapper: Wrapper, arg: Arg, next: Arg | undefined): Option {
  const { text } = arg;
  let isQuery = false;
  for (let at = 1; at < text.length; at += 1) {
    const letter = text[at] ?? "";
    const rest = at + 1 < text.length ? text.slice(at + 1) : undefined;
    if (isIn(wrapper.codes, `-${letter}`)) return code(arg, rest, next);
    if (isIn(wrapper.queries, `-${letter}`)) isQuery = true;
    const isPlace = isIn(wrapper.places, `-${letter}`);
    if (wrapper.attached?.includes(letter) === true)
      return { words: 1, isQuery, ...(isPlace && { placeholder: placeholderOf(rest) }) };
    if (wrapper.values?.includes(letter) === true)
      return {
        words: valueWords(name, rest, next),
        isQuery,
        ...(isPlace && { placeholder: placeholderOf(rest ?? next?.text) }),
      };
    if (!isQuery && (wrapper.flags?.includes(letter) !== true || !arg.known)) return unknown(name, text);
  }
  return { words: 1, isQuery };
}

function valueWords(name: string, attached: string | undefined, next: Arg | undefined): number {
  if (attached !== undefined) return 1;
  if (next?.single === false) doubt(`the command that ${quote(name)} runs depends on the value of ${quote(next.text)}`);
  return 2;
}

function code(arg: Arg, attached: string | undefined, next: Arg | undefined): Option {
  if (attached !== undefined) return { words: 1, code: { ...arg, text: attached }, isQuery: false };
  return { words: 2, code: next ?? literal(""), isQuery: false };
}

function split(option: string): readonly [string, string | undefined] {
  const at = option.indexOf("=");
  return at < 0 ? [option, undefined] : [option.slice(0, at), option.slice(at + 1)];
}

function unknown(name: string, option: string): never {
  return doubt(`${quote(name)} with ${quote(option)} is not known here`);
}
