import { EvaluationError } from "../../../core/src/contract/function.ts";
import { quote } from "../../../core/src/wire/mod.ts";

/** @throws {EvaluationError} always: a text that is not fully understood is not allowed. `why` is a clause. */
export function doubt(why: string): never {
  throw new EvaluationError(`the shell text is in doubt: ${why}`);
}

/** Variables that tell shells, the loader or common programs which program, library or code to run. */
const runs = new Set(
  (
    "PATH BASH_ENV ENV ZDOTDIR PROMPT_COMMAND PS0 PS1 PS2 PS4 SHELL SHELLOPTS BASHOPTS BASH_ALIASES BASH_CMDS CDPATH IFS EXECIGNORE " +
    "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT GCONV_PATH PAGER MANPAGER GIT_PAGER LESSOPEN LESSCLOSE EDITOR VISUAL BROWSER " +
    "GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS GIT_PROXY_COMMAND " +
    "GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_COUNT " +
    "GIT_CONFIG_PARAMETERS RSYNC_RSH CVS_RSH TAR_OPTIONS RIPGREP_CONFIG_PATH MAKEFLAGS RUSTC_WRAPPER " +
    "NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONWARNINGS PERL5LIB PERL5OPT PERL5DB " +
    "RUBYLIB RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS AWKPATH AWKLIBPATH " +
    "GNUMAKEFLAGS MAKEFILES HOME XDG_CONFIG_HOME GIT_DIR GOFLAGS LUA_INIT VIMINIT EXINIT OPENSSL_CONF RSYNC_CONNECT_PROG " +
    "SUDO_EDITOR KUBE_EDITOR LESSKEY LESSKEYIN"
  ).split(" "),
);
const runsByPrefix = /^(?:DYLD_|BASH_FUNC_|GIT_CONFIG_(?:KEY|VALUE)_|npm_config_|LUA_INIT_)/;

/** A folder below the one where the command runs, or that one. */
const folderBelow = String.raw`(?:\.|(?:\./)?\w[\w-]*(?:/\w[\w-]*)*)`;

/** Values with which such a variable runs nothing else. */
const quietValues: ReadonlyMap<string, RegExp> = new Map([
  ...["PAGER", "MANPAGER", "GIT_PAGER"].map((name) => [name, /^(?:cat|less|)$/] as const),
  ...["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"].map((name) => [name, /^(?:true|:)$/] as const),
  ["PYTHONPATH", new RegExp(`^${folderBelow}(?::${folderBelow})*$`)],
  ["GOFLAGS", /^-mod=\w+$/],
  ["NODE_OPTIONS", /^--max-old-space-size=\d+$/],
]);

/** @throws {EvaluationError} if a variable decides how names are resolved, or names code */
export function checkVariable(name: string, value?: string): void {
  if (value !== undefined && quietValues.get(name)?.test(value) === true) return;
  if (runs.has(name) || runsByPrefix.test(name)) doubt(`setting ${quote(name)} changes what programs run`);
}

/** @throws {EvaluationError} if a shell with the bug CVE-2014-6271 reads the value as a function */
export function checkValue(value: string): void {
  if (/^\s*\(\)\s*\{/.test(value)) doubt("a variable contains a function");
}

/**
 * Besides tab and newline no control characters, and none that change the direction of writing (CVE-2021-42574).
 * @throws {EvaluationError}
 */
export function checkCharacters(text: string): void {
  const [odd] = /(?![\t\n])\p{Cc}|[\u061c\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/u.exec(text) ?? [];
  if (odd !== undefined) doubt(odd.isWellFormed() ? "it has a control character" : "it has half of a character");
}
