/**
 * Goal: no command line passes a contract with the ready packs that reads a secret, leaves the workspace, runs code from
 * elsewhere, sends or destroys; ordinary ones pass. Method: texts of attackers, each ALLOW once, and their harmless twins.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, suite, test } from "node:test";
import { loadFunctions, renderDiagnostic, type PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { compileContracts } from "../../../packages/readers/src/compile.ts";
import { findWrongExamples } from "../../../packages/readers/src/tables.ts";
import { control } from "../../support/controls/control.ts";
import { judge } from "../../support/contract-kit.ts";
import { ordinary } from "./ordinary.ts";
import { taskAttacks } from "./tasks.ts";
import { attacks } from "./texts.ts";

const contracts = join(import.meta.dirname, "../../../contracts");
const packs = globSync("packs/*.yaml", { cwd: contracts }).toSorted();

/** A contract that lets a command run if its table and the rules about places do. @param verdict of listed commands */
function contractWith(names: readonly string[], secrets = "limits.secrets"): PolicySet {
  const text = `contract: c
commands: { from: [${names.join(", ")}] }
limits: { open: [/srv/app/src, /srv/app/dist] }
let: { run: 'commands(input.command, "/srv/app")' }
tools:
  t:
    input: { type: object, additionalProperties: false, required: [command], properties: { command: { type: string } } }
    otherwise: { verdict: ESCALATE, reason: "{run.reason}" }
rules:
  - { rule: listed, on: t, when: run.verdict == "ALLOW", verdict: ALLOW, reason: "{run.reason}" }
  - { rule: refused, on: t, when: run.verdict == "BLOCK", verdict: BLOCK, reason: "{run.reason}" }
  - { rule: secrets, on: t, when: '(run.reads + run.writes).naming(${secrets}) != []', verdict: BLOCK, reason: a secret }
  - { rule: settings, on: t, when: 'run.writes.naming(limits.settings) != []', verdict: BLOCK, reason: a setting }
  - rule: outside
    on: t
    when: '(run.reads + run.writes + run.lists).outside(["/srv/app"]) != []'
    verdict: ESCALATE
    reason: outside
  - { rule: folders, on: t, when: 'run.trees.outside(limits.open) != []', verdict: ESCALATE, reason: "everything below {run.trees}" }
`;
  const files = names.map((name) => ({
    name,
    text: readFileSync(join(contracts, name), "utf8"),
  }));
  const compiled = compileContracts([{ name: "c.yaml", text }, ...files]);
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  return compiled.value;
}

function verdictOf(policySet: PolicySet, command: string): string {
  const { verdict, reason } = judge(policySet, { input: { command } });
  return `${verdict}: ${reason}`;
}

suite("command lines under the ready packs", () => {
  const contract = contractWith(packs);
  before(() => loadFunctions(contract));

  for (const command of [...attacks, ...taskAttacks])
    test(`not ALLOW: ${command.split("\n", 1)[0] ?? ""}`, () =>
      assert.doesNotMatch(verdictOf(contract, command), /^ALLOW/));

  for (const command of ordinary)
    test(`ALLOW: ${command.split("\n", 1)[0] ?? ""}`, () => assert.match(verdictOf(contract, command), /^ALLOW/));

  test("each example has its answer under all packs together", async () => {
    const table = contract.tables.get("c") ?? assert.fail("no table");
    assert.deepEqual(
      (await findWrongExamples(table)).map(({ message }) => message),
      [],
    );
    assert.ok(table.forms.filter(({ examples }) => examples.length > 0).length > 30);
  });

  control("positive control: without the names of secrets, some of the texts pass", () => {
    const careless = contractWith(packs, '["nothing"]');
    assert.ok(attacks.some((command) => verdictOf(careless, command).startsWith("ALLOW")));
  });
});
