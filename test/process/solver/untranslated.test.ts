/**
 * Goal: a function that the solver cannot model leaves the rest of a tool comparable, and an unknown answer names that
 * function. Method: a first user's contract with one change next to `date()`, and similar ones with other functions.
 * The engine decided each call in an answer. The positive control removes the engine's values.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import {
  compareContracts,
  openSolver,
  type Solver,
  type ToolDifference,
} from "../../../packages/workbench/src/analysis/mod.ts";
import {
  compileContracts,
  loadFunctions,
  renderDiagnostic,
  type PolicySet,
} from "../../../packages/readers/src/contract.ts";
import { control } from "../../support/controls/control.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Returns the one note about a rule. */
function saysOne(rule: string, notes: readonly string[]): void {
  const found = notes.filter((note) => note.includes(`rule ${rule} `));
  assert.equal(found.length, 1, notes.join("\n"));
  says(`rule ${rule} cannot be modelled`, found[0] ?? "");
}

const travel = (rules: string): string => `contract: travel
limits: { ask_above_eur: 500, budget_eur: 2000, hosts: [air.example, rail.example] }
platform:
  type: object
  additionalProperties: false
  required: [today, user]
  properties:
    today: { type: string }
    user:
      type: object
      additionalProperties: false
      required: [id, timezone]
      properties: { id: { type: string }, timezone: { type: string } }
tools:
  flights.book:
    input:
      type: object
      additionalProperties: false
      required: [eur, page, command, payee]
      properties:
        eur: { type: number, minimum: 0 }
        page: { type: string }
        command: { type: string }
        payee: { type: string }
    requires: platform.present
    otherwise: ALLOW
counters:
  trip_spend: { of: flights.book, per: platform.user.id, sum: input.eur, counting: possible }
  paid: { of: flights.book, per: platform.user.id, remembers: input.payee, counting: possible }
rules:
  - rule: ask
    on: flights.book
    when: input.eur > limits.ask_above_eur
    verdict: ESCALATE
    reason: "{input.eur} EUR needs a person"
  - rule: over-budget
    on: flights.book
    when: counters.trip_spend + input.eur > limits.budget_eur
    verdict: BLOCK
    reason: over the budget
${rules}`;

const rule = (name: string, when: string, verdict = "BLOCK"): string =>
  `  - { rule: ${name}, on: flights.book, when: ${JSON.stringify(when)}, verdict: ${verdict}, reason: it is so }\n`;
const stale = rule("stale-date", "platform.today != date(now, platform.user.timezone)");
const more = (text: string): string => text.replace("> limits.ask_above_eur", "> limits.ask_above_eur + 100");

async function load(text: string): Promise<PolicySet> {
  const policySet = compileContracts([{ name: "c.yaml", text }]);
  assert.ok(policySet.ok, policySet.ok ? "" : policySet.problem.map(renderDiagnostic).join("\n"));
  await loadFunctions(policySet.value);
  return policySet.value;
}

suite("functions that the solver cannot model", { tags: ["first-use-6"] }, () => {
  const opened = openSolver();
  after(async () => (await opened)?.close());
  const compared = async (
    before: string,
    other: string,
    by: (solver: Solver) => Solver = (solver) => solver,
  ): Promise<ToolDifference> => {
    const solver = await opened;
    assert.ok(solver, "z3-solver is not installed");
    const options = { solver: by(solver), timeMs: 120_000, guesses: 0 };
    const [found] = await compareContracts(await load(before), await load(other), options);
    assert.ok(found);
    return found;
  };

  const beside: readonly (readonly [what: string, rules: string])[] = [
    ["date() of a fact's time zone", stale],
    ["hour() and day()", rule("office", "hour(now, 'UTC') < 8 || day(now, platform.user.timezone) == 'sunday'")],
    ["url()", rule("host", "!(url(input.page).host in limits.hosts)")],
    ["shell()", rule("program", "!shell(input.command).commands.all(c, c.name in ['ls', 'date', 'cd'])")],
    ["date() and url()", stale + rule("host", "!(url(input.page).host in limits.hosts)")],
  ];
  for (const [what, rules] of beside) {
    test(`diff reports a raised limit as weaker beside ${what} and shows a call`, async () => {
      const found = await compared(travel(rules), more(travel(rules)));
      assert.deepEqual(
        [found.answer, found.defects, [...found.shown.keys()]],
        ["weaker", [], ["weaker"]],
        found.notes.join(),
      );
      const shown = found.shown.get("weaker");
      assert.deepEqual([shown?.before.verdict, shown?.after.verdict], ["ESCALATE", "ALLOW"]);
    });
  }

  test("diff finds two spellings of a rule with the same function call equivalent", async () => {
    const other = rule("stale-date", "!(date(now, platform.user.timezone) == platform.today)");
    assert.equal((await compared(travel(stale), travel(other))).answer, "equivalent");
  });

  control("positive control: without the engine's values no call is confirmed, and the rule is named", async () => {
    const blind = (solver: Solver): Solver => ({
      ...solver,
      ask: async (text, ...rest) => (text.includes("2023-11-") ? { kind: "unknown" } : solver.ask(text, ...rest)),
    });
    const found = await compared(travel(stale), more(travel(stale)), blind);
    assert.equal(found.answer, "unknown");
    saysOne("stale-date", found.notes);
  });

  test("diff names the rule if no tried value shows the change of its condition", async () => {
    const before = rule("host", "similar(input.page, ['air.example'])");
    const other = rule("host", "similar(input.page, ['air.example', 'zzzz'])");
    const found = await compared(travel(before), travel(other));
    assert.equal(found.answer, "unknown");
    saysOne("host", found.notes);
  });

  test("diff names the rule if it cannot model the values of a counter", async () => {
    const before = rule("new", "!(input.payee in counters.paid)", "ESCALATE");
    const found = await compared(travel(before), travel(before.replace("input.payee in", "input.payee + '' in")));
    assert.equal(found.answer, "unknown");
    saysOne("new", found.notes);
  });
});
