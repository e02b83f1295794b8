/**
 * Goal: a store may read few of a key's denials, and every call is answered as if it had read all of them. Method: calls
 * after random denials are judged with all denials and with those that the function returns.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  denialsThatMatter,
  judgeCall,
  openApproval,
  type Approval,
  type Denial,
  type DenialSummary,
  type Judgement,
  type KnownApprovals,
} from "../../../packages/core/src/approvals/mod.ts";
import { control } from "../../support/controls/control.ts";
import { randomRuns } from "../../support/random-test.ts";

const now = 1_790_000_000_000;
const hourMs = 3_600_000;
const rules = ["pay.large", "pay.odd"];
const calls = ["a", "b", "c"];
const limits = { key: 1000, session: 1000, ledger: 1000 };

interface Denied {
  readonly agoMs: number;
  readonly forMs: number;
  readonly scope: Denial["scope"];
  readonly rule: string;
  readonly tool: string;
  readonly call: string;
}

const denied = fc.record<Denied>({
  agoMs: fc.integer({ min: 0, max: 3 * hourMs }),
  forMs: fc.integer({ min: 1, max: 4 * hourMs }),
  scope: fc.constantFrom("call", "call", "call", "call", "tool", "rule"),
  rule: fc.constantFrom(...rules),
  tool: fc.constantFrom("pay", "send"),
  call: fc.constantFrom(...calls, ...Array.from({ length: 20 }, (_, at) => `other-${at}`)),
});

function approvalOf({ agoMs, forMs, scope, rule, tool, call }: Denied, row: number): Approval {
  const at = now - agoMs;
  const opened = openApproval({
    row,
    hash: "0".repeat(64),
    at,
    key: "agent",
    session: "s",
    tool,
    rule,
    asking: askingOf(call, rule),
    own: [],
  });
  const denial = { row: row + 1, at, person: "anna", comment: "", until: at + forMs, scope };
  return { ...opened, status: "denied", denial, closed: row + 1 };
}

function askingOf(call: string, rule: string): Approval["asking"] {
  const shown = { counters: {}, facts: {} };
  const needs = [{ by: null, of: 1 }];
  const times = { decide_by: now + hourMs, use_within: hourMs };
  return { attach: call, binding: call, batch: true, causes: { [rule]: "1" }, needs, pins: {}, shown, ...times };
}

interface Summary extends DenialSummary {
  readonly approval: Approval;
}

/** The denials that a store still has, in the order of their ends. */
function summaries(all: readonly Denied[]): readonly Summary[] {
  return all
    .map((each, at) => approvalOf(each, 10 * at + 1))
    .flatMap((approval) => {
      const { denial, rule } = approval;
      if (denial === null) return [];
      const { at, scope, until } = denial;
      return { approval, rule, at, scope, ends: Math.max(until, at + hourMs) };
    })
    .filter(({ ends }) => now < ends)
    .toSorted((one, other) => one.ends - other.ends);
}

function judge(book: readonly Approval[], call: string, rule: string): Judgement {
  const asking = askingOf(call, rule);
  const { attach } = asking;
  const of = { at: now, key: "agent", session: "s", tool: "pay", rule, answered: "ESCALATE" as const };
  const ask = {
    ...of,
    attach,
    binding: () => call,
    sessionTool: () => "",
    subject: () => undefined,
    asking,
    named: undefined,
  };
  const known: KnownApprovals = {
    at: () => undefined,
    openWith: () => [],
    findDenied: (key) => book.filter((approval) => approval.key === key && approval.status === "denied"),
    openCounts: () => ({ key: 0, ledger: 0, session: 0 }),
    quorum: () => assert.fail("nobody has voted"),
  };
  return judgeCall(ask, known, limits);
}

/** Fails if a call is judged otherwise with fewer denials. */
function agree(all: readonly Denied[], choose: typeof denialsThatMatter): void {
  const kept = summaries(all);
  const chosen = choose(kept, now);
  for (const call of calls) {
    for (const rule of rules) {
      const ofCall = kept.filter(({ approval }) => approval.asking.attach === call);
      const found = new Set([...ofCall, ...chosen].map(({ approval }) => approval));
      const [few, whole] = [[...found], [...new Set([...ofCall, ...kept].map(({ approval }) => approval))]];
      assert.deepEqual(judge(few, call, rule), judge(whole, call, rule));
    }
  }
}

test("a call is judged by the denials that matter as by all denials of its key", (t) => {
  fc.assert(
    fc.property(fc.array(denied, { maxLength: 40 }), (all) => agree(all, denialsThatMatter)),
    randomRuns(t, 400),
  );
});

control(
  "positive control: without one of the last denials under a rule, or those of a tool, a call is judged otherwise",
  () => {
    const call = { agoMs: 1000, forMs: hourMs, scope: "call", rule: "pay.large", tool: "pay" } as const;
    const three = ["x", "y", "z"].map((each) => ({ ...call, call: each }));
    const ofTool = [{ ...call, scope: "tool", call: "x" } as const];
    for (const all of [three, ofTool]) {
      agree(all, denialsThatMatter);
      assert.throws(() => agree(all, (denials, at) => denialsThatMatter(denials, at).slice(1)));
    }
  },
);

test("of ten thousand denials of calls, three for each rule are read", () => {
  const all = Array.from({ length: 10_000 }, (_, at): Denied => {
    const rule = rules[at % 2] as string;
    return { agoMs: at, forMs: 24 * hourMs, scope: "call", rule, tool: "pay", call: `other-${at}` };
  });
  assert.equal(denialsThatMatter(summaries(all), now).length, 6);
});
