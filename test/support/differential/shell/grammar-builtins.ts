import { joined, type Grammar, type Production } from "./grammar.ts";
import { options } from "./grammar-options.ts";

/** A text in single quotes. */
export const quoted = (g: Grammar): string => `'${g.hostile().replaceAll("'", "")}'`;
/** A name of a variable, or a word that a builtin treats as one. */
export const target = (g: Grammar): string => g.one("x", "y", "a", "x", "PATH", "a[0]", "'a[b[0]$(pwn)]'", quoted(g));

/** Commands that set variables, run other commands or change the shell. */
export const builtins: Readonly<Record<string, Production>> = {
  "command: [ -v": (g) =>
    g.one(
      `[ -v ${target(g)} ]`,
      `test -v ${target(g)}`,
      `[ ! -v ${target(g)} ]`,
      `[ a -a -v ${target(g)} ]`,
      `test a = a -o -v ${target(g)}`,
    ),
  "command: [ -eq text": (g) =>
    g.one(`[ ${quoted(g)} -eq 1 ]`, `test x -lt ${quoted(g)}`, "[ 1+1 -eq 2 ]", `[ -t ${quoted(g)} ]`),
  "command: read": (g) =>
    `read ${g.one("", "-r ", "-a ", "-t 1 ", "-n 1 ")}${target(g)}${g.one("", "", " <<< 11", " <<< .", " < a.txt")}`,
  "command: let": (g) =>
    `let ${g.one("x=1", "x+=1", "'x = 1'", "x=1+1 y=2", "PATH=11", '"x[0]=1"', "a[0]=1", quoted(g))}`,
  "command: unset": (g) =>
    `unset ${g.one("x", "-v x", "-f x", "a[0]", "'a[0]'", "PATH", "-v PATH", "-n x", quoted(g))}`,
  "command: export": (g) =>
    joined(
      g.one(
        "export",
        "readonly",
        "declare",
        "local",
        "typeset",
        "declare -i",
        "declare -a",
        "declare -g",
        "declare -x",
      ),
      " ",
      g.one("x=1", "x", "x=a y=b", "a=(1 2)", "a[0]=1", "PATH=11", quoted(g), "-p"),
    ),
  "command: declare -n": (g) =>
    g.one(
      "declare -n x=y",
      "declare -n x=PATH; x=11; ls",
      "typeset -n x=PATH; read x <<< 11; ls",
      "declare -n r='a[$(pwn)]'; echo $r",
    ),
  "command: eval": (g) =>
    joined(
      "eval ",
      g.one(
        "'echo a'",
        "echo a",
        '"echo a; ls"',
        "'ls' 'a.txt'",
        "echo '$x'",
        "-- echo a",
        "'x=1'",
        "\"echo '\\$(pwn)'\"",
        "'echo \\$(pwn)'",
        "echo \\;pwn",
        "'cat <<E\na\nE'",
      ),
    ),
  "command: command": (g) =>
    joined(
      g.one("command", "builtin", "command -p", "exec", "command --", "command -v", "exec -a x", "builtin --"),
      " ",
      g.one("echo a", "cat a.txt", "ls", "pwd", "printf a"),
    ),
  "command: runs code": (g) =>
    joined(
      g.one("sh -c", "bash -c", "dash -c", "eval", "bash --posix -c", "sh -ec", "env sh -c", "bash -c --", "trap"),
      " ",
      g.one(
        "'echo a'",
        `"echo 'a'"`,
        "'cat a.txt; ls'",
        "'echo \\$x'",
        `"echo '\\$(pwn)'"`,
        `'[[ a ]]'`,
        "'echo \"$1\"' a pwn",
        quoted(g),
      ),
      g.one("", " a", " EXIT"),
    ),
  "command: runs a command": (g) =>
    joined(
      g.one(
        "env",
        "env x=1",
        "nohup",
        "timeout 1",
        "nice",
        "command",
        "env -i",
        "env -u x",
        "timeout -s INT 1",
        "nice -n 1",
        "env --",
        "exec",
        "builtin",
        "env -S",
      ),
      " ",
      g.one("echo a", "cat a.txt", "ls", "'echo' a", "sh -c 'echo a'", "x=1 ls", "PATH=11 ls", "printf a"),
    ),
  "command: runs a command for each": (g) =>
    g.one(
      "echo a.txt | xargs cat",
      "ls | xargs -n1 echo",
      "echo a | xargs -I x echo x",
      "find . -name a.txt -exec cat {} \\;",
      "find src -exec ls {} +",
      "echo 'a;pwn' | xargs -I{} echo {}",
      "find . -maxdepth 1",
      "echo a | xargs",
      "find . -exec echo {} ';'",
      `echo ${quoted(g)} | xargs -I{} sh -c 'echo a' {}`,
      "find . -ok pwn ';'",
    ),
  "command: options": options,
  "command: alias": (g) =>
    g.one(
      "alias",
      "alias -p",
      "alias ls=pwn; ls",
      "alias ls='pwn '\nls",
      "unalias -a",
      "hash -r",
      "hash -p pwn ls; ls",
      "hash",
      "enable -n echo; echo a",
      "shopt -s extglob",
      "set -o posix",
      "set -k; ls PATH=11",
    ),
  "command: cd": (g) =>
    joined(
      "cd ",
      g.one("src", "11", "10", "./src", "src/.", "src//", "'src'", "-P src"),
      g.one("; ls", " && cat c.txt", "; ls ../.env", "; cat ls", "; ./ls", " && echo a"),
    ),
  "command: trap": (g) =>
    `trap ${g.one("'echo a' EXIT", "- EXIT", "'' INT", "'echo a' 0", "\"echo '\\$(pwn)'\" EXIT", "-p")}`,
  "command: set": (g) =>
    g.one(
      "set -e",
      "set -- a b",
      "set -- a; echo $1",
      "set -f; echo *",
      "set +o noglob",
      "set -- '$(pwn)'; echo \"$1\"",
      "shift",
      "set -u; echo a",
    ),
  "command: getopts": (g) => `getopts ${g.one("a", "ab:")} ${g.one("x", "PATH", "y")} ${g.one("-a", "-b 1")}`,
  "command: mapfile": (g) => `mapfile ${g.one("-t ", "")}${g.one("x", "a", "PATH")} < a.txt`,
};
