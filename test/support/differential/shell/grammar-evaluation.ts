import { joined, type Grammar, type Kind } from "./grammar.ts";

/** A text that bash evaluates as arithmetic: half of them are numbers. */
const value = (g: Grammar): string =>
  g.chance(0.5)
    ? g.one("1", "0", "'2'", '"1"')
    : g.one(
        "'a[$(pwn)]'",
        "'a[$(=)]'",
        "'a[b[0]$(pwn)]'",
        "'a[`pwn`]'",
        "'x[$(pwn)]'",
        "'PATH=11'",
        "'y'",
        "a\\[\\$\\(pwn\\)]",
      );

/** Each evaluates the variable NAME. */
const evaluators =
  "echo $((NAME))|[[ NAME -eq 0 ]]|echo ${b[NAME]}|echo ${!NAME}|b[NAME]=1|((x=NAME))|let y=NAME|[[ -v b[NAME] ]]|" +
  "echo ${y:NAME}|echo $(($NAME))|for ((x=NAME;x<0;)); do :; done|test -v 'b[NAME]'";

const evaluated = (g: Grammar, variable: string): string =>
  g.one(...evaluators.split("|")).replaceAll("NAME", variable);

const number = (g: Grammar): string =>
  g.one("1", "0", "x", "1+1", "PATH=11", "PATH=11", "x=1,PATH=11", "1?PATH=11:0", "PATH+=1", "++PATH");
/** `-v` in spellings that reach the command as `-v`, and others. */
const option = (g: Grammar): string =>
  g.one(
    "-v",
    "$x",
    "${y--v}",
    "$(echo -v)",
    '"$@"',
    "$1",
    '"${x[@]}"',
    "{-v,'a[$(pwn)]'}",
    "-\\v",
    "-'v'",
    "$'-v'",
    "-n",
    "-f",
    "-z",
    "'!' -v",
  );
const name = (g: Grammar): string =>
  g.one("a", "x", "'a[0]'", "a.txt", "'a[$(pwn)]'", "'a[$(=)]'", "'a[[]$(pwn)]'", "'a[PATH=11]'", "PATH");

/** bash evaluates texts where others see only words. */
export const evaluation: Kind = {
  given: 0.8,
  frame: (g, piece) => g.one(`${piece}; ls`, `${piece}; ls`, piece, `${piece}\ncat a.txt`, `{ ${piece}; }; ls`),
  productions: {
    "evaluation: a variable": (g) => `x=${value(g)}; ${evaluated(g, "x")}`,
    "evaluation: a variable of a loop": (g) => `for x in ${value(g)} 1; do ${evaluated(g, "x")}; done`,
    "evaluation: a variable of read": (g) => `read x <<< ${value(g)}; ${evaluated(g, g.one("x", "y"))}`,
    "evaluation: a variable of a builtin": (g) =>
      joined(
        g.one("export", "declare", "readonly", "printf -v x %s", "typeset", "local"),
        " ",
        g.one("x=", "y="),
        value(g),
        "; ",
        evaluated(g, g.one("x", "y")),
      ),
    "evaluation: an element": (g) =>
      joined(
        g.one(`x=(${value(g)} 1)`, `x[0]=${value(g)}`, `x+=(${value(g)})`, `x=([0]=${value(g)})`),
        "; ",
        evaluated(g, g.one("x", "x[0]", "x[1]")),
      ),
    "evaluation: a default": (g) => `: \${x:=${value(g)}}; ${evaluated(g, "x")}`,
    "evaluation: an argument": (g) =>
      g.one(
        `set -- ${value(g)}; ${evaluated(g, g.one("1", "x", "#"))}`,
        `f() { ${evaluated(g, g.one("1", "x"))}; }; f ${value(g)}`,
        `set -- ${value(g)}; for x; do ${evaluated(g, "x")}; done`,
      ),
    "evaluation: a name that bash sets": (g) =>
      g.one(
        `: ${value(g)}; ${evaluated(g, "_")}`,
        `read <<< ${value(g)}; ${evaluated(g, "REPLY")}`,
        `mapfile <<< ${value(g)}; ${evaluated(g, "MAPFILE")}`,
        `getopts a: x -a ${value(g)}; ${evaluated(g, g.one("OPTARG", "OPTIND"))}`,
        `set -- ${value(g)}; ${evaluated(g, "BASH_ARGV")}`,
        `[[ ${value(g)} =~ ${g.one(".*", "[a-z].[$].+.", ".+", "$y")} ]]; ${evaluated(g, "BASH_REMATCH")}`,
        `select x in a; do ${evaluated(g, g.one("x", "REPLY"))}; break; done <<< ${value(g)}`,
        joined(
          "echo ",
          value(g),
          "; ",
          evaluated(g, g.one("LINENO", "RANDOM", "SECONDS", "BASH_COMMAND", "FUNCNAME", "PWD", "KEY", "UID")),
        ),
      ),
    "evaluation: an index": (g) =>
      g.one(
        `a[${number(g)}]=1`,
        `echo \${a[${number(g)}]}`,
        `[[ -v a[${number(g)}] ]]`,
        `test -v 'a[${number(g)}]'`,
        `printf -v 'a[${number(g)}]' 1`,
        `read 'a[${number(g)}]' <<< 1`,
        `unset 'a[${number(g)}]'`,
      ),
    "evaluation: an index in a compound assignment": (g) =>
      joined(
        "a",
        g.one("=", "+="),
        "([",
        g.one("0", "1", "x", "'$(pwn)'", "b['$(pwn)']", "'`pwn`'", "PATH=11", "$x", '"0"'),
        "]=",
        g.one("1", "a"),
        ")",
      ),
    "evaluation: a number": (g) =>
      g.one(
        `[[ ${number(g)} -eq 1 ]]`,
        `let ${g.one("x=", "")}${number(g)}`,
        `let "${number(g)}"`,
        `echo $((${number(g)}))`,
        `echo \${x:${number(g)}}`,
        `((x=${number(g)}))`,
        `: $[${number(g)}]`,
      ),
    "evaluation: -v that an expansion writes": (g) =>
      joined(
        g.one("", "x=-v; ", "set -- -v 'a[$(pwn)]'; ", "x=(-v 'a[$(pwn)]'); ", "x='-v a[$(pwn)]'; "),
        g.one("test", "test a = a -a", "command test", "printf", "unset", "test !"),
        " ",
        option(g),
        " ",
        name(g),
      ),
    "evaluation: -p of wait": (g) =>
      `true & wait ${g.one("-p", "-np", "-n -p", "-fp", "-n", "-f")} ${g.one("x", "y", "'a[$(pwn)]'", "PATH", "")}`,
    "evaluation: an option of read": (g) =>
      joined(
        "read ",
        g.one("-r", "-p x", "-ra", "-N1", "-u0", "-d x", "-rd ''", "-t 1 --", "-n1", "-e", "-s"),
        " ",
        name(g),
        " <<< ",
        value(g),
      ),
  },
};
