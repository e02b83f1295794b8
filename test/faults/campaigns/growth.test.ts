/**
 * Goal: the time to read a text grows no faster than its length, so no text of an agent stops the gate. Method: every
 * pattern in `wire` and `contract` gets texts in which a part is repeated: of texts that the pattern matches, and of its
 * own characters. Every function that reads a text gets repeated pieces of its language. Times for a text and for a
 * quarter of it are compared in this process. Positive controls: patterns and a pass that once were too slow are found.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { before, suite, test } from "node:test";
import fc from "fast-check";
import { parseSync, Visitor } from "oxc-parser";
import type { ContractFunction } from "../../../packages/core/src/contract/core/function.ts";
import { Dice } from "../../support/campaign/random.ts";
import { control } from "../../support/controls/control.ts";
import { growthOf, type Growth, type Hostile } from "../../support/growth.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const sources = new URL("../../../packages/", import.meta.url).pathname;
const seed = seedOf("SVC_GROWTH_SEED", 7);

/** Patterns on texts whose length is bounded elsewhere, with the bound. */
const bounded: Readonly<Record<string, string>> = {
  [String.raw`/\{[^},]*\}|\{[^}]*\.\.[^}]*\}/`]: "a glob is a literal of at most 256 characters",
  [String.raw`/\{[^}]*(?:\/|\*\*)[^}]*\}/`]: "a glob is a literal of at most 256 characters",
  [String.raw`/(?:^|\})[^{]*,/`]: "a glob is a literal of at most 256 characters",
  "/0+$/": "a number has at most 100 digits",
};

/** Patterns that once stopped the gate, or could have. */
const slow: readonly RegExp[] = [
  /\{[^]*(?:,|\.\.)[^]*\}/,
  /^(?:[ \t]|\[\[|\]\]|!|-[a-zA-Z]{1,2}|==?|!=|=~)*$/,
  /^(?:[()|]|;|;;&?|;&)*$/,
  /^\s*[A-Za-z_]\w*[-+*%]?=(?:[\w+*%-]|\$\([^()]*\)|\$\w+)*\s*$/,
  /[0-9.]+$/,
  /\[[^\]]*\]/,
  /^[A-Za-z]*[IF][A-Za-z]*$/,
  /^(?:[ \t]*[()]?[ \t]*)$/,
];

const characters = Array.from("a0 \n\t.-=/[]{}(),$'\"\\:%@#|&;<>*?!+~^_`A");
const ofPattern = { length: 4096, leastMs: 1 };

/** Returns texts with a repeated part: of the pattern's own characters, and of texts that it matches. */
function hostileTexts({ source }: RegExp, dice: Dice): readonly Hostile[] {
  const written = [...new Set(source.replaceAll(/\\(?:x[0-9a-f]{2}|p\{\w+\}|[a-z])/gi, ""))];
  const own = written.length === 0 ? characters : written;
  const some = (least: number, most: number): string =>
    Array.from({ length: Math.floor(dice.between(least, most + 1)) }, () =>
      dice.oneOf(dice.roll() < 0.25 ? characters : own),
    ).join("");
  const random = Array.from({ length: 200 }, () => ({ before: some(0, 4), pump: some(1, 4), after: some(0, 2) }));
  const parts = matched(source).flatMap((text) => {
    const from = Math.floor(dice.between(0, text.length));
    const to = from + Math.floor(dice.between(1, 5));
    return { before: text.slice(0, from), pump: text.slice(from, to), after: `${text.slice(to)}\u0001` };
  });
  return [...random, ...parts];
}

/** Returns texts that the pattern matches, or nearly matches: without its looks around. */
function matched(source: string): readonly string[] {
  const plain = source
    .replaceAll(/\(\?<?[=!](?:[^()\\[]|\\.|\[(?:[^\]\\]|\\.)*\]|\((?:[^()\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*\))*\)/g, "")
    .replaceAll(/\\p\{\w+\}/gi, "a")
    .replaceAll(/\[\^(?:[^\]\\]|\\.)*\]/g, (negated) => oneOf(new RegExp(negated)));
  try {
    const texts = fc.sample(fc.stringMatching(new RegExp(plain), { size: "xsmall" }), { numRuns: 120, seed });
    return texts.filter((text) => text !== "").map((text) => text.slice(0, 16));
  } catch {
    return []; // the sampler does not know the form; the random texts remain
  }
}

function oneOf(set: RegExp): string {
  const codes = characters.filter((character) => set.test(character)).map((character) => character.charCodeAt(0));
  return `[${codes.map((code) => `\\x${code.toString(16).padStart(2, "0")}`).join("")}]`;
}

/** Returns the text for which the pattern's time grows most; undefined if it grows no faster than the length. */
function worstOf(pattern: RegExp): Growth | undefined {
  const work = pattern.global
    ? (text: string): void => void text.replace(pattern, "")
    : (text: string): void => void pattern.test(text);
  for (const hostile of hostileTexts(pattern, new Dice(seed))) {
    const growth = growthOf(work, hostile, ofPattern);
    if (growth !== undefined) return growth;
  }
  return undefined;
}

/** The patterns that are written as literals, and those that a module makes when it is loaded. */
async function patterns(): Promise<readonly RegExp[]> {
  const made: RegExp[] = [];
  const Original = RegExp;
  globalThis.RegExp = new Proxy(Original, {
    construct(target, args: [string, string?]) {
      const pattern = new target(...args);
      made.push(pattern);
      return pattern;
    },
  });
  try {
    await import("../../../packages/readers/src/mod.ts");
    await import("../../../packages/readers/src/shell/shell.ts");
    await import("../../../packages/readers/src/sql/sql.ts");
    await import("../../../packages/readers/src/net/read-url.ts");
  } finally {
    globalThis.RegExp = Original;
  }
  const literals = globSync("{core/src/{contract,wire},readers/src}/**/*.ts", { cwd: sources }).flatMap((file) => {
    const found: RegExp[] = [];
    const { program } = parseSync(file, readFileSync(`${sources}${file}`, "utf8"));
    new Visitor({
      Literal(node) {
        if ("regex" in node) found.push(new RegExp(node.regex.pattern, node.regex.flags));
      },
    }).visit(program);
    return found;
  });
  return [...new Map([...made, ...literals].map((pattern) => [String(pattern), pattern])).values()];
}

/** Pieces to repeat, and the contexts in which they are repeated; `PUMP` stands for them. */
interface Language {
  readonly pieces: readonly string[];
  readonly contexts: readonly string[];
  readonly length: number;
  /** Longer arguments after the text. */
  readonly more?: readonly (readonly string[])[];
}

/** A `·` at the end of a line is a space. */
const lines = (text: string): readonly string[] =>
  text
    .trim()
    .split("\n")
    .map((line) => line.replace(/·+$/, " "));

const shell: Language = {
  pieces: [
    ...lines(String.raw`
{a,
{..
{
}
{a..{b,
$(
)
${"`"}ls${"`"}·
${"`"}
''
'
"
\a
~:
x=a·
; ls
| ls·
<a·
>a·
2>&1·
<<<a·
((
[[ a == b ]] &&·
!·
=
-a·
case a in b) ;; esac;·
for i in a; do·
if a; then·
while a; do·
f() {·
(
{·
$x
$$
$?
$#
$${"$"}{
${"$"}{x
${"$"}{x:-
${"$"}{#x}
$((1+
$ab
a[
]
a[1]=x·
env A=b·
sudo·
time·
xargs·
sh -c·
-n·
-c a=b·
-exec a ';'·
-name a·
# a
&&·
&
1
.
,
x/
../
*
?
@(
%n
%0
\x25
let a=1;·
read a;·
$'\x41'
`),
    "<<E\n",
    "<<'E'\na\nE\n",
    "\n",
    "\t",
    "\\\n",
    "$a\n",
    "é",
  ],
  contexts: lines(String.raw`
PUMP
echo PUMP
echo "PUMP"
echo 'PUMP'
echo $(PUMP)
echo ${"$"}{x:-PUMP}
[[ PUMP ]]
((x=PUMP))
x=PUMP
a[PUMP]=1
grep PUMP x
find . PUMP
git PUMP
tar PUMP
ssh PUMP
env PUMP
test PUMP
read PUMP
printf 'PUMP' a
sh -c 'PUMP'
PUMP --version
ls > PUMP
case a in PUMP) ;; esac
for i in PUMP; do ls; done
`).concat("cat <<E\nPUMP\nE\n", "cat <<'E'\nPUMP\nE\n", "cat <<-E\nPUMP\nE\n"),
  length: 4096,
};

const languages: Readonly<Record<string, Language>> = {
  shell,
  sql: {
    pieces: lines(String.raw`
1+
+
-
+-
1<
a,
a.
a[1]
(
not·
union select 1·
select 1;
case when 1 then·
with a as (
join a on 1=1·
'a'·
\
*
--
-- a
/*
"
$$
é
`).concat("-- a\n"),
    contexts: lines(
      "PUMP\nselect PUMP\nselect PUMP1\nselect 'PUMP'\nselect /*PUMP*/1\nselect 1 PUMP\nselect \"PUMP\"\nselect a from PUMP",
    ),
    length: 4096,
  },
  url: {
    pieces: lines("%41\na.\n../\n@\n/\n?\n&a=b\n#\n:\n[\n%\nxn--\n;\n.\né"),
    contexts: lines(
      "PUMP\nhttps://PUMP\nhttps://a.com/PUMP\nhttps://a.com/?PUMP\nhttps://a.com/#PUMP\nhttps://PUMP.com/\nhttps://a.com:PUMP",
    ),
    length: 16_384,
  },
  email: {
    pieces: lines('a\nb.\n@\n\\a\n"\n+\n(\n<\né'),
    contexts: lines('PUMP\nPUMP@b.com\na@PUMP\na@PUMPcom\n"PUMP"@b.com\n<PUMP>'),
    length: 16_384,
  },
  patch: {
    pieces: [
      "+a\n",
      " a\n",
      "-a\n",
      "@@ a\n",
      "@@\n",
      "*** ",
      "*** Add File: a\n",
      "*** Update File: a\n",
      "*** Move to: b\n",
      "\r",
      "\t",
      " ",
      "\n",
      "é",
      "*** End of File\n",
    ],
    contexts: [
      "PUMP",
      "*** Begin Patch\nPUMP*** End Patch",
      "*** Begin Patch\n*** Update File: a\nPUMP\n*** End Patch",
      "*** Begin Patch\n*** Update File: PUMP\n@@\n*** End Patch",
    ],
    length: 16_384,
  },
};

const plain: Language = {
  pieces: lines("a\nA\n1\n.\n,\n/\n../\n a\n-\n'\n1,\n111,\n1.\n 111\n{\n*\n@\n:\n::\né\nrn\na.\n%\n1h\n-1"),
  contexts: ["PUMP", "/PUMP", "aPUMPb", "1PUMP"],
  length: 16_384,
};

/** Command lines in which a part is repeated. */
const commandLines: readonly Hostile[] = [
  ["git log ", "a ", ""],
  ["git push ", "a ", ""],
  ["git push ", "-uf ", ""],
  ["ls ", "-la ", ""],
  ["cat ", "a* ", ""],
  ["cat src/", "a*", ""],
  ["cat ", "a/../", "b"],
  ["cat ./", "[", ""],
  ["cat ./", "[[:", "]"],
  ["cat ./", "[a\\\\", "]"],
  ["rm -rf ", "dist ", ""],
  ["npx jest ", "={", ""],
  ["npx jest x", "= ", ""],
  ["cat ", "{a,", "b}"],
  ["cat ", "{a,b}", ""],
  ["odd rm -rf ", "rm x ", ""],
  ["odd ", "a=b:c@d ", ""],
  ["odd ", "a=", ""],
  ["git show -- '", "a*", "'"],
  ["sed '", "s/a/b/;", "' x"],
  ["sed '/", "[a]", "/p' x"],
  ["awk '", "a>1{b}", "' x"],
  ["", "git status;", ""],
  ["", "cd a && ", "cat b"],
  ["", "cd a;", "cat b"],
  ["for f in ", "a ", '; do cat "$f"; done'],
  ["find . ", "-name '*.ts' ", "-print"],
  ["cat > x <<'E'\n", "a line of text\n", "E\n"],
  ["npm test -- ", "a ", ""],
].map(([start = "", pump = "", after = ""]) => ({ before: start, pump, after }));

/** The values of the other parameters, by kind. */
const others: Readonly<Record<string, readonly unknown[]>> = {
  string: ["a", "a.a", "aaaaaaaaaaaaaaaaaaaab", "/srv/a", "Europe/Berlin"],
  number: [1],
  list: [["example.com", "paypal.com"]],
};

suite("time to read a text", () => {
  const readers: { readonly name: string; readonly run: (text: string) => void; readonly language: Language }[] = [];
  let all: readonly RegExp[] = [];

  before(async () => {
    all = await patterns();
    const { functions } = await import("../../../packages/readers/src/mod.ts");
    for (const one of functions.filter(({ parameters: [first], bind }) => first === "string" && bind === undefined)) {
      await one.load?.();
      for (const args of argumentsOf(one))
        readers.push({
          name: [one.name, ...args.map(String)].join(" "),
          run: (text) => {
            try {
              one.run([text, ...args] as never);
            } catch {} // an EvaluationError is an answer too
          },
          language: languages[one.name] ?? plain,
        });
    }
  });

  test("no pattern needs more than linear time", (t) => {
    printSeed(t, { cases: all.length, seed, variable: "SVC_GROWTH_SEED" });
    assert.ok(all.length > 300);
    const found = all.flatMap((pattern) => {
      const growth = worstOf(pattern);
      return growth === undefined ? [] : [{ pattern: String(pattern), ...growth }];
    });
    assert.deepEqual(
      found.filter(({ pattern }) => bounded[pattern] === undefined),
      [],
    );
    const unused = Object.keys(bounded).filter((pattern) => !all.map(String).includes(pattern));
    assert.deepEqual(unused, []);
  });

  test("a command line under the ready packs needs no more than linear time", async () => {
    const [{ load }, { readCommands }, { compileContracts }] = await Promise.all([
      import("../../../packages/readers/src/shell/shell.ts"),
      import("../../../packages/readers/src/commands/judge.ts"),
      import("../../../packages/readers/src/compile.ts"),
    ]);
    await load();
    const names = globSync("contracts/packs/*.yaml", { cwd: new URL("../../../", import.meta.url) });
    const files = names.map((name) => ({
      name,
      text: readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8"),
    }));
    const text = `contract: c\ncommands: { from: ${JSON.stringify(names)} }\ntools: {}\n`;
    const compiled = compileContracts([{ name: "c.yaml", text }, ...files]);
    const table = compiled.ok ? compiled.value.tables.get("c") : undefined;
    assert.ok(table !== undefined);
    const readText = (command: string): void => {
      try {
        const read = readCommands(command, table, "/srv/app");
        read.answer();
        read.line();
      } catch {} // a text in doubt is an answer too
    };
    const found = commandLines.flatMap((hostile) => growthOf(readText, hostile, { length: 8192, leastMs: 50 }) ?? []);
    assert.deepEqual(found, []);
  });

  control("positive control: patterns that once were too slow are found", () => {
    assert.deepEqual(slow.filter((pattern) => worstOf(pattern) === undefined).map(String), []);
  });

  control("positive control: the shell's reader with a former pattern for braces is found", async () => {
    const { readShellText, understood } = await import("../../../packages/readers/src/shell/shell.ts");
    const [former] = slow;
    assert.ok(former !== undefined);
    const braces = (bare: string): boolean => !former.test(bare);
    const read = (text: string): void => void readShellText(text, { ...understood, braces });
    const hostile = { before: "echo ", pump: "{a,", after: "" };
    assert.ok(growthOf(read, hostile, { length: 2048, leastMs: 15 }) !== undefined);
    assert.equal(
      growthOf((text) => void readShellText(text), hostile, { length: 2048, leastMs: 15 }),
      undefined,
    );
  });

  control("positive control: a time that grows up to a bound is linear, one that goes on to grow is not", () => {
    const hostile = { before: "", pump: "a", after: "" };
    const found = (depthMax: number): boolean => {
      const timeOf = ({ length }: string): number => (length * Math.min(length, depthMax)) / 1e5;
      return growthOf(() => {}, hostile, { length: 1024, leastMs: 5, timeOf }) !== undefined;
    };
    assert.deepEqual([found(1024), found(Infinity)], [false, true]);
  });

  test("no function needs more than linear time for a text", (t) => {
    printSeed(t, { cases: readers.length, seed, variable: "SVC_GROWTH_SEED" });
    const found = readers.flatMap(({ name, run, language: { pieces, contexts, length } }) =>
      [...pieces, ...pairsOf(pieces)].flatMap((pump) =>
        contexts.flatMap((context) => {
          const [start = "", end = ""] = context.split("PUMP");
          const growth = growthOf(run, { before: start, pump, after: end }, { length, leastMs: 15 });
          return growth === undefined ? [] : [{ name, ...growth }];
        }),
      ),
    );
    assert.deepEqual(found, []);
  });
});

/** Some pairs of pieces, chosen by the seed. */
function pairsOf(pieces: readonly string[]): readonly string[] {
  const dice = new Dice(seed);
  return Array.from({ length: 40 }, () => dice.oneOf(pieces) + dice.oneOf(pieces));
}

function argumentsOf({ parameters }: ContractFunction): readonly (readonly unknown[])[] {
  const [, ...rest] = parameters;
  return rest.reduce<readonly (readonly unknown[])[]>(
    (lists, kind) => lists.flatMap((list) => (others[kind] ?? []).map((value) => [...list, value])),
    [[]],
  );
}
