import { joined, type Grammar, type Kind } from "./grammar.ts";
import { command, condition } from "./grammar-commands.ts";
import { evaluation } from "./grammar-evaluation.ts";
import { hereDocument } from "./grammar-redirects.ts";
import { word } from "./grammar-words.ts";

const item = (g: Grammar): string =>
  g.chance(0.5) ? g.one("echo a", "cat a.txt", "ls", ":", "echo pwn", "pwd") : g.piece(list);
const check = (g: Grammar): string => g.one("true", "false", "[ a = a ]", "! true", "test a = b", ":");
const name = (g: Grammar): string => g.one("x", "y", "_z");

export const list: Kind = {
  frame: (_g, piece) => piece,
  productions: {
    "list: command": (g) => g.piece(command),
    "list: ;": (g) => `${item(g)}${g.one("; ", ";", " ;\n")}${item(g)}`,
    "list: newline": (g) => `${item(g)}${g.one("\n", "\n\n", "\n \n")}${item(g)}`,
    "list: &&": (g) => `${item(g)} ${g.one("&&", "&&\n", "&& \\\n")} ${item(g)}`,
    "list: ||": (g) => `${item(g)} ${g.one("||", "||\n", "||#pwn\n")} ${item(g)}`,
    "list: |": (g) =>
      `${item(g)} ${g.one("|", "|\n", "| \\\n", "| # pwn\n")} ${g.one("cat", "head -1", "wc -l", "grep a", "cut -c1")}`,
    "list: |&": (g) => `${item(g)} |& ${g.one("cat", "head -1", "wc -l")}`,
    "list: !": (g) => `! ${item(g)}`,
    "list: &": (g) => `${g.one("echo a", "true", "cat a.txt")} & ${g.one("", "wait", "echo b")}`,
    "list: { }": (g) => `{ ${item(g)}${g.one("; }", "\n}", ";}")}`,
    "list: ( )": (g) => `(${g.one("", " ", "\n")}${item(g)}${g.one("", " ", "\n")})`,
    "list: (( as two (": (g) =>
      g.one("( (echo a) )", "((echo a) )", "((echo a); echo b)", "((true) || pwn)", "$( (echo a) )"),
    "list: if": (g) =>
      `if ${check(g)}; then ${item(g)}; ${g.one("", `else ${item(g)}; `, `elif ${check(g)}; then ${item(g)}; `)}fi`,
    "list: while": (g) => `while ${g.one("false", "! true", "[ a = b ]")}; do ${item(g)}; done`,
    "list: while with break": (g) => `while ${g.one("true", ":")}; do ${item(g)}; break; done`,
    "list: until": (g) => `until ${g.one("true", ":", "[ a = a ]")}; do ${item(g)}; done`,
    "list: for": (g) =>
      joined(
        "for ",
        name(g),
        " in ",
        g.some(0, 3, () => g.one("a", "b", "a.txt", "pwn", "'$(pwn)'", "'a[$(pwn)]'", g.piece(word))).join(" "),
        "; do ",
        g.one("echo $x", 'echo "$x"', item(g), "echo $((x))", "[[ $x -eq 0 ]]", ": ${a[x]}"),
        "; done",
      ),
    "list: for without in": (g) => `for ${name(g)}${g.one("; ", "\n", " ")}do ${item(g)}; done`,
    "list: for (( ))": (g) =>
      `for ((${g.one("i=0; i<2; i++", "x=0;x<1;x++", ";0;", "i = 0; i < 1; i += 1")})); do ${item(g)}; done`,
    "list: for { }": (g) => `for x in a b; { ${item(g)}; }`,
    "list: case": (g) =>
      joined(
        "case ",
        g.one("a", "$x", "'a b'", g.piece(word)),
        " in ",
        g.one("", "("),
        g.one("a", "*", "a|b", "[ab]", "'$(pwn)'", '"a"', "pwn", "\\)", "?", "a | b"),
        ") ",
        item(g),
        " ;; ",
        g.one("", `*) ${item(g)};; `),
        "esac",
      ),
    "list: case with ;&": (g) => `case a in a) ${item(g)} ${g.one(";&", ";;&")} *) ${item(g)};; esac`,
    "list: case on lines": (g) => `case a in\n# pwn)\na)\n${item(g)}\n;;\nesac`,
    "list: select": (g) => `select ${name(g)} in ${g.one("a", "a b", "'$(pwn)'")}; do ${item(g)}; break; done`,
    "list: function": (g) =>
      joined(
        g.one("f", "g", "ls", "f-g"),
        g.one("() ", " ( ) ", "()\n"),
        g.one(`{ ${item(g)}; }`, `(${item(g)})`, "if true; then echo a; fi"),
        g.one("", "; f", "; f a", "; g", "\nls"),
      ),
    "list: function keyword": (g) =>
      `function ${g.one("f", "g", "f()", "ls ()")} { ${item(g)}; }${g.one("", "; f", "; f a")}`,
    "list: coproc": (g) =>
      `coproc ${g.one("", "x ", "PATH ")}${g.one("{ echo a; }", "(echo a)", "cat a.txt")}${g.one("", "; ls", "; wait")}`,
    "list: evaluation": (g) => g.piece(evaluation),
    "list: condition": (g) => `[[ ${g.piece(condition)} ]]`,
    "list: here-document": (g) => `${g.piece(hereDocument)}\n`,
    "list: comment at the end": (g) => `${item(g)} #${g.one("", " ")}${g.hostile().replaceAll("\n", " ")}`,
    "list: comment on a line": (g) => `${g.one("", "echo a\n")}# ${g.hostile().replaceAll("\n", " ")}\n${item(g)}`,
    "list: odd comments": (g) =>
      g.one(
        "echo a;# pwn",
        "echo a#pwn",
        "echo a &# pwn",
        "(echo a)# pwn",
        "{ echo a; }# pwn",
        "echo a |# pwn\ncat",
        "echo $(echo a # )\n)",
        "echo `echo a # b`",
        "if true # pwn\nthen echo a; fi",
        "# a \\\npwn",
        "echo \\# pwn",
        "echo a\\\n# pwn",
        "echo a \\\n# pwn",
        "a=1# pwn",
        "echo ''# pwn",
        "echo <(echo a)# pwn",
      ),
    "list: continued line": (g) =>
      g.one(
        "echo \\\na",
        "ec\\\nho a",
        "echo a &\\\n& echo b",
        "echo a |\\\n| pwn",
        "echo '\\\n'",
        'echo "a\\\nb"',
        "echo $\\\n(pwn)",
        "echo $\\\nx",
        "echo a>\\\n>written",
        "echo a;\\\n# pwn\n",
        "i\\\nf true; then echo a; fi",
        "cat <\\\n<E\na\nE",
        "echo a\\\n\\\n b",
        "echo ${x\\\n-a}",
        "echo $((1\\\n+1))",
        "x\\\n=1",
        "[\\\n[ a ]\\\n]",
      ),
    "list: space": (g) => `${g.one(" ", "\t", "\n", "\n\n ")}${item(g)}${g.one(" ", "\t", "\n", ";", " ;\n")}`,
    "list: reserved words as words": (g) =>
      g.one(
        "echo if then fi",
        "echo }",
        "echo {",
        "echo [[ a ]]",
        "echo done; echo do",
        "echo !",
        "echo in",
        "ls {",
        "echo time",
        "echo case a in",
        "echo function f",
        "for in in in; do echo $in; done",
        "for do in do; do echo a; done",
        "case in in in) echo a;; esac",
        "case esac in (esac) echo a;; esac",
        "echo ! pwn",
        "{ echo }\n}",
      ),
    "list: loop with a redirect": (g) =>
      `while read x; do ${g.one("echo $x", 'echo "$x"', ":")}; done ${g.one("< a.txt", "<<< a", "< <(echo a)", "<<E\na\nE")}`,
    "list: nested quotes": (g) =>
      g.one(
        'echo "$(echo "a")"',
        'echo "$(echo \'"\')"',
        'echo "${x-"a"}"',
        'echo "`echo "a"`"',
        'echo "$(echo \\"a)"',
        "echo \"${x-'a'}\"",
        "echo $(echo ')')",
        "echo $(echo \\))",
        "echo \"$(echo ')')\"",
        "echo ${x-$(echo })}",
        "echo \"${x#'}'}\"",
        "echo $(echo $(echo $(pwd)))",
        "echo \"a'\"'b\"'",
        'echo "${x-\\}}"',
      ),
  },
};
