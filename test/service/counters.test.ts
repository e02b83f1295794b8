/**
 * Goal: counters are exact across parallel calls, restarts and changes. Method: the gate's answers are compared with a
 * count that the test makes from the calls themselves; a fold at start is compared with a sum over GET /receipts.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { compileContracts, planLookups, count, decide, prepare, recount } from "../../packages/readers/src/contract.ts";
import { ask, check, startGate, temporaryFolder, type Running } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const wallet = "{ type: object, required: [wallet], properties: { wallet: { type: string } } }";
const amount =
  "{ type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number, minimum: 0 } } }";

/** Returns a contract with a budget of 100 for each wallet and at most 10 calls in a session, both kept by counters. */
function contract(counters: string, rules = ""): string {
  return `contract: purse
platform: ${wallet}
tools:
  pay: { input: ${amount}, requires: [{ when: platform.present, reason: no wallet }], otherwise: ALLOW }
  look: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
counters:
${counters}
rules:
  - { rule: quiet, on: [look], when: "false", verdict: BLOCK, reason: never }
${rules}`;
}

const spent = "  spent: { of: [pay], per: platform.wallet, sum: input.amount, counting: possible }";
const budget =
  '  - { rule: budget, on: [pay], when: counters.spent + input.amount > 100, verdict: BLOCK, reason: "{counters.spent} is spent" }';
const looks = "  looks: { of: [look], per: session }";
const often =
  '  - { rule: often, on: [look], when: counters.looks >= 10, verdict: BLOCK, reason: "{counters.looks} looks" }';
const both = contract(`${spent}\n${looks}`, `${budget}\n${often}`);

const pay = (value: number | string, name = "w"): string =>
  `{"tool_name":"pay","tool_input":{"amount":${value}},"session_id":"s","platform_state":{"wallet":"${name}"}}`;
const look = (session: string): object => ({ tool_name: "look", tool_input: {}, session_id: session });

async function verdictsOf(answers: readonly Promise<{ readonly json: { verdict: string } }>[]): Promise<string[]> {
  return (await Promise.all(answers)).map(({ json }) => json.verdict);
}

function allowed(verdicts: readonly string[]): number {
  return verdicts.filter((verdict) => verdict === "ALLOW").length;
}

test("a budget allows only one of two concurrent payments that exceed it together", async (t) => {
  const gate = await startGate(t, { contracts: { "purse.yaml": both } });
  for (let round = 0; round < 20; round += 1) {
    const pair = [check(gate, pay(60, `w${round}`)), check(gate, pay(60, `w${round}`))];
    assert.equal(allowed(await verdictsOf(pair)), 1, `round ${round}`);
  }
  const thousandths = Array.from({ length: 60 }, () => check(gate, pay("2.5000", "exact")));
  assert.equal(allowed(await verdictsOf(thousandths)), 40);
});

test("a limit of ten allows exactly ten of fifty parallel calls in each session", async (t) => {
  const gate = await startGate(t, { contracts: { "purse.yaml": both } });
  const sessions = ["a", "b", "A", "a "];
  const answers = Array.from({ length: 50 }, () => sessions.map((session) => check(gate, look(session)))).flat();
  const verdicts = await verdictsOf(answers);
  for (const [at, session] of sessions.entries()) {
    assert.equal(allowed(verdicts.filter((_, index) => index % sessions.length === at)), 10, JSON.stringify(session));
  }
});

test(
  "a repeated call gets another row and counts again",
  { tags: ["receipt.retry-second-row", "error.retry-counts-again"] },
  async (t) => {
    const gate = await startGate(t, { contracts: { "purse.yaml": both } });
    for (let n = 0; n < 5; n += 1) {
      await check(gate, look("retry"));
      await check(gate, look("retry"));
    }
    const eleventh = (await check(gate, look("retry"))).json;
    assert.deepEqual([eleventh.verdict, eleventh.reason], ["BLOCK", "Svc: 10 looks"]);
    assert.equal(eleventh.receipt.seq, 11);
  },
);

test("sessions with the same id under different keys have separate counters", () => {
  const compiled = compileContracts([{ name: "purse.yaml", text: both }]);
  assert.ok(compiled.ok);
  const request = {
    toolName: "look",
    toolInput: new Map(),
    sessionId: "s",
    platformState: null,
    inputText: "{}",
    platformText: null,
  };
  const keys = ["one", "two"].map((keyName) => {
    const prepared = prepare(compiled.value, request, { keyName, sessionId: "s" });
    const [lookup] = planLookups(prepared, 1).lookups;
    const decision = decide(planLookups(prepared, 1), ["0"]);
    const [move] = count(prepared, { verdict: decision.verdict, answered: decision.verdict });
    assert.ok(lookup !== undefined && lookup.key === move?.key);
    return lookup.key;
  });
  assert.notEqual(keys[0], keys[1]);
});

/** Serves the folder again, with another contract. */
async function again(t: TestContext, gate: Running, text: string, mandate?: string): Promise<Running> {
  await gate.stop();
  const files = { contracts: { "purse.yaml": text }, ...(mandate === undefined ? {} : { mandate }) };
  return startGate(t, { folder: gate.folder, ...files });
}

test("a counter survives a restart", async (t) => {
  let gate = await startGate(t, { folder: temporaryFolder(t), contracts: { "purse.yaml": both } });
  for (let n = 0; n < 12; n += 1) {
    const { json } = await check(gate, look("s"));
    assert.equal(json.verdict, n < 10 ? "ALLOW" : "BLOCK");
    if (n % 3 === 2) gate = await again(t, gate, both);
  }
  assert.equal((await check(gate, pay(70))).json.verdict, "ALLOW");
  gate = await again(t, gate, both);
  assert.equal((await check(gate, pay(31))).json.reason, "Svc: 70 is spent");
});

/** Returns the sums that the counter `spent` would have, from the receipts as the API shows them. */
async function naiveFold(
  gate: Running,
  counting: (row: { verdict: string; answered: string }) => boolean,
): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  const { receipts } = (await ask(gate, "/receipts?limit=1000&tool_name=pay")).json;
  for (const row of receipts) {
    const name = row.platform_state?.wallet;
    if (name === undefined || typeof row.tool_input.amount !== "number" || row.tool_input.amount < 0) continue;
    if (counting(row)) sums.set(name, (sums.get(name) ?? 0) + row.tool_input.amount);
  }
  return sums;
}

const reading =
  '  - { rule: read, on: [pay], when: counters.spent >= 0, verdict: ESCALATE, reason: "{counters.spent}" }';

for (const [counting, counts] of [
  ["attempts", () => true],
  ["released", ({ answered }) => answered === "ALLOW"],
  ["possible", ({ answered }) => answered !== "BLOCK"],
  ["blocked", ({ verdict }) => verdict === "BLOCK"],
] as const satisfies readonly (readonly [string, (row: { verdict: string; answered: string }) => boolean])[]) {
  test(`the gate computes a new counter (${counting}) from the receipts before it serves`, async (t) => {
    let gate = await startGate(t, { folder: temporaryFolder(t), contracts: { "purse.yaml": both } });
    for (let n = 0; n < 40; n += 1) await check(gate, pay(n, `w${n % 5}`));
    await check(gate, pay('"7"'));
    await check(gate, { tool_name: "pay", tool_input: { amount: 1 } });
    const expected = await naiveFold(gate, counts);
    const counter = `  spent: { of: [pay], per: platform.wallet, sum: input.amount, counting: ${counting} }`;
    gate = await again(t, gate, contract(counter, reading));
    for (const name of ["w0", "w1", "w2", "w3", "w4", "w5"]) {
      assert.equal((await check(gate, pay(0, name))).json.reason, `Svc: ${expected.get(name) ?? 0}`, name);
    }
  });
}

test("a restored counter includes the calls made while its definition was removed", async (t) => {
  let gate = await startGate(t, { folder: temporaryFolder(t), contracts: { "purse.yaml": both } });
  await check(gate, pay(10));
  gate = await again(t, gate, contract(looks));
  await check(gate, pay(20));
  gate = await again(t, gate, contract(looks));
  await check(gate, pay(30));
  gate = await again(t, gate, contract(spent, reading));
  assert.equal((await check(gate, pay(1))).json.reason, "Svc: 60");
  assert.equal((await check(gate, pay(1))).json.reason, "Svc: 60", "a call does not count what it holds itself");
  assert.equal((await check(gate, pay(2))).json.reason, "Svc: 61");
});

test("a counter that the mandate starts empty ignores earlier receipts", async (t) => {
  let gate = await startGate(t, { folder: temporaryFolder(t), contracts: { "purse.yaml": contract(looks) } });
  await check(gate, pay(40));
  const mandate =
    "mandate: test\ncontracts: [contracts/purse.yaml]\ncounters: { purse: { spent: { starts: empty } } }\n";
  gate = await again(t, gate, contract(spent, reading), mandate);
  assert.equal((await check(gate, pay(1))).json.reason, "Svc: 0");
});

test("a counter is unknown and its rule blocks if earlier receipts do not fit it", async (t) => {
  const loose = contract(looks).replace("type: number, minimum: 0", "type: [number, string]");
  let gate = await startGate(t, { folder: temporaryFolder(t), contracts: { "purse.yaml": loose } });
  assert.equal((await check(gate, pay('"forty"'))).json.verdict, "ALLOW");
  gate = await again(t, gate, contract(spent, reading));
  const { verdict, reason } = (await check(gate, pay(1))).json;
  assert.equal(verdict, "BLOCK");
  says("the counter is not known", reason);
});

test("a counter shared by two contracts starts empty only if the mandate says so for both", async (t) => {
  let gate = await startGate(t, { folder: temporaryFolder(t), contracts: { "purse.yaml": contract(looks) } });
  await check(gate, pay(40));
  await gate.stop();
  const first = contract(spent, reading);
  const files = { "a.yaml": first, "b.yaml": first.replace("contract: purse", "contract: second") };
  const mandate =
    "mandate: test\ncontracts: [contracts/a.yaml, contracts/b.yaml]\n" +
    "counters: { second: { spent: { starts: empty } } }\n";
  gate = await startGate(t, { folder: gate.folder, contracts: files, mandate });
  assert.equal((await check(gate, pay(1))).json.reason, "Svc: 40");
});

type Refused = readonly [
  counting: string,
  rule: string,
  verdict: "BLOCK" | "ALLOW",
  input: string,
  wallet: string | null,
];
const misfit = '{"amount":"forty"}';
const fitting = '{"amount":40}';

/** The recorded outcome of a call, and the counter's updates for it; undefined if the updates are unknown. */
const recorded: readonly (readonly [...Refused, moves: number | undefined])[] = [
  ["possible", "purse.$otherwise", "ALLOW", fitting, "w", 1],
  ["possible", "purse.$otherwise", "ALLOW", misfit, "w", undefined],
  ["possible", "purse.often", "BLOCK", misfit, "w", 0],
  ["released", "purse.often", "BLOCK", misfit, "w", 0],
  ["blocked", "purse.$otherwise", "ALLOW", misfit, "w", 0],
  ["escalated", "purse.$otherwise", "ALLOW", misfit, "w", 0],
  ["blocked", "purse.often", "BLOCK", misfit, "w", undefined],
  ["attempts", "$route", "BLOCK", misfit, "w", 0],
  ["attempts", "old.$input", "BLOCK", misfit, "w", 0],
  ["attempts", "old.$platform", "BLOCK", misfit, "w", 0],
  ["attempts", "old.$requires.1", "BLOCK", misfit, "w", undefined],
  ["attempts", "old.$requires.1", "BLOCK", fitting, null, 0],
  ["attempts", "old.$otherwise", "ALLOW", fitting, null, undefined],
  ["attempts", "", "BLOCK", misfit, "w", undefined],
];

test("a recorded call that no longer fits the schema counts as zero only if that is certain", () => {
  for (const [counting, rule, verdict, inputText, name, moves] of recorded) {
    const text = contract(spent.replace("possible", counting), reading);
    const compiled = compileContracts([{ name: "purse.yaml", text }]);
    assert.ok(compiled.ok);
    const [counter] = compiled.value.counters;
    assert.ok(counter !== undefined);
    const found = recount(counter, compiled.value, {
      toolName: "pay",
      sessionId: null,
      keyName: "default",
      inputText,
      platformText: name === null ? "null" : JSON.stringify({ wallet: name }),
      verdict,
      answered: verdict,
      rule,
    });
    assert.equal(found?.length, moves, `${counting} ${rule} ${inputText} ${name}`);
  }
});

test("a counter skips calls that it does not count, even if their parts are erased", () => {
  const compiled = compileContracts([{ name: "purse.yaml", text: contract(spent, reading) }]);
  assert.ok(compiled.ok);
  const [counter] = compiled.value.counters;
  assert.ok(counter !== undefined);
  const erased = { toolName: "pay", sessionId: null, keyName: "k", inputText: undefined, platformText: undefined };
  const outcome = { verdict: "BLOCK", answered: "BLOCK", rule: "purse.budget" } as const;
  assert.deepEqual(recount(counter, compiled.value, { ...erased, ...outcome }), []);
});
