/**
 * Goal: `shell` names every command that a text would run, or fails. Method: a corpus of hostile and plain texts with
 * their known properties (spec/vectors/functions/shell.json). Random texts give a value or an `EvaluationError`. A
 * naive reader fails on the corpus. A second parser reads the same texts in contract-shell-second-parser.test.ts.
 */
import assert from "node:assert/strict";
import { before, suite, test } from "node:test";
import fc from "fast-check";
import { compileContracts, loadFunctions } from "../../../../../packages/readers/src/contract.ts";
import { functions } from "../../../../../packages/readers/src/ir.ts";
import { compile, conditionText, judge, snapshot } from "../../../../support/contract-kit.ts";
import { readRows, record, type Json } from "../../../../support/contract-records.ts";
import { control } from "../../../../support/controls/control.ts";
import { randomRuns } from "../../../../support/random-test.ts";
import { sentencesOf } from "../../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

const shell = functions.find(({ name }) => name === "shell");
assert.ok(shell?.load !== undefined);
const rows = readRows("shell");

/** Returns the record of a text as JSON, or the message of its error. */
function read(text: string): Json | string {
  assert.ok(shell !== undefined);
  return record(shell, text);
}

/** Returns the properties that a row of the corpus may state. */
function seen(of: Json): Json {
  const commands = of["commands"] as readonly Json[];
  const each = (name: string): unknown => commands.map((command) => command[name]);
  return {
    ...of,
    commands: each("name"),
    wrappers: each("wrapper"),
    args: each("args"),
    flags: each("flags"),
    files: each("files"),
    globs: each("globs"),
    subcommands: each("subcommand"),
    scripts: (of["scripts"] as readonly Json[]).map(({ language, text }) => [language, text]),
  };
}

test("a call of shell is an error until its parser is loaded", { tags: ["contract.language"] }, () => {
  const message = read("ls");
  assert.ok(typeof message === "string");
  says("the parser is not loaded", message);
});

suite("shell", () => {
  before(async () => shell.load?.());

  test(`shell reads the ${rows.length} texts of the corpus correctly`, { tags: ["contract.language"] }, () => {
    assert.ok(rows.length >= 80);
    for (const { text, expected, why } of rows) {
      const found = read(text);
      const label = `${why}: ${JSON.stringify(text.slice(0, 200))}`;
      if (expected === "error") assert.equal(typeof found, "string", label);
      else {
        assert.ok(typeof found === "object", `${label}: ${JSON.stringify(found)}`);
        const parts = seen(found);
        assert.deepEqual(Object.fromEntries(Object.keys(expected).map((key) => [key, parts[key]])), expected, label);
      }
    }
  });

  control("positive control: a reader that takes only the first word is noticed", () => {
    const missed = rows.filter(({ text, expected }) => {
      if (expected === "error") return false;
      return JSON.stringify(expected["commands"]) !== JSON.stringify(text.trim().split(/\s+/).slice(0, 1));
    });
    assert.ok(missed.length > 80, `${missed.length} of ${rows.length}`);
  });

  test("every text gives a value or an EvaluationError", (t) => {
    const piece = fc.oneof(
      fc.constantFrom(...rows.map(({ text }) => text.slice(0, 200))),
      fc.constantFrom(
        ..."$ ( ) ` ' \" { } ; & | < > \n \\ # ! [ ] * ~ = <<E sudo xargs find -exec eval sh -c env git -".split(" "),
      ),
      fc.string({ unit: "binary", maxLength: 8 }),
    );
    const mutated = fc
      .tuple(fc.constantFrom(...rows.map(({ text }) => text.slice(0, 300))), fc.nat(300), fc.nat(20), piece)
      .map(([text, at, length, put]) => text.slice(0, at) + put + text.slice(at + length));
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(piece, { maxLength: 8 }).map((parts) => parts.join("")),
          mutated,
        ),
        (text) => {
          read(text);
        },
      ),
      randomRuns(t, 3000 * share),
    );
  });

  test("shell refuses texts that repeat a construct too often or exceed 32,768 characters", () => {
    for (const unit of [
      "$(",
      "`",
      "{ ",
      "((",
      "<<a ",
      "if ",
      "sudo ",
      "a;",
      "find -exec ",
      "eval ",
      '"$(',
      "case a in a) ",
    ])
      assert.equal(typeof read(unit.repeat(30_000 / unit.length)), "string", unit);
    assert.equal(typeof read("x".repeat(32_769)), "string");
    assert.equal(typeof read("x".repeat(32_768)), "object");
  });

  test("a contract that uses shell blocks a text that shell cannot read with certainty", async () => {
    const condition = "!shell(input.s).commands.all(c, c.name in limits.names)";
    const policySet = compile(conditionText(condition, { limits: "{ names: [ls, head], most: 1 }" }));
    const text = (s: string): string => judge(policySet, { platform: snapshot, input: { n: 1, s } }).verdict;
    await loadFunctions(policySet);
    assert.equal(text("ls -la | head -5"), "ALLOW");
    assert.equal(text("ls | head; rm x"), "BLOCK");
    assert.equal(text("ls $("), "BLOCK");
    const silent = judge(compile(conditionText("shell(input.s).background")), {
      platform: snapshot,
      input: { n: 1, s: "$x" },
    });
    says("a command that is known only when it runs", silent.reason);
  });

  test("a contract that names an unknown field of shell does not compile", () => {
    const text = conditionText("shell(input.s).commands.exists(c, c.nmae == 'rm')");
    assert.ok(!compileContracts([{ name: "c.yaml", text }]).ok);
  });
});
