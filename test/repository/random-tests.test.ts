/**
 * Goal: every random test can be repeated from a line of its output. Method: read the syntax trees of all sources of
 * tests. A random test takes its seed by `seedOf` and prints it, or gives `randomRuns` to fast-check. A test with a fixed
 * seed needs neither. A test also fails by chance if it wants a text absent that a random hash can contain.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { parseSync, Visitor } from "oxc-parser";
import { control } from "../support/controls/control.ts";

/** Every source of chance has one of these words; a file without them is not parsed. */
const words = /\bfc\.|\bMath\.random\b|SEED|\bseedOf\b|\bDice\b|\bChance\b|\bdoesNotMatch\b|!.+\.includes\(/;
/** A text that a hash of 64 digits contains now and then. */
const chanceText = /^[0-9a-f]{1,5}$/;
/** The only file that draws a seed. */
const source = "test/support/random-test.ts";

function faultsOf(path: string, text: string): readonly string[] {
  if (path === source || !words.test(text)) return [];
  const faults: string[] = [];
  const called = new Set<string>();
  const report = (start: number, fault: string): void =>
    void faults.push(`${path}:${text.slice(0, start).split("\n").length} ${fault}`);
  new Visitor({
    CallExpression({ start, callee, arguments: given }) {
      const name = text.slice(callee.start, callee.end);
      called.add(name);
      const [, options] = given;
      const shown = options === undefined ? "" : text.slice(options.start, options.end);
      const isSeeded = /\brandomRuns\(|\bseed\b|^runs$/.test(shown);
      if (/^fc\.(?:assert|check|sample)$/.test(name) && !isSeeded)
        report(start, `${name}: give it randomRuns(t, cases)`);
      const absent = name === "assert.doesNotMatch" ? shown.replaceAll(/^\/|\/[a-z]*$/g, "").split("|") : [];
      if (absent.some((each) => chanceText.test(each))) report(start, "a random hash can contain this text");
      if (name === "Math.random") report(start, "Math.random: take a seed by seedOf(variable)");
    },
    UnaryExpression({ start, operator, argument }) {
      if (operator !== "!" || argument.type !== "CallExpression") return;
      const [wanted] = argument.arguments;
      const isSearch = text.slice(argument.callee.start, argument.callee.end).endsWith(".includes");
      if (isSearch && wanted?.type === "Literal" && chanceText.test(String(wanted.value)))
        report(start, "a random hash can contain this text");
    },
    MemberExpression({ start, end }) {
      if (/^process\.env\["\w*SEED"\]$/.test(text.slice(start, end))) report(start, "read the variable by seedOf");
    },
    NewExpression({ start, callee, arguments: [seed] }) {
      const isDice = /^(?:Dice|Chance)$/.test(text.slice(callee.start, callee.end));
      const isFixed = seed?.type === "Literal";
      if (isDice && !isFixed && path.endsWith(".test.ts") && !/\bseedOf\(/.test(text))
        report(start, "take the seed by seedOf(variable)");
    },
  }).visit(parseSync(path, text).program);
  const isSilent = called.has("seedOf") && !called.has("printSeed");
  return isSilent ? [...faults, `${path} does not print its seed: call printSeed(t, ...)`] : faults;
}

const bad: readonly (readonly [text: string, fault: RegExp])[] = [
  ["fc.assert(fc.property(fc.nat(), holds));", /:1 fc\.assert: give it randomRuns/],
  ["\nfc.check(property, { numRuns: 9 });", /:2 fc\.check: give it randomRuns/],
  ["fc.sample(fc.nat(), 9);", /fc\.sample: give it randomRuns/],
  ["const seed = Math.floor(Math.random() * 9);", /:1 Math\.random/],
  ['const seed = Number(process.env["A_SEED"] ?? 1);', /read the variable by seedOf/],
  ["const dice = new Dice(Date.now());", /take the seed by seedOf/],
  ["const chance = new Chance(seed);", /take the seed by seedOf/],
  ["assert.doesNotMatch(text, /anna|1200/);", /a random hash can/],
  ['assert.ok(!text.includes("4711"));', /a random hash can/],
  ['const seed = seedOf("A_SEED");', /does not print its seed/],
];

const good: readonly string[] = [
  "fc.assert(property, randomRuns(t));",
  "fc.assert(property, { numRuns: 9, seed: 1 });",
  "fc.check(property, runs);",
  'const text = "Math.random()";',
  "const chance = new Chance(7);",
  'assert.doesNotMatch(text, /anna|1200\\.5/); assert.ok(!text.includes("invoice") && text.includes("4711"));',
  'const seed = seedOf("A_SEED"); test("a", (t) => printSeed(t, { cases: 1, seed, variable: "A_SEED" }), new Dice(seed));',
];

suite("random tests", () => {
  test("every random test takes its seed from a variable and prints it", () => {
    const paths = globSync("test/**/*.ts").map((path) => path.replaceAll("\\", "/"));
    assert.ok(paths.includes(source));
    assert.deepEqual(
      paths.flatMap((path) => faultsOf(path, readFileSync(path, "utf8"))),
      [],
    );
  });

  control("positive control: a random test that nobody can repeat is noticed", () => {
    for (const [text, fault] of bad) {
      const found = faultsOf("test/a.test.ts", text);
      assert.equal(found.length, 1, text);
      assert.match(found[0] ?? "", fault);
    }
    for (const text of good) assert.deepEqual(faultsOf("test/a.test.ts", text), [], text);
  });
});
