import { joined, type Grammar, type Kind } from "./grammar.ts";
import { word } from "./grammar-words.ts";

const source = (g: Grammar): string => g.one("a.txt", "b.txt", "none", g.file(), "/dev/null");

export const redirect: Kind = {
  frame: (g, piece) =>
    g.one(
      `echo a ${piece}`,
      `${piece} echo a`,
      `echo ${piece} a`,
      `cat a.txt ${piece}`,
      `{ echo a; } ${piece}`,
      `echo a ${piece}; ls`,
      `: ${piece}; cat a.txt`,
      `(echo a) ${piece}; ls`,
    ),
  productions: {
    "redirect: > file": (g) => `>${g.one("", " ")}${g.target()}`,
    "redirect: >> file": (g) => `>>${g.one("", " ")}${g.target()}`,
    "redirect: >| file": (g) => `>|${g.one("", " ")}${g.target()}`,
    "redirect: < file": (g) => `<${g.one("", " ")}${source(g)}`,
    "redirect: <> file": (g) => `${g.one("", "3")}<>${g.one("", " ")}${g.one("scratch.txt", "written", "/dev/null")}`,
    "redirect: &> file": (g) => `&>${g.one("", " ")}${g.target()}`,
    "redirect: &>> file": (g) => `&>>${g.one("", " ")}${g.target()}`,
    "redirect: >& word": (g) => `>&${g.one("", " ")}${g.one("2", "1", g.target(), "-", "2-", "written")}`,
    "redirect: 2>&1": (g) => g.one("2>&1", "1>&2", ">&2", "2>&-", "3>&1", "<&0", "<&-", "0<&3", "2>&1-", "<& 0"),
    "redirect: number > file": (g) => `${g.one("1", "2", "3", "12", "01")}>${g.target()}`,
    "redirect: number < file": (g) => `${g.one("0", "3", "12")}<${source(g)}`,
    "redirect: number apart from >": (g) => `${g.one("1", "2", "12")} >${g.target()}`,
    "redirect: {name}<file": (g) =>
      joined(
        "{",
        g.one("x", "y", "fd", "a[0]", "PATH", "PATH", "IFS"),
        "}",
        g.one("<", ">", ">>", "<>", ">|"),
        g.one("/dev/null", "scratch.txt"),
      ),
    "redirect: {name}>&-": (g) => `{${g.one("x", "y", "fd", "PATH")}}${g.one(">&-", "<&-", ">&1", "<&0")}`,
    "redirect: <<< word": (g) => `<<<${g.one("", " ")}${g.chance(0.5) ? g.name() : g.piece(word)}`,
    "redirect: < <( )": (g) => `< <(${g.one("echo a", "cat a.txt", "pwd")})`,
    "redirect: > >( )": (g) => `> >(${g.one("cat", "head -1", "cat > /dev/null")})`,
    "redirect: > word": (g) =>
      joined(
        "> ",
        g.one(
          "'written'",
          '"written"',
          "writt\\en",
          "$'written'",
          "w''ritten",
          "scratch.{txt,}",
          "scratch.tx*",
          "$x",
          "$(echo written)",
        ),
      ),
    "redirect: without a blank": (g) =>
      `${g.one("a", "x", "''", "{x}", "a1", "\\\\2")}${g.one(">", ">>", "<", ">|", "<>")}${g.one("scratch.txt", "/dev/null")}`,
    "redirect: two": (g) => `${g.piece(redirect)} ${g.piece(redirect)}`,
  },
};

/** A line in a here-document that shells do not expand. */
const quotedLine = (g: Grammar): string =>
  g.one(
    g.hostile(),
    "a",
    "",
    "E ",
    " E",
    "\tE",
    "\\E",
    "$E",
    "EE",
    "#",
    "\\",
    "'",
    '"',
    "`",
    "$(",
    "E)",
    "'E'",
    "E;pwn",
  );
const plainLines: readonly string[] = [
  "a",
  "",
  "E ",
  " E",
  "\tE",
  "\\E",
  "EE",
  "#",
  "'",
  '"',
  "E)",
  "'E'",
  "pwn",
  ";pwn",
  "a\\",
  "\\\\",
  "'$x'",
  "E;pwn",
  "<(pwn)",
  "{a,b}",
  "~",
];
/** A line in a here-document that shells expand. */
const line = (g: Grammar): string =>
  g.one(
    ...plainLines,
    g.hostile().replaceAll(/[$`\\]/g, "\\$&"),
    g.one(
      "$x",
      "${x-a}",
      "$(echo a)",
      "`echo a`",
      "$((1))",
      '"$x"',
      "${x-'}'}",
      "$'a'",
      '$"a"',
      "$(echo ')')",
      "$(echo '\nE\n')",
    ),
  );

const body = (g: Grammar, write: (g: Grammar) => string): string => g.some(0, 3, () => `${write(g)}\n`).join("");

const after = (g: Grammar): string => g.one("", "", "\n", "\necho b", "\n# a", "\n\ncat a.txt");

export const hereDocument: Kind = {
  frame: (_g, piece) => piece,
  productions: {
    "here-document: bare": (g) => `cat <<${g.one("", " ")}E\n${body(g, line)}E${after(g)}`,
    "here-document: single quotes": (g) => `cat <<${g.one("", " ")}'E'\n${body(g, quotedLine)}E${after(g)}`,
    "here-document: double quotes": (g) => `cat <<"E"\n${body(g, quotedLine)}E${after(g)}`,
    "here-document: backslash": (g) => `cat <<\\E\n${body(g, quotedLine)}E${after(g)}`,
    "here-document: quoted in part": (g) =>
      joined(
        "cat <<",
        g.one('"E"F', "E'F'", "E\\F", "'E''F'", "''EF", '"E\\F"'),
        "\n",
        body(g, quotedLine),
        g.one("EF", "EF", "E\\F"),
        after(g),
      ),
    "here-document: <<-": (g) =>
      joined(
        "cat <<-",
        g.one("E", "'E'", " E", "\\E"),
        "\n",
        g.some(0, 2, () => `\t${g.one("a", "\\$(pwn)", "pwn", "E ", "")}\n`).join(""),
        g.one("\t", "", "\t\t"),
        "E",
        after(g),
      ),
    "here-document: two on a line": (g) =>
      `cat <<E ${g.one("", "-")} <<'F'\n${body(g, line)}E\n${body(g, quotedLine)}F${after(g)}`,
    "here-document: commands after it": (g) =>
      joined(
        "cat <<",
        g.one("E", "'E'"),
        " ",
        g.one("| cat", "&& echo a", "; echo a", "> written", "# a", "|\ncat", "2>&1", "a.txt", "&&\necho b"),
        "\n",
        body(g, line),
        "E",
        after(g),
      ),
    "here-document: in a substitution": (g) =>
      g.one(
        `echo $(cat <<'E'\n${body(g, quotedLine)}E\n)`,
        `echo "$(cat <<E\n${body(g, line)}E\n)"`,
        `echo \`cat <<'E'\na\nE\n\``,
        `(cat <<E\n${body(g, line)}E\n)`,
      ),
    "here-document: backslash and newline": (g) =>
      g.one(
        `cat <<E\na\\\nE\nb\nE${after(g)}`,
        `cat <<'E'\na\\\nE${after(g)}`,
        `cat <<E\n\\\nE${after(g)}`,
        `cat <<E\nE\\\n\nE`,
        `cat <<\\\nE\na\nE`,
        `cat <<E\n\\\\\nE\necho b`,
      ),
    "here-document: in a compound": (g) =>
      g.one(
        `if cat <<E\n${body(g, line)}E\nthen echo a; fi`,
        `{ cat <<'E'\n${body(g, quotedLine)}E\n}`,
        `while false; do cat <<E\na\nE\ndone`,
        `for x in a; do cat <<E; done\n${body(g, line)}E`,
      ),
    "here-document: odd end": (g) => {
      const end = g.one(
        "a.b",
        "1",
        "-",
        "E-F",
        "E_F",
        "a..b",
        "+E",
        "E:",
        "%",
        "é",
        "E,F",
        "a=b",
        "{E}",
        "!",
        "=",
        "@",
      );
      return `cat <<${end}\n${body(g, line)}${end}${after(g)}`;
    },
    "here-document: expansion as its end": (g) => {
      const end = g.one("$E", "${E}", "E$", "$(E)", "`E`", "$((1))", "$1");
      return `cat <<${end}\n${body(g, quotedLine)}${end}${after(g)}`;
    },
    "here-document: $'E'": (g) =>
      joined(
        "cat <<",
        g.one("$'E'", "$'E'", "a$'E'", "$'\\x45'"),
        "\n",
        g.one("$E", "a$E", "$'E'", "E"),
        "\n",
        g.one("pwn", "touch PWNED", "echo a"),
        "\n",
        g.one("E", "aE"),
        "\n",
      ),
    'here-document: $"E"': (g) =>
      joined(
        "cat <<",
        g.one('$"E"', 'a$"E"', '$"E"'),
        "\n",
        g.one("$E", "a$E", "E"),
        "\n",
        g.one("pwn", "touch PWNED", "echo a"),
        "\n",
        g.one("E", "aE"),
        "\n",
      ),
  },
};
