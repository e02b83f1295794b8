/**
 * Goal: fmt gives one layout and changes nothing but the layout. Method: a table of inputs and outputs. Every contract
 * of the repository already has the layout. Random spellings of them, with comments anywhere, keep their value and
 * comments, and a second run changes nothing.
 */
import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { CST, Document, Lexer, parse } from "yaml";
import { starterContract, starterMandate } from "../../../packages/gate/src/cli/starter.ts";
import { layOut } from "../../../packages/workbench/src/commands/fmt/layout.ts";
import { readYaml, renderDiagnostic, Report, toJson } from "../../../packages/core/src/contract/mod.ts";
import { spellValue } from "../../../packages/core/src/contract/ir.ts";
import { command } from "../../support/command.ts";
import { control } from "../../support/controls/control.ts";
import { finish } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";
import { randomRuns } from "../../support/random-test.ts";

const says = sentencesOf(import.meta.filename);

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

const root = fileURLToPath(new URL("../../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const ours = ["mandate.yaml", ...globSync(["contracts/**/*.yaml", "examples/**/*.yaml"], { cwd: root })];
const blocks = Array.from(read("spec/contract.md").matchAll(/^```yaml\n([\s\S]*?)^```$/gm), ([, block = ""]) => block);

function laidOut(text: string): string {
  const result = layOut({ name: "c.yaml", text });
  assert.ok(result.ok, result.ok ? "" : `${result.problem.map(renderDiagnostic).join("\n")}\n${text}`);
  return result.value;
}

/** Parses a text; returns undefined if the language's reader refuses it. */
function valueOf(text: string): string | undefined {
  const report = new Report();
  const node = readYaml({ name: "c.yaml", text }, report);
  return node === undefined || report.size > 0 ? undefined : spellValue(toJson(node));
}

/** Reads the comments in another way than the formatter does. */
function comments(text: string): readonly string[] {
  const tokens = [...new Lexer().lex(text)].filter((token) => CST.tokenType(token) === "comment");
  return tokens.map((token) => token.trimEnd()).toSorted();
}

/** Returns one line for each way in which a layout is wrong. */
function faults(before: string, after: string): readonly string[] {
  return [
    valueOf(before) === valueOf(after) ? [] : ["it says something else"],
    comments(before).join("\n") === comments(after).join("\n") ? [] : ["comments are lost"],
  ].flat();
}

suite("the layout that fmt writes", () => {
  const cases: readonly (readonly [goal: string, before: string, after: string])[] = [
    [
      "fmt puts the parts of a contract and the keys of a rule in order",
      "tools: {}\nrules: [ { when: a, rule: r, on: t } ]\ncontract: c",
      "contract: c\ntools: {}\nrules: [{ rule: r, on: t, when: a }]\n",
    ],
    [
      "fmt puts `numbers` between the schema and the requirements of a tool",
      "contract: c\ntools:\n  t:\n    otherwise: ALLOW\n    requires: x\n    numbers: double\n    input: {}",
      "contract: c\n\ntools:\n  t:\n    input: {}\n    numbers: double\n    requires: x\n    otherwise: ALLOW\n",
    ],
    ["fmt removes quotes that have no effect", "contract: 'c'\nsummary: \"a b\"", "contract: c\nsummary: a b\n"],
    [
      "fmt keeps quotes that numbers, words of YAML 1.1 and special characters need",
      `a: ["5", 'no', "null", "", "12:30", '!x', "a: b", "a #b", " a", "{x}", "a,b"]`,
      `a: ["5", "no", "null", "", "12:30", "!x", "a: b", "a #b", " a", "{x}", "a,b"]\n`,
    ],
    [
      "fmt uses single quotes if they save escapes",
      `a: "say \\"x\\""\nb: '"x" is ''y'''`,
      `a: say "x"\nb: '"x" is ''y'''\n`,
    ],
    ["fmt keeps escapes", `a: "\\u202e"\nb: "\\t"`, `a: "\\u202e"\nb: "\\t"\n`],
    ["fmt quotes a text with a comma in brackets only", `a: "x, y"\nb: ["x, y"]`, `a: x, y\nb: ["x, y"]\n`],
    [
      "fmt indents by two spaces",
      "a:\n      b:\n          - c\n          -   d: e\n",
      "a:\n  b:\n    - c\n    - d: e\n",
    ],
    ["fmt indents a list more than its key", "a:\n- b\n# about c\nc: d", "a:\n  - b\n# about c\nc: d\n"],
    [
      "fmt joins braces over several lines if they fit on one",
      "a: {\n  b: c,\n  d: [e,\n f] }",
      "a: { b: c, d: [e, f] }\n",
    ],
    [
      "fmt writes braces that do not fit on one line as a block",
      `a: { b: ${"x".repeat(60)}, c: { d: e }, f: ${"y".repeat(60)} } # why`,
      `a: # why\n  b: ${"x".repeat(60)}\n  c: { d: e }\n  f: ${"y".repeat(60)}\n`,
    ],
    [
      "fmt writes braces with comments inside as a block",
      "a: { # one\n  b: c, # two\n  # three\n  d: [e, # four\n f]\n  # five\n} # six",
      "a: # six\n  # one\n  b: c # two\n  # three\n  d:\n    - e # four\n    - f\n  # five\n",
    ],
    ["fmt keeps a comment between a key and its braces", "a: # why\n     {b: c} # how", "a: # why\n  { b: c } # how\n"],
    [
      "fmt moves a comment out from between a key and its text",
      "a: # why\n  b\nc:\n  # how\n  d",
      "a: b # why\n# how\nc: d\n",
    ],
    ["fmt moves a comment out of empty braces", "a: { # why\n }\nb: [ ]", "# why\na: {}\nb: []\n"],
    [
      "fmt moves a comment behind a dash above the item",
      "a:\n  - # why\n    b: c\n  -\n    d: e",
      "a:\n  # why\n  - b: c\n  - d: e\n",
    ],
    [
      "fmt keeps each comment at the end with its list, key or file",
      "a:\n  b:\n    - c\n    # of the list\n  # of b\n# of the file\n",
      "a:\n  b:\n    - c\n    # of the list\n  # of b\n# of the file\n",
    ],
    [
      "fmt moves a comment together with the key of its rule",
      "rules:\n- # x\n  on: t # t\n  # r\n  rule: r\ncontract: c",
      "",
    ],
    [
      "fmt keeps the lines of a block",
      "a: >-   # why\n     x\n      && y\n\n     z\n\nb: |\n x",
      "a: >- # why\n  x\n   && y\n\n  z\n\nb: |\n  x\n",
    ],
    ["fmt keeps blanks at the end of a line in a block", "a: |-\n   x \nb: c", "a: |-\n  x \nb: c\n"],
    ["fmt quotes a block that keeps its trailing line breaks", "a: |+\n  x\n\nb: c", 'a: "x\\n\\n"\n\nb: c\n'],
    ["fmt joins a text over several lines if it fits on one", "a: b\n  c\n  d", "a: b c d\n"],
    [
      "fmt writes a text that does not fit on one line as a block",
      `a: ${"x".repeat(70)}\n  "${"y".repeat(70)}`,
      `a: >-\n  ${"x".repeat(70)}\n  "${"y".repeat(70)}\n`,
    ],
    ["fmt keeps numbers as they are written", "a: [1.50, 1e3, -0]", "a: [1.50, 1e3, -0]\n"],
    [
      "fmt keeps at most one blank line in a row and none at the start",
      "\n\na:\n\n  b: c\n\n\n  d: e\n\n",
      "a:\n  b: c\n\n  d: e\n",
    ],
    ["fmt replaces the line ends of Windows", "a:\r\n  b: |\r\n    c\r\n    d\r\n", "a:\n  b: |\n    c\n    d\n"],
    [
      "fmt writes null for a key without a value inside braces",
      "a:\n  # why\nb: {c: , d}",
      "a:\n# why\nb: { c: null, d: null }\n",
    ],
    ["fmt removes document markers", "# one\n---\n# two\na: b\n...\n# three", "# one\n# two\na: b\n# three\n"],
  ];
  for (const [goal, before, after] of cases) {
    test(goal, () => {
      const found = laidOut(before);
      if (after !== "") assert.equal(found, after);
      else assert.equal(found, "contract: c\n\nrules:\n  # x\n  # r\n  - rule: r\n    on: t # t\n");
      assert.equal(laidOut(found), found);
    });
  }

  test("fmt separates rules and parts of several lines with blank lines", () => {
    const rule = (name: string): string => `- {rule: ${name}, on: t, when: a, verdict: BLOCK, # why\n reason: r}`;
    const text = laidOut(
      `contract: c\nsummary: s\nlimits: {a: 1}\ntools:\n  t: {}\nrules:\n${rule("r")}\n${rule("s")}`,
    );
    const written = (name: string): string =>
      `  - rule: ${name}\n    on: t\n    when: a\n    verdict: BLOCK # why\n    reason: r\n`;
    const head = "contract: c\nsummary: s\nlimits: { a: 1 }\n\ntools:\n  t: {}\n\nrules:\n";
    assert.equal(text, `${head}${written("r")}\n${written("s")}`);
  });

  test("fmt refuses invalid YAML and names its position", () => {
    for (const text of ["a: [", "a: &x b", "a: 010", "a: b\n---\nc: d", "a: 1\na: 2"]) {
      const result = layOut({ name: "c.yaml", text });
      assert.ok(!result.ok && result.problem.every(({ span }) => span.file.name === "c.yaml"), text);
    }
  });
});

suite("fmt on every contract", () => {
  for (const path of ours) test(`fmt changes nothing in ${path}`, () => assert.equal(laidOut(read(path)), read(path)));

  test("fmt changes nothing in the files that init writes", () => {
    for (const text of [starterContract, starterMandate]) assert.equal(laidOut(text), text);
  });

  test("fmt keeps the values and comments of the contracts in spec/contract.md", () => {
    assert.ok(blocks.length > 2);
    for (const block of blocks) assert.deepEqual(faults(block, laidOut(block)), []);
  });

  test("fmt keeps the value and the comments of a contract in any spelling", (t) => {
    const property = fc.property(spelled(), (before) => {
      if (valueOf(before) === undefined) return;
      const after = laidOut(before);
      assert.deepEqual(faults(before, after), []);
      assert.equal(laidOut(after), after, "the second time");
    });
    fc.assert(property, randomRuns(t, 150 * share));
  });

  test("more than two in five of the random spellings are YAML", () => {
    const texts = fc.sample(spelled(), { seed: 1, numRuns: Math.max(40, 150 * share) });
    const valid = texts.filter((text) => valueOf(text) !== undefined).length;
    assert.ok(valid > 0.4 * texts.length, `only ${valid} of ${texts.length} texts were YAML`);
  });

  control("positive control: a layout that loses a comment or changes a word is noticed", () => {
    const before = "a: b # note 1 end\nc: d\n";
    assert.deepEqual(faults(before, before), []);
    assert.deepEqual(faults(before, "a: b\nc: d\n"), ["comments are lost"]);
    assert.deepEqual(faults(before, "a: b # note 1 end\nc: e\n"), ["it says something else"]);
  });
});

/** Our contracts in any spelling, with comments at random positions; some of these break the YAML. */
function spelled(): fc.Arbitrary<string> {
  const values = [...ours.map(read), ...blocks].map((text): unknown => parse(text));
  return fc
    .tuple(fc.constantFrom(...values), spellings, notes)
    .map(([value, spelling, inserted]) => withNotes(new Document(value).toString(spelling), inserted));
}

const spellings = fc.record({
  indent: fc.integer({ min: 1, max: 7 }),
  indentSeq: fc.boolean(),
  collectionStyle: fc.constantFrom("any", "block", "flow"),
  defaultStringType: fc.constantFrom("PLAIN", "QUOTE_DOUBLE", "QUOTE_SINGLE", "BLOCK_FOLDED", "BLOCK_LITERAL"),
  defaultKeyType: fc.constantFrom("PLAIN", "QUOTE_DOUBLE"),
  lineWidth: fc.constantFrom(0, 20, 80, 200),
  flowCollectionPadding: fc.boolean(),
});

const notes = fc.array(
  fc.record({
    at: fc.nat(400),
    kind: fc.constantFrom("above", "behind", "blank"),
    indent: fc.nat(12),
    ending: fc.constantFrom("", '"', "'{}", ": "),
  }),
  { maxLength: 12 },
);

type Note = (typeof notes extends fc.Arbitrary<(infer N)[]> ? N : never) & {};

/** Puts comments and blank lines between the lines of a text and after them. */
function withNotes(text: string, inserted: readonly Note[]): string {
  const lines = text.split("\n");
  for (const [number, { at, kind, indent, ending }] of inserted.entries()) {
    const line = at % lines.length;
    const note = `# note ${number} ${ending.trim()}end`;
    if (kind === "behind") lines[line] = `${lines[line]} ${note}`;
    else lines.splice(line, 0, kind === "blank" ? "" : " ".repeat(indent) + note);
  }
  return lines.join("\n");
}

suite("svc-gate fmt", () => {
  const messy = "contract:   c\ntools: {}\n";

  function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
    const folder = mkdtempSync(join(tmpdir(), "svc-gate-fmt-"));
    t.after(() => rmSync(folder, { recursive: true }));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    return folder;
  }

  async function fmt(folder: string, ...args: readonly string[]): Promise<{ code: number; out: string }> {
    const { code, stdout, stderr } = await command(["fmt", ...args], { folder });
    return { code, out: stdout + stderr };
  }

  test("fmt --check names the files that would change, and fmt without it writes them", async (t) => {
    const folder = folderWith(t, {
      "c.yaml": messy,
      "other.yaml": "x:   y\n",
      "fine.yaml": "contract: f\ntools: {}\n",
    });
    const file = join(folder, "c.yaml");
    const found = await finish(t, ["fmt", "--check"], { cwd: folder });
    assert.equal(found.code, 1);
    says("--check finds one file", found.stdout + found.stderr);
    assert.equal(readFileSync(file, "utf8"), messy);
    const wrote = await fmt(folder, folder);
    assert.equal(wrote.code, 0);
    says("one file is written", wrote.out);
    assert.equal(readFileSync(file, "utf8"), "contract: c\ntools: {}\n");
    const fine = await fmt(folder, "--check", file);
    assert.equal(fine.code, 0);
    says("--check finds no file", fine.out);
  });

  test("fmt reports the position of an error and leaves the file unchanged", async (t) => {
    const folder = folderWith(t, { "c.yaml": "contract: c\ntools: [\n" });
    const { code, out } = await fmt(folder, join(folder, "c.yaml"));
    assert.equal(code, 2);
    assert.match(out, /--> c\.yaml:3:1/);
    assert.equal(readFileSync(join(folder, "c.yaml"), "utf8"), "contract: c\ntools: [\n");
    assert.equal((await fmt(folder, join(folder, "none.yaml"))).code, 2);
  });

  test("`fmt -` reads standard input and prints the result", async () => {
    const printed = { code: 0, stdout: "contract: c\ntools: {}\n", stderr: "" };
    assert.deepEqual(await command(["fmt", "-"], { input: messy }), printed);
  });
});
