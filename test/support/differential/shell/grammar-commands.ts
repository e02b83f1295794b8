import { joined, type Grammar, type Kind } from "./grammar.ts";
import { builtins, quoted, target } from "./grammar-builtins.ts";
import { arithmetic, word } from "./grammar-words.ts";
import { redirect } from "./grammar-redirects.ts";

/** An operand that reaches a condition as text. */
const text = (g: Grammar): string =>
  g.chance(0.5) ? g.one("x", "a", "b", '""', "1", "pwn", "a.txt", "=", "'a b'") : g.piece(word);
const integer = (g: Grammar): string => g.one("1", "0", "-1", "2", "10", "'1'", '"2"');

/** The content of `[[ ]]`. */
export const condition: Kind = {
  frame: (g, piece) =>
    g.one(
      `[[ ${piece} ]]`,
      `[[ ${piece} ]] && echo a`,
      `if [[ ${piece} ]]; then echo a; fi`,
      `! [[ ${piece} ]]`,
      `[[ ! ${piece} ]]`,
      `[[ ${piece} ]]; ls`,
    ),
  productions: {
    "[[ ]]: text": text,
    "[[ ]]: =": (g) => `${text(g)} ${g.one("=", "==", "!=")} ${text(g)}`,
    "[[ ]]: pattern": (g) =>
      `${g.one("a", "b")} == ${g.one("a*", "[ab]", "?", "*.txt", "'*'", "@(a|b)", "+([a-z])", "!(pwn)", "a|b")}`,
    "[[ ]]: -n": (g) => `${g.one("-n", "-z")} ${text(g)}`,
    "[[ ]]: -f": (g) =>
      joined(
        g.one("-f", "-d", "-e", "-s", "-r", "-w", "-x", "-L", "-h", "-p", "-t", "-N", "-O", "-o"),
        " ",
        g.one("a.txt", "src", "none", "1", quoted(g)),
      ),
    "[[ ]]: -nt": (g) => `a.txt ${g.one("-nt", "-ot", "-ef")} ${g.one("b.txt", "none")}`,
    "[[ ]]: -v name": (g) => `-v ${g.one("x", "LC_ALL", "a[0]", "a[@]", "a[*]", "a[1]", "1", "a[x]")}`,
    "[[ ]]: -v text": (g) =>
      joined(
        g.one("-v", "-v", "-R"),
        " '",
        g.one("a[b[0]$(pwn)]", "a[$(=)]", "a[[]$(=)]", "a[1+`=`]", "a[${1[`pwn`]}]", "a[$(pwn)]", 'a["]"$(=)]'),
        "'",
      ),
    "[[ ]]: -eq": (g) => `${integer(g)} ${g.one("-eq", "-ne", "-lt", "-le", "-gt", "-ge")} ${integer(g)}`,
    "[[ ]]: -eq text": (g) =>
      `${g.one("x", "1+1", "a[0]", quoted(g), "PATH=11")} ${g.one("-eq", "-lt")} ${g.one("1", "x", quoted(g))}`,
    "[[ ]]: =~": (g) => `${g.one("a", "b")} =~ ${g.one("a", "^a", "[a-z]+", "a.", "'a'", "a*", "\\.", "$x", "a{1,2}")}`,
    "[[ ]]: =~ with |": (g) => `a =~ ${g.one("b|pwn", "(a)", "(a|b)", "a|b", "(b|pwn)x", "^(pwn)")}`,
    "[[ ]]: <": (g) => `${g.one("x", "a")} < ${g.one("b", "a.txt", "none")}`,
    "[[ ]]: >": (g) => `${g.one("x", "a")} > ${g.one("b", "new", "precious.txt", "written")}`,
    "[[ ]]: &&": (g) => `${g.one("x", "a = a")} && ${g.one("pwn", "y", "a = a", "x = pwn")}`,
    "[[ ]]: ||": (g) => `${g.one("x", "a = b")} || ${g.one("pwn", "y", "= = a", "x = y")}`,
    "[[ ]]: parentheses": (g) => g.one("( a )", "( pwn )", "(a)", "( a = a ) && b", "! ( x )"),
    "[[ ]]: newline": (g) => g.one("a\n", "\na", "a &&\nb", "a ||\npwn", "a\n&& pwn", "\npwn"),
    "[[ ]]: !": (g) => `! ${g.piece(condition)}`,
  },
};

export const command: Kind = {
  frame: (g, piece) =>
    g.one(
      piece,
      piece,
      `${piece}; ls`,
      `${piece} && echo a`,
      `${piece}\necho a`,
      `! ${piece}`,
      `{ ${piece}; }`,
      `(${piece})`,
    ),
  productions: {
    "command: echo": (g) => ["echo", ...g.some(0, 3, () => g.piece(word))].join(" "),
    "command: a program that reads": (g) =>
      joined(
        g.one("cat", "head -1", "tail", "wc -l", "ls", "grep a", "stat", "cut -c1", "diff a.txt"),
        " ",
        g.one("a.txt", "b.txt", g.piece(word)),
      ),
    "command: printf": (g) =>
      `printf ${g.one("%s", "'%s\\n'", "%d", '"%b"', "a", "%q", "'%(%F)T'", "--")} ${g.piece(word)}`,
    "command: printf -v": (g) => `printf -v ${target(g)} ${g.one("11", "a", "%s")}`,
    "command: printf %n": (g) => `printf ${g.one("%11s%n", "%-11s%ln", "%s%9d%5n", "'%% %9s%n'")} a ${target(g)}`,
    "command: :": (g) => `: ${g.piece(word)}`,
    "command: quoted name": (g) =>
      `${g.one("'echo'", '"echo"', "ec\\ho", "e''cho", "$'echo'", "ec\\\nho", "\\ls", "'ls'", "c'a't", "$'\\x6cs'")} ${g.name()}`,
    "command: name with braces": (g) =>
      g.one("{echo,a}", "echo{,}", "{,}echo a", "{pwn}", "{echo} a", "ec{h,}o", "''{},pwn}"),
    "command: program path": (g) =>
      joined(
        g.one(
          "/bin/",
          "/usr/bin/",
          "//bin/",
          "/usr//bin/",
          "/usr/./bin/",
          "/bin/../bin/",
          "./",
          "../app/",
          "11/",
          "/proc/self/root/bin/",
          "//usr/bin//",
          `${g.area}/app/`,
        ),
        g.one("ls", "cat", "echo"),
        " a.txt",
      ),
    "command: [": (g) =>
      joined(
        "[ ",
        g.one(
          "a = a",
          "a = b",
          "-n a",
          "-f a.txt",
          "1 -eq 1",
          "! a",
          "a = a -a b = b",
          "a -o pwn",
          "( a )",
          '"(" a ")"',
          "a '<' b",
          "a \\> new",
          "",
          "a == a",
        ),
        " ]",
      ),
    "command: test": (g) =>
      `test ${g.one("a = a", "-n a", "-f a.txt", "1 -lt 2", "! a", "-z ''", `-n ${g.piece(word)}`, "a '>' new", "\\( a \\)")}`,
    ...builtins,
    "command: (( ))": (g) =>
      joined(
        "((",
        g.one("", " "),
        g.one("x++", "++x", "x=1", "x += 2", "y-=1", "x=y", "x=$y", "PATH=11", "x='$(pwn)'", g.piece(arithmetic)),
        g.one("", " "),
        "))",
      ),
    "command: (( > ))": (g) => `(( ${g.one("echo", "a", "x")} > ${g.one("b", "new", "precious.txt")} ))`,
    "command: redirect before": (g) => `${g.piece(redirect)} echo ${g.name()}`,
    "command: redirect between": (g) => `echo ${g.name()} ${g.piece(redirect)} ${g.name()}`,
    "command: redirect after": (g) => `echo ${g.name()} ${g.piece(redirect)}`,
    "command: redirect alone": (g) => g.piece(redirect),
    "command: prefix assignment": (g) =>
      joined(
        g.one("x=1", "x=a y=b", "x=", "x='$(pwn)'", "x+=a", "a[0]=1", `x=${g.piece(word)}`, "LC_ALL=C"),
        " ",
        g.one("echo a", "ls", "cat a.txt", "read y"),
      ),
    "command: assignment": (g) =>
      joined(
        g.one("x", "y", "_"),
        g.one("=", "=", "+="),
        g.one("a", "", quoted(g), g.piece(word)),
        g.one("", "; echo $x", '; echo "$x"', "; echo $((x))", " y=2", "; : $[x]"),
      ),
    "command: index assignment": (g) =>
      `a[${g.one("0", "1", "x", "1+1", "$x", '"0"', quoted(g))}]=${g.one("a", "b", "")}${g.one("", "; echo ${a[0]}")}`,
    "command: array": (g) =>
      joined(
        "a=(",
        g.one(
          "",
          "1 2",
          "[0]=a [1]=b",
          "a\nb",
          "'$(pwn)'",
          "a # pwn\n",
          "{a,b}",
          "*.txt",
          "x y",
          "$(echo a)",
          quoted(g),
        ),
        ")",
        g.one("", "; echo ${a[0]}", '; echo "${a[@]}"', "; echo $((a))"),
      ),
    "command: time": (g) => `time ${g.one("", "-p ")}${g.one("echo a", "ls", "{ echo a; }", "! echo a", "")}`,
    "command: {a": (g) =>
      g.one("{ echo a; }", "{ echo a; };", "{\necho a\n}", "{ echo a; } 2>&1", "{ { echo a; }; }", "{ echo }; }"),
  },
};
