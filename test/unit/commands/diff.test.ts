/**
 * Goal: a difference between two tables of commands is shown, and one that may let a command pass is never called
 * equivalent or stricter. Method: pairs of contracts that differ in one part of their table.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { renderDiagnostic, type PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { compileContracts } from "../../../packages/readers/src/compile.ts";
import { compareContracts, compareForms, openSolver } from "../../../packages/workbench/src/analysis/mod.ts";

function contractWith(commands: string): PolicySet {
  const text = `contract: c
commands: ${commands}
let: { run: 'commands(input.command, ".")' }
tools:
  t:
    input: { type: object, additionalProperties: false, required: [command], properties: { command: { type: string } } }
    otherwise: BLOCK
rules:
  - { rule: listed, on: t, when: run.verdict == "ALLOW", verdict: ALLOW, reason: listed }
`;
  const compiled = compileContracts([{ name: "c.yaml", text }]);
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  return compiled.value;
}

const cat = "{ run: cat, words: reads FILE, does: reads }";
const push = "{ run: git push, does: sends, reason: r }";
const pairs: readonly (readonly [title: string, before: string, after: string, shown: readonly string[]])[] = [
  ["a form that permits", `{ forms: [${cat}] }`, `{ forms: [${cat}, { run: ls, does: reads }] }`, ["ls added weaker"]],
  ["a stricter form", `{ forms: [${cat}] }`, `{ forms: [${cat}, ${push}] }`, ["git push added stricter"]],
  ["a permission that goes", `{ forms: [${cat}] }`, "{ forms: [] }", ["cat removed stricter"]],
  ["a stricter form that goes", `{ forms: [${cat}, ${push}] }`, `{ forms: [${cat}] }`, ["git push removed weaker"]],
  [
    "another option",
    `{ forms: [${cat}] }`,
    `{ forms: [{ run: cat, options: [-n], words: reads FILE, does: reads }] }`,
    ["cat changed weaker"],
  ],
  ["a variable", `{ forms: [${cat}] }`, `{ forms: [${cat}], variables: [CI] }`, ["variable CI added weaker"]],
  [
    "a generated folder less",
    `{ forms: [${cat}], generated: [a, b] }`,
    `{ forms: [${cat}], generated: [a] }`,
    ["generated folder b removed stricter"],
  ],
  [
    "the style of a program",
    `{ forms: [${cat}] }`,
    `{ forms: [${cat}], programs: { cat: { style: single } } }`,
    ["program cat added weaker"],
  ],
  [
    "another example",
    `{ forms: [${cat}] }`,
    `{ forms: [{ run: cat, words: reads FILE, does: reads, examples: [cat a] }] }`,
    [],
  ],
];

suite("differences of tables of commands", () => {
  for (const [title, before, after, shown] of pairs)
    test(title, () => {
      const changes = compareForms(contractWith(before), contractWith(after));
      assert.deepEqual(
        changes.map(({ name, change, direction }) => `${name} ${change} ${direction}`),
        shown,
      );
    });
});

test("a tool whose table changed is not equivalent, and one whose table is the same is", async () => {
  const solver = await openSolver();
  try {
    const before = contractWith(`{ forms: [${cat}] }`);
    const [same] = await compareContracts(before, contractWith(`{ forms: [${cat}] }`), { solver, timeMs: 5000 });
    assert.equal(same?.answer, "equivalent");
    const after = contractWith(`{ forms: [${cat}, { run: ls, does: reads }] }`);
    const [other] = await compareContracts(before, after, { solver, timeMs: 5000 });
    assert.notEqual(other?.answer, "equivalent");
    assert.notEqual(other?.answer, "stricter");
  } finally {
    await solver?.close();
  }
});
