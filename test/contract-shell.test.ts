/**
 * Goal: `shell` names every command that a text would run, or fails.
 * Method: a corpus of hostile and plain texts with what is known of each (spec/vectors/functions/shell.json); a second
 * parser (mvdan/sh) says where commands begin in the same texts; random texts come to a value or to an
 * `EvaluationError`. Beside them, a naive reader that fails on the corpus.
 */
import assert from "node:assert/strict";
import { before, suite, test } from "node:test";
import fc from "fast-check";
import { parse } from "sh-syntax";
import { compileContracts, loadFunctions } from "../src/contract/mod.ts";
import { functions } from "../src/contract/ir.ts";
import { compile, conditionText, judge, snapshot } from "./contract-kit.ts";
import { readRows, record, type Json } from "./contract-records.ts";

const shell = functions.find(({ name }) => name === "shell");
assert.ok(shell?.load !== undefined);
const rows = readRows("shell");

/** The record of a text as JSON, or the message of its error. */
function read(text: string): Json | string {
  assert.ok(shell !== undefined);
  return record(shell, text);
}

/** What a row of the corpus may speak of. */
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

test("before its parser is brought in, a call is an error [contract.language]", () => {
  assert.equal(read("ls"), "the shell parser is not loaded");
});

suite("shell", () => {
  before(async () => shell.load?.());

  test(`the corpus: ${rows.length} texts [contract.language]`, () => {
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

  test("positive control: a reader of the first word alone fails on the corpus", () => {
    const missed = rows.filter(({ text, expected }) => {
      if (expected === "error") return false;
      return JSON.stringify(expected["commands"]) !== JSON.stringify(text.trim().split(/\s+/).slice(0, 1));
    });
    assert.ok(missed.length > 80, `${missed.length} of ${rows.length}`);
  });

  test("a second parser finds a command where shell does, and nowhere else", async () => {
    let compared = 0;
    const differences: string[] = [];
    for (const { text, expected } of rows) {
      const found = read(text);
      if (expected === "error" || typeof found === "string" || text === "" || ambiguous.has(text)) continue;
      const own = (found["commands"] as readonly Json[]).filter(({ wrapper }) => wrapper === "");
      const [ours, others] = [names(own.map(({ program }) => String(program))), await commandsByOther(text)];
      if (ours.join(" ") !== others.join(" ")) differences.push(`${text}: ${ours.join(" ")}, but ${others.join(" ")}`);
      compared += 1;
    }
    assert.deepEqual(differences, []);
    assert.ok(compared >= 80, `${compared}`);
  });

  test("positive control: the second parser sees a command that shell were to miss", async () => {
    assert.deepEqual(await commandsByOther("echo \"$(rm x)\" 'ls' # id"), ["echo", "rm"]);
  });

  test("every text comes to a value or to an EvaluationError", () => {
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
      { numRuns: 3000 },
    );
  });

  test("what hangs on length is bounded", () => {
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

  test("a contract with it decides, and blocks on doubt", async () => {
    const condition = "!shell(input.s).commands.all(c, c.name in limits.names)";
    const force = compile(conditionText(condition, { limits: "{ names: [ls, head], most: 1 }" }));
    const text = (s: string): string => judge(force, { platform: snapshot, input: { n: 1, s } }).verdict;
    await loadFunctions(force);
    assert.equal(text("ls -la | head -5"), "ALLOW");
    assert.equal(text("ls | head; rm x"), "BLOCK");
    assert.equal(text("ls $("), "BLOCK");
    const silent = judge(compile(conditionText("shell(input.s).background")), {
      platform: snapshot,
      input: { n: 1, s: "$x" },
    });
    assert.match(silent.reason, /known only when it runs/);
  });

  test("fields that it has not do not compile", () => {
    const text = conditionText("shell(input.s).commands.exists(c, c.nmae == 'rm')");
    assert.ok(!compileContracts([{ name: "c.yaml", text }]).ok);
  });
});

/** What is put in before `rm` becomes its name there, as `coproc NAME command` has it. */
const ambiguous = new Set(["coproc rm x"]);

const keywords = new Set(
  "if then else elif fi while until do done for case esac select { } ! time [[ ]] in function coproc".split(" "),
);

/**
 * The words at which commands begin, by mvdan/sh. Its tree does not show them here, but its errors do: an array may be
 * assigned before no command, and it says so only where a command stands.
 */
async function commandsByOther(text: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { index } of text.matchAll(/(?<![\w/.-])[^ \t\n;&|()<>`]/g)) {
    const word = wordAt(text, index);
    if (keywords.has(word) || /^(?:-|\d+$|[A-Za-z_]\w*(?:\[.*\])?\+?=)/s.test(word)) continue;
    const message = await problem(`${text.slice(0, index)}x=(1) ${text.slice(index)}`);
    if (/inline variables cannot be arrays/.test(message)) found.push(word);
  }
  return names(found);
}

async function problem(text: string): Promise<string> {
  try {
    await parse(text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** The word that begins here, without its quotes. */
function wordAt(text: string, from: number): string {
  const [raw = ""] = /^(?:\\.|\$?'(?:[^'\\]|\\.)*'|"[^"]*"|[^ \t\n;&|()<>`'"\\])+/s.exec(text.slice(from)) ?? [];
  return raw
    .replace(/\$'((?:[^'\\]|\\.)*)'/g, (_, body: string) =>
      body.replace(/\\x([0-9a-f]{2})/g, (__, hex: string) => String.fromCharCode(parseInt(hex, 16))),
    )
    .replace(/['"]/g, "")
    .replace(/\\(.)/gs, "$1");
}

function names(list: readonly string[]): readonly string[] {
  return [...new Set(list)].toSorted();
}
