/**
 * Goal: no builtin of bash or dash sets a variable that `shell()` does not list. Method: the table names each builtin
 * and all the ways in which it can set a variable by its name. With the name `PATH`, each text must be in doubt. With
 * another name, it must be in doubt or list the variable. Positive control: the real bash sets the variable.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { before, suite, test } from "node:test";
import { shellFunctions } from "../../packages/readers/src/shell/functions.ts";
import { readShellText } from "../../packages/readers/src/shell/shell.ts";
import { EvaluationError } from "../../packages/core/src/contract/value/rational.ts";
import type { Value } from "../../packages/core/src/contract/value/value.ts";
import { control } from "../support/controls/control.ts";

/** `V` is the name of the variable. `NEW` marks a text that only bash 5.3 or zsh knows. */
const ways: Readonly<Record<string, readonly string[]>> = {
  printf: [
    "printf -v V x",
    "printf -vV x",
    "printf -v W -v V x",
    "printf %n V",
    "printf 'ab%n' V",
    "printf '%s%ln' a V",
    "printf '%5n' V",
    "printf '%*n' 3 V",
    "printf -- '%n' V",
    "printf -v W '%n' V",
  ],
  read: ["read V <<< x", "read -r W V <<< 'x y'", "read -a V <<< x", "read -raV <<< x", "read 'a[V=1]' <<< x"],
  mapfile: ["mapfile V <<< x", "mapfile -t V <<< x", "mapfile -C 'V=x;' -c 1 a <<< x"],
  readarray: ["readarray V <<< x"],
  declare: [
    "declare V=x",
    "declare -a V=x",
    "declare -a 'V=(x)'",
    "declare -i V=1",
    "declare -n W=V; W=x",
    "declare 'a[V=1]=x'",
  ],
  typeset: ["typeset V=x", "typeset -n W=V; W=x"],
  local: ["f() { local V=x; SHOW; }; f", "f() { local -n W=V; W=x; }; f"],
  export: ["export V=x"],
  readonly: ["readonly V=x"],
  unset: ["a=(1); unset 'a[V=1]'"],
  getopts: ["set -- -a; getopts a V", "getopts a V -a"],
  let: ["let V=1", "let W=V=1", "let 'a[V=1]=1'"],
  wait: ["sleep 0 & wait -n -p V"],
  test: ["a=(1 2); test -v 'a[V=1]'"],
  "[": ["a=(1 2); [ -v 'a[V=1]' ]"],
  eval: ["eval V=x", "eval 'read V <<< x'"],
  trap: ["trap 'V=x; SHOW' EXIT", "trap 'V=x' DEBUG; :"],
  builtin: ["builtin read V <<< x", "builtin printf %n V"],
  command: ["command read V <<< x", "command printf %n V"],
  exec: ["exec {V}</dev/null"],
  set: ["set -k; : V=x; f() { SHOW; }; f V=x"],
  compgen: ["NEW compgen -V V -W x"],
};

/** Grammar that sets a variable without a builtin. */
const grammar = [
  "V=x",
  "V+=x",
  "V[0]=x",
  "a[V=1]=x",
  "for V in x; do :; done",
  "for ((V=1; V<1;)); do :; done",
  "select V in x; do break; done <<< 1 2>/dev/null",
  "((V=1))",
  ": $((V=1))",
  ": ${V:=x}",
  ": ${V=x}",
  "r=V; : ${!r:=x}",
  "x=abc; : ${x:V=1}",
  "a=(1 2); : ${a[V=1]}",
  "[[ V=1 -eq 1 ]]",
  "[[ -v a[V=1] ]]; a=(1 2); [[ -v a[V=1] ]]",
  ": {V}</dev/null",
  "coproc V { cat; }", // cat waits for its input: bash unsets V when the process has ended
];

/** These set no variable whose name a text chooses. `source` and `.` read a file, which the record names. */
const setNothing =
  ". : alias bg bind break caller cd chdir complete compopt continue dirs disown echo enable exit false fc fg hash help " +
  "history jobs kill logout popd pushd pwd return shift shopt source suspend times true type ulimit umask unalias";

const dash =
  ". : [ alias bg break cd chdir command continue echo eval exec exit export false fc fg getopts hash jobs kill local " +
  "printf pwd read readonly return set shift test times trap true type ulimit umask unalias unset wait";

const bash = spawnSync("bash", ["-c", "compgen -b"], { encoding: "utf8" });
const hasBash = bash.error === undefined && bash.status === 0;
const all = [...Object.values(ways).flat(), ...grammar];

/** Returns the text with this variable, and the position at which it can be seen. */
function textWith(way: string, name: string, shown = ":"): string {
  const text = way
    .replace("NEW ", "")
    .replaceAll(/\bV\b/g, name)
    .replaceAll(/(?<=-va?|-ra)V\b/g, name);
  return text.includes("SHOW") ? text.replaceAll("SHOW", shown) : `${text}\n${shown}`;
}

/** Returns the variables that the reader lists, or undefined for a doubt. */
function variablesOf(text: string): readonly Value[] | undefined {
  try {
    const record = readShellText(text) as ReadonlyMap<string, Value>;
    return record.get("variables") as readonly Value[];
  } catch (error) {
    assert.ok(error instanceof EvaluationError, text);
    return undefined;
  }
}

suite("builtins that set a variable", () => {
  before(async () => shellFunctions[0]?.load?.());

  test("the table has each builtin of bash and dash", { skip: hasBash ? false : "bash is not installed" }, () => {
    const known = new Set([...Object.keys(ways), ...setNothing.split(" ")]);
    const builtins = [...bash.stdout.trim().split("\n"), ...dash.split(" ")];
    assert.ok(builtins.length > 90);
    assert.deepEqual(
      builtins.filter((name) => !known.has(name)),
      [],
    );
  });

  test("a text that sets PATH is in doubt", () => {
    const missed = all.filter((way) => variablesOf(textWith(way, "PATH")) !== undefined);
    assert.deepEqual(missed, []);
  });

  test("a text that sets another variable lists it, or is in doubt", () => {
    const missed = all.filter((way) => variablesOf(textWith(way, "chosen"))?.includes("chosen") === false);
    assert.deepEqual(missed, []);
  });

  control(
    "positive control: bash sets the variable, and ordinary texts set nothing",
    { skip: hasBash ? false : "bash is not installed" },
    () => {
      const ordinary = ["printf '%s\\n' V", "echo V", "test -f V", "[ -n V ]", "cd V", "printf '%%n' V"];
      const idle = all.filter((way) => !way.startsWith("NEW") && !isSetByBash(way));
      assert.deepEqual([idle, ordinary.filter(isSetByBash)], [[], []]);
      for (const text of ordinary) assert.deepEqual(variablesOf(text), [], text);
    },
  );
});

function isSetByBash(way: string): boolean {
  const shown = '[ -n "${chosen+x}${chosen[*]+x}" ] && echo IS-SET';
  const text = `exec 2>/dev/null\n${textWith(way, "chosen", shown)}`;
  const { stdout } = spawnSync("bash", ["-c", text], { encoding: "utf8", env: {}, timeout: 20_000 });
  return stdout.includes("IS-SET");
}
