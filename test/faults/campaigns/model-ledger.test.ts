/**
 * Goal: a gate's ledger equals the model's results, in batches and over restarts, and `replay` reproduces it. A
 * contract that returns, or follows another, is folded to the same counters. Method: random scenarios through gates
 * over one ledger each, on the scenario's clock, several calls at a time. Each receipt is compared with the model, then
 * the ledger with itself. LEDGER_RUNS and MODEL_SEED set how many scenarios and which.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { openHistory } from "../../../packages/records/src/history.ts";
import { replayAndFold } from "../../../packages/records/src/deep/deep.ts";
import { replayCommand } from "../../../packages/records/src/replay/command.ts";
import { standsOnErased } from "../../../packages/records/src/replay/replay.ts";
import { otherKind, readReceiptCheck } from "../../../packages/records/src/replay/recorded.ts";
import type { PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { Clock } from "../../../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../../../packages/gate/src/server/service/gate.ts";
import { openLedger, readLedger } from "../../../packages/gate/src/ledger/mod.ts";
import { control } from "../../support/controls/control.ts";
import { temporaryFolder } from "../../support/gate.ts";
import { compile, requestOf } from "../../support/model/engine.ts";
import { generateNext, generateWhole } from "../../support/model/generate-rollout.ts";
import type { Call, Contract, Rule, Scenario } from "../../support/model/language.ts";
import { decideCall, type Receipt } from "../../support/model/model.ts";
import { names, reads } from "../../support/model/walk.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const runs = Number(process.env["LEDGER_RUNS"] ?? 6);
const seed = seedOf("MODEL_SEED");
const callsMax = 40;
/** How long a call waits for a person by default. */
const decideWithinMs = 3_600_000;

/** Groups calls that arrive together: one to four, at the moment of the first, in the gate's order. */
function batchesOf(calls: readonly Call[], from: number): readonly (readonly Call[])[] {
  const batches: Call[][] = [];
  for (let next = 0; next < calls.length;) {
    const size = 1 + ((from + batches.length * 7) % 4);
    const together = calls.slice(next, next + size);
    batches.push(inTurns(together).map((call) => ({ ...call, at: together[0]?.at ?? call.at })));
    next += size;
  }
  return batches;
}

/** Orders the calls: the keys take turns, and the calls of one key keep their order. */
function inTurns(calls: readonly Call[]): readonly Call[] {
  const byKey = [...Map.groupBy(calls, ({ key }) => key).values()];
  return calls.flatMap((_, transaction) => byKey.flatMap((sent) => sent.slice(transaction, transaction + 1)));
}

/** Serves some batches and stops. */
async function serve(data: string, policySet: PolicySet, { mode }: Scenario, batches: readonly (readonly Call[])[]) {
  let now = batches[0]?.[0]?.at ?? 0;
  const ledger = await openLedger({ folder: data, engine: "svc-gate/test" });
  const opened = await openGate({
    policySet,
    ledger,
    clock: new Clock({ wall: () => now, monotonic: () => now }),
    mode,
    keepRefused: (call) => call, // the model writes long texts, and replay needs them whole
    onDefect: ({ rule, defect }) => assert.fail(`a defect in ${rule}: ${String(defect)}`),
  });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  for (const batch of batches) {
    now = batch[0]?.at ?? now;
    const answers = batch.map((call) =>
      gate.check(requestOf(call), { keyName: call.key, bytes: 1000, digest: "0".repeat(64) }),
    );
    for (const { ok } of await Promise.race([Promise.all(answers), gate.failed])) assert.ok(ok);
  }
  await gate.drain();
  await ledger.close();
}

interface Written {
  readonly verdict: string | null;
  readonly rule: string | null;
  readonly answered: string | null;
  readonly observed: readonly (readonly [string, string])[];
}

/** The explanations, with everything that a receipt records about its decision. */
type Found = Written & { readonly text: string };

function shown({ text: _text, ...seen }: Found): Written {
  return seen;
}

interface Said {
  readonly rule: string;
  readonly verdict: string;
}

async function written(data: string): Promise<readonly Found[]> {
  await using history = await openHistory({ folder: data });
  const found: Found[] = [];
  for await (const slice of history.scan(1)) {
    for (const row of slice) {
      if (otherKind(row) !== undefined) continue; // an act about approvals
      const recorded = readReceiptCheck(row);
      if (typeof recorded === "string") assert.fail(recorded);
      const { verdict, rule, answered } = recorded.leaf;
      const { observed = [] } = JSON.parse(recorded.outcomeText) as { readonly observed?: readonly Said[] };
      const pair = (said: Said): readonly [string, string] => [said.rule, said.verdict];
      const text = recorded.outcomeText;
      found.push({ verdict, rule, answered, observed: observed.map(pair), text });
    }
  }
  return found;
}

/**
 * Returns the same schemas and requirements without counters: the next contract's counters are folded from its
 * receipts.
 */
function withoutCounters(scenario: Scenario): Scenario {
  const bare = ({ rules, counters: _counters, ...contract }: Contract): Contract => ({
    ...contract,
    lets: contract.lets.filter(([name]) => rules.some((rule) => isFree(rule) && names(rule.when).has(name))),
    counters: [],
    rules: rules.filter(isFree),
  });
  return { ...scenario, contracts: scenario.contracts.map(bare) };
}

/** Returns whether the rule reads no counter. */
function isFree({ when, lets }: Rule): boolean {
  return lets.length === 0 && !reads(when, []).has("counters");
}

/** Returns the model's results if other contracts decided the calls before an index. */
function expected(
  scenario: Scenario,
  calls: readonly Call[],
  { before, from }: { readonly before: Scenario; readonly from: number } = { before: scenario, from: 0 },
): readonly Written[] {
  const past: Receipt[] = [];
  return calls.map((call, index) => {
    const now = index < from ? before : scenario;
    const { verdict, rule, answered, observed, sound } = decideCall(
      now,
      past.map((each) => undecided(each, call.at)),
      call,
    );
    past.push({ call, verdict, answered, sound });
    return { verdict, rule, answered, observed };
  });
}

/** A call that nobody has decided in time was not possible any more: it counts like a blocked one. */
function undecided(receipt: Receipt, at: number): Receipt {
  const isOver = receipt.answered === "ESCALATE" && at >= receipt.call.at + decideWithinMs;
  return isOver ? { ...receipt, answered: "BLOCK" } : receipt;
}

async function assertReplays(data: string, from: number): Promise<void> {
  const { exitCode, text } = await replayCommand(data, { examples: "3", json: true });
  const { agreed, disagreements, skipped, shown: first } = JSON.parse(text);
  assert.deepEqual([exitCode, disagreements, skipped], [0, 0, []], `seed ${from}: ${JSON.stringify(first, null, 1)}`);
  const ledger = await readLedger(data);
  const { replayed, counters, ...deep } = await replayAndFold(ledger, () => undefined);
  const mayBeUnknown = ledger.counters.some(({ unknownThrough }) => unknownThrough >= 0);
  await ledger.close();
  // If a counter was unknown later than at a row, nobody can tell whether it was unknown at the row.
  const isExpected = deep.notReplayable === 0 || (mayBeUnknown && deep.firstNotReplayable?.why === standsOnErased);
  assert.deepEqual([replayed + deep.notReplayable, deep.differs, isExpected], [agreed, 0, true], `seed ${from}, deep`);
  assert.equal(counters.firstWrong, undefined, `seed ${from}: ${JSON.stringify(counters)}`);
  folded.events += counters.events;
  folded.unverifiable += counters.unverifiable;
}

/** The number of counters that were folded again, and of those that stayed uncertain. */
const folded = { events: 0, unverifiable: 0 };

function compiled(scenario: Scenario): PolicySet | undefined {
  const policySet = compile(scenario);
  return policySet.ok ? policySet.value : undefined;
}

type Work = (data: string, scenario: Scenario, from: number) => Promise<void>;

/** A scenario that folds events again, because a random one may have none. */
const foldingSeed = 101;

async function eachScenario(t: TestContext, work: Work) {
  printSeed(t, { cases: runs, seed, variable: "MODEL_SEED" });
  const folder = temporaryFolder(t);
  for (let from = seed; from < seed + runs; from += 1)
    await work(join(folder, String(from)), generateWhole(from, callsMax), from);
}

suite(`gates over a ledger, ${runs} scenarios from seed ${seed} (set MODEL_SEED to repeat)`, () => {
  test("a gate writes what the model says, also after a restart", (t) =>
    eachScenario(t, async (data, scenario, from) => {
      const policySet = compiled(scenario);
      if (policySet === undefined) return;
      const batches = batchesOf(scenario.calls, from);
      const half = Math.floor(batches.length / 2);
      await serve(data, policySet, scenario, batches.slice(0, half));
      await serve(data, policySet, scenario, batches.slice(half));
      assert.deepEqual((await written(data)).map(shown), expected(scenario, batches.flat()), `seed ${from}`);
      await assertReplays(data, from);
    }));

  test("replay agrees with the ledger after contract versions change back and forth", (t) =>
    eachScenario(t, async (data, scenario, from) => {
      const next = generateNext(scenario, from);
      const policySets = [scenario, next, scenario, next].map(compiled);
      const batches = batchesOf(scenario.calls, from);
      const share = Math.ceil(batches.length / policySets.length);
      for (const [stage, policySet] of policySets.entries()) {
        if (policySet === undefined) return;
        await serve(data, policySet, scenario, batches.slice(stage * share, (stage + 1) * share));
      }
      await assertReplays(data, from);
    }));

  test("a new counter is folded from the receipts as the model says, or is unknown", async (t) => {
    let [compared, unknown] = [0, 0];
    const fold: Work = async (data, scenario, from) => {
      const before = withoutCounters(scenario);
      const policySets = [before, scenario].map(compiled);
      const batches = batchesOf(scenario.calls, from);
      const half = Math.floor(batches.length / 2);
      for (const [stage, policySet] of policySets.entries()) {
        if (policySet === undefined) return;
        await serve(data, policySet, scenario, stage === 0 ? batches.slice(0, half) : batches.slice(half));
      }
      const first = batches.slice(0, half).flat().length;
      const found = await written(data);
      const model = expected(scenario, batches.flat(), { before, from: first });
      const end = found.findIndex(({ text }) => text.includes("is unknown, because"));
      unknown += end < 0 ? 0 : 1;
      const known = end < 0 ? found.length : end;
      compared += known - first;
      assert.deepEqual(found.slice(0, known).map(shown), model.slice(0, known), `seed ${from}`);
      await assertReplays(data, from);
    };
    await eachScenario(t, fold);
    t.diagnostic(`${compared} receipts after a fold, ${unknown} scenarios came to what is not known`);
    t.diagnostic(
      `${folded.events} events of older receipts were folded again, ${folded.unverifiable} counters uncertain`,
    );
    const before = folded.events;
    await fold(join(temporaryFolder(t), "data"), generateWhole(foldingSeed, callsMax), foldingSeed);
    assert.ok(folded.events > before, "the scenario of the fixed seed folds events again");
  });

  control("positive control: a gate that decides by the next version is noticed", async (t) => {
    const isOther = (each: number): boolean => {
      const scenario = generateWhole(each, callsMax);
      const next = generateNext(scenario, each);
      const calls = batchesOf(scenario.calls, each).flat();
      return compiled(next) !== undefined && !isDeepStrictEqual(expected(scenario, calls), expected(next, calls));
    };
    let from = 1;
    while (!isOther(from)) from += 1;
    const scenario = generateWhole(from, callsMax);
    const data = join(temporaryFolder(t), "data");
    const policySet = compiled(generateNext(scenario, from));
    assert.ok(policySet !== undefined);
    const batches = batchesOf(scenario.calls, from);
    await serve(data, policySet, scenario, batches);
    assert.notDeepEqual((await written(data)).map(shown), expected(scenario, batches.flat()));
  });
});
