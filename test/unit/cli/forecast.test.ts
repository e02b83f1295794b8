/**
 * Goal: the forecast of `svc-gate report` counts the approvals that enforce mode would open. Method: tables of calls with
 * known counts, and random calls that a naive second implementation counts too. Positive control: the same comparison
 * notices a naive count that forgets one rule.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { Forecast } from "../../../packages/records/src/report/forecast.ts";
import { Contracts } from "../../../packages/records/src/replay/decide-again.ts";
import type { ReceiptCheck } from "../../../packages/records/src/replay/recorded.ts";
import { compileMandate } from "../../../packages/readers/src/contract.ts";
import { good, parseCheckRequest } from "../../../packages/core/src/wire/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns, type RandomRuns } from "../../support/random-test.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const start = Date.UTC(2026, 10, 21);

const contract = `contract: pay
tools:
  send:
    input: { type: object, additionalProperties: false, required: [usd], properties: { usd: { type: number }, note: { type: string } } }
    approval: { unbound: [input.note] }
    otherwise: ALLOW
rules:
  - { rule: large, on: send, when: input.usd > 100, verdict: ESCALATE, reason: large }
  - { rule: huge, on: send, when: input.usd > 500, verdict: ESCALATE, approval: { decide_within: 10m }, reason: huge }
`;
const mandate = "mandate: m\ncontracts: [pay.yaml]\napprovals: { open: { key: 8, session: 20, ledger: 10 } }\n";
const limits = { key: 8, session: 20, ledger: 10 };

const compiled = compileMandate({ name: "mandate.yaml", text: mandate }, (name) => good({ name, text: contract }));
assert.ok(compiled.ok);
const rules = compiled.value.text;

interface Call {
  readonly at: number;
  /** The number as it was sent. */
  readonly usd: string;
  readonly note?: string;
  readonly key?: string;
  readonly session?: string;
  readonly mode?: string;
  readonly answered?: string;
  readonly how?: "attached" | "opened";
}

const isLarge = ({ usd }: Call): boolean => Number(usd) > 100;
const isHuge = ({ usd }: Call): boolean => Number(usd) > 500;
const ruleOf = (call: Call): string => (isHuge(call) ? "pay.huge" : "pay.large");

/** A check as the report reads it from its row. */
function recordedOf(call: Call): ReceiptCheck {
  const { at, usd, note, key = "agent", session = "s", mode = "observe", how } = call;
  const input = `{"usd":${usd}${note === undefined ? "" : `,"note":"${note}"`}}`;
  const request = parseCheckRequest(`{"tool_name":"send","tool_input":${input},"session_id":"${session}"}`);
  assert.ok(request.ok);
  const verdict = isLarge(call) ? "ESCALATE" : "ALLOW";
  const answered = call.answered ?? (mode === "observe" ? "ALLOW" : verdict);
  const leaf = { at, key, log: "l", contract: "sha256:c", mode, verdict, answered, rule: ruleOf(call) };
  const fired = [...(isLarge(call) ? ["pay.large"] : []), ...(isHuge(call) ? ["pay.huge"] : [])];
  return {
    leaf,
    request: request.value,
    tool: request.value.toolName,
    trace: { fired, asked: how && { how } },
  } as unknown as ReceiptCheck;
}

async function forecastOf(calls: readonly Call[], text: string | undefined = rules): Promise<any> {
  const forecast = new Forecast(new Contracts({ contractText: () => Promise.resolve(text) }));
  for (const call of calls) await forecast.add(recordedOf(call));
  return { ...forecast.json, text: forecast.text };
}

const large = { at: start, usd: "200" };

suite("the forecast of approvals", () => {
  const cases: readonly (readonly [what: string, calls: readonly Call[], counts: readonly number[]])[] = [
    ["one call is one approval", [large], [1, 1, 0, 0]],
    ["a call that the contract allows asks nobody", [{ ...large, usd: "5" }], [0, 0, 0, 0]],
    [
      "the same call shares the approval while that is open",
      [large, { ...large, at: start + hourMs - 1 }],
      [2, 1, 1, 0],
    ],
    ["the same call after decide_within asks again", [large, { ...large, at: start + hourMs }], [2, 2, 0, 0]],
    [
      "the shortest decide_within of the rules that fired holds",
      [
        { ...large, usd: "600" },
        { ...large, usd: "600", at: start + 10 * minuteMs - 1 },
        { ...large, usd: "600", at: start + 10 * minuteMs },
      ],
      [3, 2, 1, 0],
    ],
    [
      "a number with the same value shares",
      [large, { ...large, usd: "2e2" }, { ...large, usd: "200.0" }],
      [3, 1, 2, 0],
    ],
    ["an unbound text does not count", [large, { ...large, note: "a" }, { ...large, note: "b" }], [3, 1, 2, 0]],
    ["another session shares", [large, { ...large, session: "t" }], [2, 1, 1, 0]],
    ["another key does not share", [large, { ...large, key: "other" }], [2, 2, 0, 0]],
    ["another amount does not share", [large, { ...large, usd: "201" }], [2, 2, 0, 0]],
    [
      "a session has at most a quarter of its key's room",
      [large, { ...large, usd: "201" }, { ...large, usd: "202" }],
      [3, 2, 0, 1],
    ],
    [
      "a call that asked a person is not forecast",
      [
        { ...large, mode: "enforce", how: "opened" },
        { ...large, mode: "enforce", how: "attached" },
      ],
      [0, 0, 0, 0],
    ],
    ["a call of an earlier version that asked nobody is forecast", [{ ...large, mode: "enforce" }], [1, 1, 0, 0]],
  ];
  for (const [what, calls, counts] of cases) {
    test(`in a forecast, ${what}`, async () => {
      const { calls: all, approvals, shared, capped } = await forecastOf(calls);
      assert.deepEqual([all, approvals, shared, capped], counts);
    });
  }

  test("a forecast has the mean of days with checks, the largest day and the largest hour", async () => {
    const calls: readonly Call[] = [
      { at: start + 23 * hourMs, usd: "300" },
      { at: start + dayMs + hourMs, usd: "301" },
      { at: start + dayMs + 3 * hourMs, usd: "302" },
      { at: start + dayMs + 3 * hourMs + 1, usd: "303" },
      // On the third day nobody asks, and on the fourth no call needs a person.
      { at: start + 3 * dayMs, usd: "5" },
    ];
    const { days, per_day, largest_day, largest_hour, text } = await forecastOf(calls);
    assert.deepEqual(
      { days, per_day, largest_day, largest_hour },
      {
        days: 3,
        per_day: 1.33,
        largest_day: { from: start + dayMs, approvals: 3 },
        largest_hour: { from: start + dayMs + 3 * hourMs, approvals: 2 },
      },
    );
    assert.deepEqual(text, [
      "",
      "approvals that enforce mode would have asked for",
      "  rule       calls  approvals  a day  largest day  shared  capped",
      "  pay.large      4          4    1.3            3       0       0",
      "  largest hour: 2 from 2026-11-22T03:00:00Z; days with checks: 3",
      "  each approval is open for its whole decide_within here, because nobody decided it",
    ]);
  });

  test("a forecast does not count calls whose contract cannot be read, and says so", async () => {
    const { calls, without_contract, text } = await forecastOf([large, { ...large, usd: "5" }], "");
    assert.deepEqual({ calls, without_contract }, { calls: 0, without_contract: 1 });
    assert.deepEqual(text, [
      "",
      "approvals that enforce mode would have asked for",
      "  1 call is not counted here: the contract on its receipt cannot be read",
    ]);
  });
});

/** Rules of the count that a planted defect forgets. */
type Forgotten = "caps" | "end" | "key" | "reserve" | "shortest" | "unbound" | undefined;

/** Counts each call by looking at every earlier approval. */
function naive(calls: readonly Call[], forgotten?: Forgotten): object {
  const open: (Call & { readonly ends: number })[] = [];
  const found = { calls: 0, approvals: 0, shared: 0, capped: 0 };
  const isSame = (one: Call, other: Call): boolean =>
    Number(one.usd) === Number(other.usd) &&
    (forgotten === "key" || one.key === other.key) &&
    (forgotten !== "unbound" || one.note === other.note);
  for (const call of calls.filter(isLarge)) {
    found.calls += 1;
    const now = open.filter(({ ends }) => forgotten === "end" || call.at < ends);
    const ofKey = now.filter(({ key }) => key === call.key);
    const ofSession = ofKey.filter(({ session }) => session === call.session);
    const keyMax = ofSession.length === 0 && forgotten !== "reserve" ? limits.key : 6;
    const isFull = now.length >= limits.ledger || ofKey.length >= keyMax || ofSession.length >= 2;
    if (now.some((each) => isSame(each, call))) found.shared += 1;
    else if (isFull && forgotten !== "caps") found.capped += 1;
    else {
      found.approvals += 1;
      open.push({ ...call, ends: call.at + (isHuge(call) && forgotten !== "shortest" ? 10 * minuteMs : hourMs) });
    }
  }
  return found;
}

const oneOf = (...values: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...values);
const someCalls = fc
  .array(
    fc.record({
      after: fc.integer({ min: 0, max: 6 * minuteMs }),
      usd: fc.oneof(
        oneOf("50", "150", "150.0", "1.5e2", "200", "600", "6e2", "700"),
        fc.integer({ min: 300, max: 340 }).map(String),
      ),
      note: oneOf("a", "b"),
      key: oneOf("k", "k", "k", "l"),
      session: oneOf("s", "t", "u", "v", "w", "x", "y"),
    }),
    { maxLength: 60 },
  )
  .map((steps) => {
    let at = start;
    return steps.map(({ after, ...call }): Call => ({ ...call, at: (at += after) }));
  });

/** Searches for calls that are counted differently; the text names the seed. */
async function difference(runs: RandomRuns, forgotten?: Forgotten): Promise<string | undefined> {
  const property = fc.asyncProperty(someCalls, async (calls) => {
    const { calls: all, approvals, shared, capped } = await forecastOf(calls);
    assert.deepEqual({ calls: all, approvals, shared, capped }, naive(calls, forgotten));
  });
  const { failed, seed, counterexample } = await fc.check(property, runs);
  return failed ? `seed ${seed}: ${JSON.stringify(counterexample)}` : undefined;
}

/** A control must not depend on luck. */
const fixed: RandomRuns = { seed: 1, numRuns: 200, endOnFailure: true };

suite("the forecast of random calls", () => {
  test("a naive second implementation counts the same", async (t) =>
    assert.equal(await difference(randomRuns(t, 200)), undefined));

  for (const forgotten of ["caps", "end", "key", "reserve", "shortest", "unbound"] as const) {
    control(`positive control: a count that forgets the rule "${forgotten}" is noticed`, async () =>
      assert.match((await difference(fixed, forgotten)) ?? "nothing", /^seed /),
    );
  }
});
