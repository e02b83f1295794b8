import { quote } from "../../../core/src/wire/mod.ts";
import { checkValue, doubt } from "./doubt.ts";
import { isIn, literal, optionsIn, type Arg } from "./words.ts";

/** The arguments of a program that runs other programs. An option that is not listed here is refused. */
export interface Wrapper {
  /** Options as getopt(1) lists them: `f` has no value, `n:` has one, `e::` has an optional one, which is attached. */
  readonly short?: string;
  readonly long?: string;
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
  readonly placeholderOptions?: string;
  /** A lone `-` is an option. */
  readonly dash?: boolean;
  /** Without a command it runs a shell, which reads commands from standard input. */
  readonly shell?: boolean;
}

const uvRun =
  "quiet verbose frozen locked no-sync offline isolated module dev all-extras all-groups no-dev no-project active exact python: " +
  "extra: group: only-group: no-group: package: with: with-editable: with-requirements: env-file: directory: project:";

export const wrappers: ReadonlyMap<string, Wrapper> = new Map(
  Object.entries<Wrapper>({
    sudo: {
      short: "AbEHkKnPSBiNsC:D:g:h:p:r:R:t:T:u:U:",
      long:
        "askpass background set-home reset-timestamp non-interactive preserve-groups stdin bell login shell " +
        "close-from: chdir: group: host: prompt: chroot: role: type: command-timeout: user: other-user: preserve-env::",
      queries: "-l -v -V -h --list --validate --version --help",
      assigns: true,
      shell: true,
    },
    doas: { short: "nsLa:C:u:", shell: true },
    pkexec: { long: "disable-internal-agent keep-cwd user:", queries: "--version --help" },
    env: {
      short: "i0vu:C:a:",
      long: "ignore-environment null debug unset: chdir: argv0: block-signal:: default-signal:: ignore-signal::",
      codes: "-S --split-string",
      dash: true,
      queries: "--help --version",
      assigns: true,
    },
    nohup: { queries: "--help --version" },
    setsid: { short: "cfw", long: "ctty fork wait", queries: "--help --version -h -V" },
    time: {
      short: "apqvlf:o:",
      long: "append portability quiet verbose format: output:",
      queries: "--help --version -V",
    },
    nice: { short: "n:0::1::2::3::4::5::6::7::8::9::", long: "adjustment:", queries: "--help --version" },
    ionice: { short: "tc:n:", long: "ignore class: classdata:", queries: "-p -P -u --pid --help" },
    chrt: { short: "abdfiomrvRT:P:D:", operands: 1, queries: "-p --pid -m --max --help" },
    taskset: { short: "ac", long: "all-tasks cpu-list", operands: 1, queries: "-p --pid --help --version" },
    timeout: {
      short: "vfpk:s:",
      long: "foreground preserve-status verbose kill-after: signal:",
      operands: 1,
      queries: "--help --version",
    },
    gtimeout: { short: "vfpk:s:", long: "foreground preserve-status kill-after: signal:", operands: 1 },
    stdbuf: { short: "i:o:e:", long: "input: output: error:", queries: "--help --version" },
    unbuffer: { short: "p" },
    command: { short: "p", queries: "-v -V" },
    builtin: {},
    exec: { short: "cla:" },
    busybox: { queries: "--help --list --install" },
    toybox: { queries: "--help --list" },
    xargs: {
      short: "0oprtxa:d:E:I:L:n:P:s:J:R:S:e::i::l::",
      long:
        "null open-tty interactive no-run-if-empty verbose exit show-limits " +
        "arg-file: delimiter: max-args: max-procs: max-chars: process-slot-var: eof:: replace:: max-lines::",
      queries: "--help --version",
      placeholderOptions: "-I -J -i --replace",
    },
    watch: {
      short: "bcdegtxrpwCn:q:s:",
      long: "beep color no-color differences errexit chgexit no-title exec precise no-rerun no-wrap interval: equexit:",
      queries: "--help --version -h -v",
      joined: true,
    },
    ssh: {
      short: "46AaCfgKkMNnqsTtvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:P:p:R:S:W:w:",
      operands: 1,
      joined: true,
      queries: "-G -Q -V -O -N -W",
      shell: true,
    },
    strace: { short: "cCdfFhiknqrtTuvVwxyYzZa:e:E:o:O:p:P:s:S:U:b:X:I:", queries: "-V -h" },
    ltrace: { short: "bcCfiLrStTVa:A:e:E:l:n:o:p:s:u:x:X:", queries: "-V -h" },
    catchsegv: {},
    noglob: {},
    nocorrect: {},
    "-": {},
    chroot: { long: "skip-chdir groups: userspec:", operands: 1, shell: true, queries: "--help --version" },
    unshare: { short: "muinpUCTrfc", long: "mount uts ipc net pid user map-root-user fork mount-proc::", shell: true },
    flock: {
      short: "senuoFxw:E:",
      long: "shared exclusive nonblock unlock close no-fork verbose wait: timeout: conflict-exit-code:",
      operands: 1,
      codes: "-c --command",
      queries: "--help --version",
    },
    su: {
      short: "lmpPg:G:s:w:",
      long: "login preserve-environment group: shell:",
      dash: true,
      shell: true,
      operands: 1,
      codes: "-c --command",
    },
    runuser: {
      short: "lmpPg:G:s:w:",
      long: "group: shell:",
      dash: true,
      shell: true,
      operands: 1,
      codes: "-c --command",
    },
    script: {
      short: "aefqtI:O:B:T:E:m:o:",
      long: "append flush quiet return",
      shell: true,
      operands: 1,
      codes: "-c --command",
    },
    caffeinate: { short: "dimsut:w:" },
    arch: { short: "x", long: "x86_64 arm64" },
    rlwrap: { short: "acinrRvwb:C:D:f:H:l:O:p:s:S:z:" },
    fakeroot: { short: "ul:s:i:b:f:", queries: "--help --version -h -v" },
    "xvfb-run": { short: "ale:f:n:p:s:w:", long: "auto-servernum server-args: server-num: error-file:" },
  }),
);

interface RunningVerb {
  readonly verb: string;
  readonly options?: Wrapper;
}

/** Two-word forms: `uv run pytest`. Options between them and the command are refused, except those that are listed. */
export const runners: ReadonlyMap<string, RunningVerb> = new Map<string, RunningVerb>([
  ["uv", { verb: "run", options: { short: "qvmp:", long: uvRun } }],
  ...["poetry", "pipenv", "rye", "hatch", "pdm"].map((name) => [name, { verb: "run" }] as const),
  ...["bundle", "pnpm", "asdf", "rbenv", "pyenv"].map((name) => [name, { verb: "exec" }] as const),
]);

export interface WrappedCommand {
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
export function unwrap(name: string, wrapper: Wrapper, args: readonly Arg[]): WrappedCommand {
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

interface WrapperOption {
  readonly words: number;
  readonly code?: Arg;
  readonly placeholder?: string;
  readonly isQuery: boolean;
}

function readOption(name: string, wrapper: Wrapper, arg: Arg, next: Arg | undefined): WrapperOption {
  const { text, known } = arg;
  const isLong = text.startsWith("--");
  let isQuery = false;
  for (const [option, value] of optionsIn(text)) {
    if (isLong && !known && value === undefined) return unknown(name, text);
    if (isIn(wrapper.codes, option))
      return value === undefined
        ? { words: 2, code: next ?? literal(""), isQuery: false }
        : { words: 1, code: { ...arg, text: value }, isQuery: false };
    isQuery ||= isIn(wrapper.queries, option);
    if (isLong && isQuery) break;
    const colons = colonsAfter(wrapper, option);
    if (colons === ":" || colons === "::") {
      const isNext = colons === ":" && value === undefined;
      if (isNext && next?.single === false)
        doubt(`the command that ${quote(name)} runs depends on the value of ${quote(next.text)}`);
      const placeholder = (isNext ? next?.text : value) ?? "";
      return {
        words: isNext ? 2 : 1,
        isQuery,
        ...(isIn(wrapper.placeholderOptions, option) && { placeholder: placeholder === "" ? "{}" : placeholder }),
      };
    }
    const isFlag = colons === "" && (isLong ? value === undefined : known);
    if (!isFlag && !isQuery) return unknown(name, text);
  }
  return { words: 1, isQuery };
}

/** The colons after an option in the table; undefined if it is not listed. */
function colonsAfter({ short = "", long = "" }: Wrapper, option: string): string | undefined {
  const name = option.replace(/^--?/, "");
  const listed = option.length > 2 ? long.split(" ") : (short.match(/.:*/g) ?? []);
  return listed.find((each) => each.split(":", 1)[0] === name)?.slice(name.length);
}

function unknown(name: string, option: string): never {
  return doubt(`${quote(name)} with ${quote(option)} is not known here`);
}
