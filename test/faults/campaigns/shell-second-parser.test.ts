/**
 * Goal: `shell` finds the commands that another parser finds, and no others. Method: mvdan/sh reports the prefixes of
 * commands in the texts of the corpus (spec/vectors/functions/shell.json). It reads each text once for each word, which
 * takes longer than the other tests of `shell`.
 */
import assert from "node:assert/strict";
import { before, suite, test } from "node:test";
import { parse } from "sh-syntax";
import { functions } from "../../../packages/readers/src/ir.ts";
import { readRows, record, type Json } from "../../support/contract-records.ts";
import { control } from "../../support/controls/control.ts";

const shell = functions.find(({ name }) => name === "shell");
assert.ok(shell?.load !== undefined);
const rows = readRows("shell");

suite("the function shell compared with another parser", () => {
  before(async () => shell.load?.());

  test("shell finds exactly the commands that a second parser finds", async () => {
    let compared = 0;
    const differences: string[] = [];
    for (const { text, expected } of rows) {
      const found = record(shell, text);
      if (expected === "error" || typeof found === "string" || text === "" || ambiguous.has(text)) continue;
      const own = (found["commands"] as readonly Json[]).filter(({ wrapper }) => wrapper === "");
      const [ours, others] = [names(own.map(({ program }) => String(program))), await commandsByOther(text)];
      if (ours.join(" ") !== others.join(" ")) differences.push(`${text}: ${ours.join(" ")}, but ${others.join(" ")}`);
      compared += 1;
    }
    assert.deepEqual(differences, []);
    assert.ok(compared >= 80, `${compared}`);
  });

  control("positive control: a command that shell misses is noticed by the second parser", async () => {
    assert.deepEqual(await commandsByOther("echo \"$(rm x)\" 'ls' # id"), ["echo", "rm"]);
  });
});

/** Text inserted before `rm` becomes its name there, as in `coproc NAME command`. */
const ambiguous = new Set(["coproc rm x"]);

const keywords = new Set(
  "if then else elif fi while until do done for case esac select { } ! time [[ ]] in function coproc".split(" "),
);

/**
 * Returns the words at which commands start, by mvdan/sh. Its tree does not show them here, but its errors do: an array
 * assignment before a command is an error, and only there.
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

/** Returns the word that starts here, without its quotes. */
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
