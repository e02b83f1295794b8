/**
 * Goal: no call is covered by a grant that a naive second implementation refuses, and none is refused that it covers.
 * Method: 10,000 generated calls in random histories beside a model in fractions of cents that keeps every use. The
 * histories are kept to a few values, so that calls differ from the grant in one thing. Positive control: each planted
 * defect is noticed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import {
  coveredAmounts,
  withUse,
  type Grant,
  type GrantableCall,
  type SourceCall,
} from "../../../packages/core/src/approvals/mod.ts";
import { control } from "../../support/controls/control.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const now = 1_790_000_000_000;

/** A generated call: amounts are in thousandths. */
interface Call {
  readonly afterMs: number;
  readonly key: string;
  readonly tool: string;
  readonly session: string;
  readonly rules: readonly string[];
  readonly meaning: string;
  readonly payee: string | undefined;
  readonly wallet: string | undefined;
  readonly thousandths: number | undefined;
  /** A number that the rule wants low, and one that it wants high. */
  readonly risk: number | undefined;
  readonly trust: number | undefined;
  /** Members beside those of the source. */
  readonly more: readonly string[];
}

interface Given {
  readonly anySession: boolean;
  readonly uses: number;
  readonly forMs: number;
  readonly most: number;
  readonly total: number;
  /** The numbers of the source. */
  readonly risk: number | undefined;
  readonly trust: number | undefined;
  /** What the person freed; undefined for a grant from before members could be bound. */
  readonly free: readonly string[] | undefined;
}

const usual = <T>(value: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 24, arbitrary: fc.constant(value) }, { weight: 1, arbitrary: fc.constantFrom(value, ...others) });

const calls = fc.array(
  fc.record<Call>({
    afterMs: fc.integer({ min: 0, max: 300 }),
    key: usual("agent", "other"),
    tool: usual("pay", "send"),
    session: usual("s1", "s2"),
    rules: usual(["large"], [], ["large", "odd"], ["odd"], ["large", "new"], ["toString"]),
    meaning: usual("m1", "m2"),
    payee: usual<string | undefined>("anna", "eve", undefined),
    wallet: usual<string | undefined>("w", "v", undefined),
    thousandths: fc.option(fc.integer({ min: -2000, max: 6000 }), { nil: undefined, freq: 24 }),
    risk: usual<number | undefined>(5, 4, 6, -1, undefined),
    trust: usual<number | undefined>(5, 4, 6, -1, undefined),
    more: usual<readonly string[]>(
      [],
      ["input.to"],
      ["input.note"],
      ["input.opts.fast"],
      ["input.opts"],
      ["input.notes"],
    ),
  }),
  { minLength: 20, maxLength: 20 },
);

const givens = fc.record<Given>({
  anySession: fc.boolean(),
  uses: fc.integer({ min: 1, max: 12 }),
  forMs: fc.integer({ min: 1, max: 3000 }),
  most: fc.integer({ min: 0, max: 6000 }),
  total: fc.integer({ min: 0, max: 20_000 }),
  risk: usual<number | undefined>(5, -1, undefined),
  trust: usual<number | undefined>(5, -1, undefined),
  free: fc.constantFrom<readonly string[] | undefined>([], ["input.note"], ["input.opts"], undefined),
});

function decimal(thousandths: number): string {
  const text = String(Math.abs(thousandths)).padStart(4, "0");
  const sign = thousandths < 0 ? "-" : "";
  return `${sign}${text.slice(0, -3)}.${text.slice(-3)}`.replace(/\.?0+$/, "");
}

function grantOf({ anySession, uses, forMs, total, free }: Given): Grant {
  return {
    row: 2,
    hash: "0".repeat(64),
    at: now,
    source: 1,
    key: "agent",
    tool: "pay",
    place: anySession ? null : "s1",
    causes: { large: "m1", odd: "m1" },
    needs: [],
    pins: { "input.payee": "anna", "platform.wallet": "w" },
    amounts: { "input.usd": decimal(total) },
    ...(free !== undefined && { most: ["input.risk"], least: ["platform.trust"], free }),
    uses,
    until: now + forMs,
    votes: [],
    used: 0,
    spent: {},
  };
}

const ownMembers = ["input.usd", "input.payee", "input.risk"];

function callOf(
  { key, tool, session, rules, meaning, payee, wallet, thousandths, risk, trust, more }: Call,
  at: number,
): GrantableCall {
  const number = numberIn(thousandths, risk, trust);
  const members: Readonly<Record<string, string | undefined>> = { "input.payee": payee, "platform.wallet": wallet };
  return {
    at,
    key,
    tool,
    session,
    causes: Object.fromEntries(rules.map((rule) => [rule, meaning])),
    pin: (member) => members[member] ?? number(member) ?? "absent",
    number,
    members: () => [...ownMembers, ...more].map((path) => ({ path, isObject: false })),
    rest: () => "",
    forms: {},
  };
}

function numberIn(
  thousandths: number | undefined,
  risk: number | undefined,
  trust: number | undefined,
): GrantableCall["number"] {
  const numbers: Readonly<Record<string, string | undefined>> = {
    "input.usd": thousandths === undefined ? undefined : decimal(thousandths),
    "input.risk": risk?.toString(),
    "platform.trust": trust?.toString(),
  };
  return (member) => numbers[member];
}

function sourceOf({ most, risk, trust }: Given): SourceCall {
  const number = numberIn(most, risk, trust);
  return {
    pin: (member) => number(member) ?? "absent",
    number,
    members: () => ownMembers.map((path) => ({ path, isObject: false })),
    rest: () => "",
  };
}

/** The naive model: all of it again for each call, from the list of uses so far. */
function isCovered(given: Given, call: Call, at: number, uses: readonly number[]): boolean {
  if (at >= now + given.forMs) return false;
  if (uses.length >= given.uses) return false;
  if (call.key !== "agent" || call.tool !== "pay") return false;
  if (!given.anySession && call.session !== "s1") return false;
  if (call.rules.length === 0) return false;
  for (const rule of call.rules) if (!["large", "odd"].includes(rule) || call.meaning !== "m1") return false;
  if (call.payee !== "anna" || call.wallet !== "w") return false;
  if (given.free !== undefined) {
    if (!isWithinNumbers(given, call)) return false;
    for (const member of call.more)
      if (!given.free.some((freed) => member === freed || (freed === "input.opts" && member === "input.opts.fast")))
        return false;
  }
  if (call.thousandths === undefined || call.thousandths < 0 || call.thousandths > given.most) return false;
  let sum = call.thousandths;
  for (const each of uses) sum += each;
  return sum <= given.total;
}

/** Each number is there exactly if it was, and did not become worse; a negative number binds both. */
function isWithinNumbers({ risk, trust }: Given, call: Call): boolean {
  if ((call.risk === undefined) !== (risk === undefined)) return false;
  if ((call.trust === undefined) !== (trust === undefined)) return false;
  if (Math.min(risk ?? 0, trust ?? 0) < 0) return call.risk === risk && call.trust === trust;
  if (risk !== undefined && call.risk !== undefined && (call.risk > risk || call.risk < 0)) return false;
  return trust === undefined || call.trust === undefined || call.trust >= trust;
}

interface Met {
  covered: number;
  refused: number;
}

/** Runs a history; returns the first call on which the two differ. */
function differs(covers: typeof coveredAmounts, given: Given, all: readonly Call[], met: Met): string | undefined {
  let grant = grantOf(given);
  let at = now;
  const uses: number[] = [];
  for (const call of all) {
    at += call.afterMs;
    const amounts = covers(grant, callOf(call, at), sourceOf(given));
    const expected = isCovered(given, call, at, uses);
    if ((amounts !== undefined) !== expected) return JSON.stringify({ given, call, at: at - now, uses, expected });
    met[expected ? "covered" : "refused"] += 1;
    if (amounts === undefined) continue;
    grant = withUse(grant, amounts);
    uses.push(call.thousandths ?? 0);
  }
  return undefined;
}

function run(covers: typeof coveredAmounts, seed: number, met: Met): string | undefined {
  const histories = fc.sample(fc.tuple(givens, calls), { numRuns: 500, seed });
  for (const [given, all] of histories) {
    const found = differs(covers, given, all, met);
    if (found !== undefined) return found;
  }
  return undefined;
}

suite("grants and a naive model", () => {
  const seed = seedOf("GRANT_SEED");
  test(`C20: both cover the same calls among 10,000, from seed ${seed}`, (t) => {
    printSeed(t, { cases: 10_000, seed, variable: "GRANT_SEED" });
    const met: Met = { covered: 0, refused: 0 };
    assert.equal(run(coveredAmounts, seed, met), undefined);
    assert.equal(met.covered + met.refused, 10_000);
    assert.ok(met.covered > 300 && met.refused > 300, JSON.stringify(met));
    t.diagnostic(JSON.stringify(met));
  });

  const defects: Readonly<Record<string, (grant: Grant, call: GrantableCall) => readonly [Grant, GrantableCall]>> = {
    "forgets its time": (grant, call) => [{ ...grant, until: Number.MAX_SAFE_INTEGER }, call],
    "forgets how often it was used": (grant, call) => [{ ...grant, used: 0 }, call],
    "forgets what was spent": (grant, call) => [{ ...grant, spent: {} }, call],
    "is for every session": (grant, call) => [{ ...grant, place: null }, call],
    "lifts a rule with another meaning": (grant, call) => [
      grant,
      { ...call, causes: Object.fromEntries(Object.keys(call.causes).map((rule) => [rule, "m1"])) },
    ],
    "forgets its pins": (grant, call) => [{ ...grant, pins: {} }, call],
    "forgets its numbers": (grant, call) => [{ ...grant, most: [], least: [] }, call],
    "lets a call have any member": (grant, call) => [grant, { ...call, members: () => [] }],
    "is for every key": (grant, call) => [grant, { ...call, key: grant.key }],
    "is for every tool": (grant, call) => [grant, { ...call, tool: grant.tool }],
  };
  for (const [name, defect] of Object.entries(defects))
    control(`positive control: the model notices a grant that ${name}`, () => {
      const covers: typeof coveredAmounts = (grant, call, source) => coveredAmounts(...defect(grant, call), source);
      assert.notEqual(run(covers, 1, { covered: 0, refused: 0 }), undefined);
    });
});
