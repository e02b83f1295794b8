import { joined, type Grammar, type Kind, type Production } from "./grammar.ts";
import { list } from "./grammar-lists.ts";

/** Returns the same characters, each with a chance to be written by `write`. */
function spelled(g: Grammar, text: string, write: (code: number, next: string) => string): string {
  const characters = Array.from(text);
  const sure = Math.floor(g.dice.roll() * characters.length);
  return characters
    .map((character, at) =>
      at === sure || g.chance(0.2) ? write(character.codePointAt(0) ?? 0, characters[at + 1] ?? "") : character,
    )
    .join("");
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

const single: Production = (g) => `'${(g.chance(0.6) ? g.hostile() : g.name()).replaceAll("'", "")}'`;

const double: Production = (g) =>
  g.chance(0.5)
    ? `"${g.hostile().replaceAll(/["$`\\]/g, "")}"`
    : `"${g.one(g.name(), "a b", "a  'b", "\\$", "\\\\", "#", "$", "a$", "(a)", "{a,b}", "*", "~", "\\a", "!")}"`;

const escaped: Production = (g) => `"${g.hostile().replaceAll(/["$`\\]/g, "\\$&")}"`;

const backslash: Production = (g) =>
  g.chance(0.5)
    ? spelled(g, g.file(), (code) => `\\${String.fromCodePoint(code)}`)
    : g
        .hostile()
        .replaceAll(/[^\w\n]/g, "\\$&")
        .replaceAll("\n", "\\\n");

const ansi =
  (write: (g: Grammar, code: number, next: string) => string): Production =>
  (g) =>
    `$'${spelled(g, g.file(), (code, next) => write(g, code, next))}'`;

const oddBraces: readonly string[] = [
  ..."{a,b a,b} a{b}c {,a} {a,} {a,'b,c'} {'a',b} {\"a,b\"} {a..} {1.. {..3} {a,b}} {{a,b} a{b,c}{d} {a\\,b} \\{a,b}".split(
    " ",
  ),
  ..."{a,b\\} '{'a,b} {a,b'}' {a','b} {} a{}b {1..2..1} {a..c..2} {-1..1} {01..3} {a,b}.{c,d} ${x}{a,b} {$x,b}".split(
    " ",
  ),
  ..."{a,b}$ {!,a} x{1..2}y".split(" "),
  "{ a,b }",
  "{a, b}",
  "{a,$(echo b)}",
];

const braceOdd: Production = (g) => (g.chance(0.1) ? `{${g.name()},${g.file()}}` : g.dice.oneOf(oddBraces));

/** bash treats `a{},b}c` as two words, `a}c` and `abc`. */
const braceEmpty: Production = (g) => {
  const target = g.chance(0.7) ? g.secret() : g.file();
  const at = Math.floor(g.dice.roll() * target.length);
  return g.one(
    `${target.slice(0, at)}{},${target.slice(at, at + 1)}}${target.slice(at + 1)}`,
    `''{},${target}}`,
    `${target.slice(0, at)}{},${target.slice(at)}}`,
    `{},${target}}`,
  );
};

const expansion =
  (...forms: readonly ((g: Grammar) => string)[]): Production =>
  (g) => {
    const text = g.one(...forms)(g);
    return g.chance(0.4) && !text.includes('"') ? `"${text}"` : text;
  };

const variable = (g: Grammar): string => g.one("x", "y", "a", "1", "@", "*", "#", "?", "LC_ALL", "none");
const value = (g: Grammar): string =>
  g.one(
    "a",
    "b.txt",
    "",
    "a b",
    "'a'",
    '"a"',
    "'}'",
    '"}"',
    "\\}",
    "$x",
    "${y}",
    "{a",
    "$(echo a)",
    "`echo a`",
    "'$(pwn)'",
    "a;b",
    "#",
    "~",
  );

const name = (g: Grammar): string => g.one("x", "y", "a", "none");

export const arithmetic: Kind = {
  given: 0.8,
  frame: (g, piece) => g.one(`echo $((${piece}))`, `echo "$((${piece}))"`, `: $((${piece}))`),
  productions: {
    "arithmetic: number": (g) => g.one("1", "0", "42", "0x1f", "010"),
    "arithmetic: operators": (g) =>
      joined(
        g.piece(arithmetic),
        " ",
        g.one("+", "-", "*", "/", "%", "**", "<<", "&", "|", "^", "==", "!=", "<", ">", ">=", "&&", "||"),
        " ",
        g.one("1", "2"),
      ),
    "arithmetic: variable": (g) => g.one("x", "y", "$x", "${x}", "-x", "!x", "~1", "x++", "--x", "$#"),
    "arithmetic: index": (g) => g.one("a[0]", "a[1]", "a[x]", "a[b[0]]", "${a[0]}", "a[1+1]", "a['0']"),
    "arithmetic: assignment": (g) =>
      `${g.one("x", "y", "a[0]", "x", "PATH")} ${g.one("=", "+=", "-=", "|=")} ${g.one("1", "11", "2")}`,
    "arithmetic: ternary": (g) => `${g.piece(arithmetic)} ? ${g.one("1", "x")} : ${g.one("2", "(3)")}`,
    "arithmetic: comma": (g) => `${g.piece(arithmetic)}, ${g.piece(arithmetic)}`,
    "arithmetic: parentheses": (g) => `(${g.piece(arithmetic)})`,
    "arithmetic: quotes": (g) =>
      g.chance(0.4)
        ? `${g.one("'", '"')}${g.hostile().replaceAll(/['"]/g, "")}${g.one("'", '"')}`
        : g.one('"1"', "'1'", "\\1", '"x"', '"1 + 1"', "$'1'", '"a[0]"', "a['$(pwn)']", 'a["`pwn`"]', "\\$(pwn)"),
    "arithmetic: substitution": (g) =>
      `$(${g.one("wc -l < a.txt", "wc -c <a.txt", "wc -l < src/c.txt", "echo 1", "printf 1")})${g.one("", " + 1")}`,
    "arithmetic: base": (g) => g.one("16#ff", "2#101", "36#z", "64#@", "10#08"),
    "arithmetic: space": (g) => `${g.one(" ", "\n", "\\\n", "\t")}${g.piece(arithmetic)}${g.one(" ", "\n", "")}`,
  },
};

/** A list of commands for a substitution. */
const inner = (g: Grammar): string =>
  g.chance(0.5) ? g.one("echo a", "cat a.txt", "pwd", "echo a; echo b", "", ":") : g.piece(list);

export const word: Kind = {
  frame: (g, piece) =>
    g.one(
      `echo ${piece}`,
      `cat ${piece}`,
      `echo ${g.name()} ${piece}`,
      `: ${piece}`,
      `printf %s ${piece}`,
      `ls ${piece}`,
      `cat < ${piece}`,
    ),
  productions: {
    "word: bare": (g) => g.name(),
    "word: single quotes": single,
    "word: double quotes": double,
    "word: escapes in double quotes": escaped,
    "word: backslashes": backslash,
    "word: $'' with hexadecimal": ansi(
      (g, code, next) => `\\x${g.chance(0.8) || /[0-9a-fA-F]/.test(next) ? hex(code, 2) : code.toString(16)}`,
    ),
    "word: $'' with octal": ansi((g, code) => `\\${g.one("", "0").slice(0, code > 63 ? 0 : 1)}${code.toString(8)}`),
    "word: $'' with Unicode": ansi((g, code, next) =>
      g.chance(0.9) && !/[0-9a-fA-F]/.test(next)
        ? `\\u${hex(code, 4)}`
        : g.one(String.fromCodePoint(code), `\\U${hex(code, 8)}`, `\\u${hex(code, 2)}`),
    ),
    "word: $'' with letters": (g) =>
      joined(
        "$'",
        g
          .one(
            "a\\tb",
            "\\a",
            "a\\n",
            "\\e[0m",
            "\\E",
            "\\\\",
            '\\"',
            "\\?",
            "\\z",
            "\\v\\f\\b\\r",
            "a.txt\\",
            "\\\\x2e",
          )
          .replace(/[^\\]\\$/, "a"),
        "'",
      ),
    "word: $'' with control characters": (g) =>
      `$'${g.one("a\\cA", "\\cz", "\\c[", "\\c\\\\", "\\c?", "a\\c b", "\\c@b", "\\cn.txt")}'`,
    "word: $'' with a null character": (g) =>
      `$'${g.file()}${g.one("\\0", "\\x00", "\\000", "\\u0000", "\\x0", "\\c@")}${g.one("x", "", "$x")}'`,
    "word: $'' with plain text": (g) => `$'${g.hostile().replaceAll(/['\\]/g, "")}'`,
    "word: $'' with \\x{": (g) =>
      joined(
        "$'",
        spelled(g, (g.chance(0.7) ? g.secret() : g.file()).replaceAll("'", ""), (code) =>
          g.one(`\\x{${code.toString(16)}}`, `\\x{${hex(code, 2)}`),
        ),
        "'",
      ),
    "word: $'' with \\'": (g) => `$'a\\'${g.hostile().replaceAll("'", "")}'`,
    'word: $""': (g) => `$"${g.one("a", "a.txt", "\\$(pwn)", "a b", "")}"`,
    "word: brace list": (g) =>
      `${g.one("", "a", "src/")}{${g.some(2, 3, () => g.one("a", "b", "c.txt", "", "pwn")).join(",")}}${g.one("", ".txt")}`,
    "word: brace range": (g) =>
      `${g.one("", "a")}{${g.one("1..3", "a..c", "3..1", "01..03", "1..5..2", "A..c", "-1..1")}}${g.one("", ".txt")}`,
    "word: nested braces": (g) =>
      g.one("{a,{b,c}}", "{a,b{1,2}c}", "{{a,b},c}", "{a{,b},{c}}", "{1..2}{a,b}", `{a,{b,${g.file()}}}`),
    "word: odd braces": braceOdd,
    "word: braces that start with {}": braceEmpty,
    "word: *": (g) => g.one("*.txt", "a*.txt", "src/*.txt", "*/*.txt", "*", ".*", "*x", "./*.txt"),
    "word: ?": (g) => g.one("?.txt", "a?txt", ".?nv", "?", "??"),
    "word: [ ]": (g) =>
      g.one("[ab].txt", "[!a]*.txt", "[a-b].txt", "[[:alpha:]].txt", ".[e]nv", "[", "[]a].txt", "a[0]", "[^a]"),
    "word: ~": (g) => g.one("~", "~/a", "~+/a.txt", "~-", "~none", "a=~", "a:~", "~root", "~/secret"),
    "word: variable": expansion(
      (g) => `$${variable(g)}`,
      (g) => `\${${variable(g)}}`,
      () => "$$",
      () => "$-",
    ),
    "word: ${x-value}": expansion((g) => `\${${name(g)}${g.one("-", ":-", "+", ":+")}${value(g)}}`),
    "word: ${x=value}": expansion((g) => `\${${name(g)}${g.one("=", ":=")}${value(g)}}`),
    "word: ${x?value}": expansion((g) => `\${${name(g)}${g.one("?", ":?")}${value(g)}}`),
    "word: ${#x}": expansion((g) => g.one(`\${#${name(g)}}`, "${#}", "${#@}", "${#a[0]}", "${#-}", "${#:-a}")),
    "word: ${x#pattern}": expansion((g) => `\${${name(g)}${g.one("#", "##", "%", "%%")}${value(g)}}`),
    "word: ${x/a/b}": expansion((g) =>
      joined(
        "${",
        name(g),
        g.one("/", "//", "/#", "/%"),
        g.one("a", "*", "'/'", "\\/", "[b]"),
        g.one("", "/", "/b", "/'}'", "/$y"),
        "}",
      ),
    ),
    "word: ${x:1:2}": expansion(
      (g) => `\${${name(g)}:${g.one("0", "1", " -1", "x", "1+1", "(1)", "$y")}${g.one("", ":1", ":y", ": -1")}}`,
    ),
    "word: ${x^^}": expansion((g) => `\${${name(g)}${g.one("^", "^^", ",", ",,", "^a", "^^[a-z]")}}`),
    "word: ${x@Q}": expansion((g) => `\${${name(g)}@${g.one("Q", "E", "A", "a", "U", "u", "L", "K")}}`),
    "word: ${x@P}": (g) => `\${${name(g)}@P}`,
    "word: ${a[0]}": expansion(
      (g) =>
        `\${a[${g.one("0", "1", "@", "*", "x", "x+1", "-1", "b[0]", "$x", "'0'", '"x"')}]${g.one("", "-b", ":1", "#a")}}`,
    ),
    "word: ${!x}": expansion((g) => g.one("${!x}", "${!x*}", "${!x@}", "${!a[@]}", "${!1}", "${!x-a}", "${!#}")),
    "word: quotes in an expansion": expansion(
      (g) => `\${${name(g)}-'${g.one("}", "a", "$x", "pwn")}'}`,
      (g) => `\${${name(g)}-"${g.one("}", "a b", "$x", "`echo a`")}"}`,
      (g) => `\${${name(g)}-\${y-${value(g)}}}`,
      (g) => `\${${name(g)}-$'${g.one("a", "}", "\\x7d")}'}`,
      (g) => `\${${name(g)}#'${g.one("}", "*", "a")}'}`,
    ),
    "word: $( )": expansion(
      (g) => `$(${inner(g)})`,
      (g) => `$( ${inner(g)} )`,
      (g) => `$(${inner(g)} # a\n)`,
      (g) => `$(\n${inner(g)}\n)`,
    ),
    "word: $( ) with case": (g) => `$(case a in ${g.one("a", "(a")}) ${inner(g)};; esac)`,
    "word: $(< file)": expansion((g) => `$(${g.one("", " ")}<${g.one("", " ")}${g.one("a.txt", "b.txt", "none")})`),
    "word: backticks": expansion(
      (g) =>
        `\`${g.one("echo a", "cat a.txt", "pwd", "echo a b | cat", "ls; pwd", "", "true && echo a", "echo 'pwn'")}\``,
      (g) => `\`${inner(g).replaceAll(/[`\\$"]/g, "")}\``,
    ),
    "word: backslashes in backticks": (g) =>
      g.one("`echo \\$x`", "`echo \\\\$x`", "`echo '\\\\'`", '"`echo \\"a\\"`"', "`echo \\a`", "`\\pwn`"),
    "word: nested backticks": (g) =>
      g.one(
        "`echo \\`echo a\\``",
        '`echo "\\`echo a\\`"`',
        "`echo $(echo \\`pwd\\`)`",
        '"`echo \\`pwd\\``"',
        "`echo \\\\\\`pwn\\\\\\``",
      ),
    "word: $(( ))": expansion((g) => `$((${g.piece(arithmetic)}))`),
    "word: $[ ]": (g) => `$[${g.one("1", "1+1", "x", "a[0]", "1 > 2")}]`,
    "word: <( )": (g) => `<(${inner(g)})`,
    "word: >( )": (g) => `>(${g.one("cat", "cat > /dev/null", "head")})`,
    "word: parts": (g) => g.some(2, 3, () => g.piece(word)).join(""),
    "word: # inside": (g) => g.one("a#b", "a#", "'a'#b", "$x#pwn", "\\#a", "a\\\n#b", "''#pwn"),
    "word: = inside": (g) => g.one("a=b", "--x=a", "a+=b", "=", "a==b", `x=${g.name()}`, "a=(b)", "-x=a"),
    "word: odd characters": (g) =>
      g.one(
        "ä",
        "a\u00a0b",
        "\u2028",
        "日本",
        "a\u3000b",
        "😀",
        "a^b",
        "a%b",
        "a@b",
        "a:b",
        "!",
        "a!b",
        "^a",
        "%1",
        "-",
        "--",
        "+",
      ),
    "word: odd dollar": (g) =>
      g.one("$", "a$", "$/", "$.", "$=", "$%", "$'a'$", '$"a"$', "$:", "a$,b", '"$"', '$""', "$''", "$]", "$}"),
  },
};
