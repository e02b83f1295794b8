/**
 * Goal: a counter that remembers keeps values apart, only `in` can ask it, and every value that a rule may need is
 * looked up before the decision. Method: definitions and conditions with their problems; a series of calls over a list
 * of events is compared with a plain set.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  planLookups,
  count,
  decide,
  prepare,
  recount,
  type PolicySet,
  type Counter,
  type Decision,
} from "../../../../packages/core/src/contract/mod.ts";
import { codes, compile, contractText, problems, request, type Call } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const seen = "{ of: t, per: session, remembers: input.s }";

function withRule(when: string, counters = `{ k: ${seen} }`): string {
  const rules = `[{ rule: r, on: t, when: ${JSON.stringify(when)}, verdict: BLOCK, reason: x }]`;
  return contractText({ counters, rules });
}

suite("definitions and conditions of counters that remember", () => {
  const definitions: readonly (readonly [definition: string, ...codes: readonly string[]])[] = [
    [seen],
    ["{ of: t, per: gate, remembers: input.n, within: 10m }"],
    ["{ of: t, per: gate, remembers: 'input.?list.orValue([])' }"],
    ["{ of: t, per: gate, remembers: '[input.s, input.s.lowerAscii()]' }"],
    ["{ of: t, per: gate, remembers: input }", "counter"],
    ["{ of: t, per: gate, remembers: input.t }", "unproven-member"],
    ["{ of: t, per: gate, remembers: input.s, sum: size(input.s) }", "counter"],
  ];
  const conditions: readonly (readonly [condition: string, ...codes: readonly string[]])[] = [
    ["!(input.s in counters.k)"],
    ["input.?list.orValue([]).exists(x, x in counters.k)"],
    ["[[input.s], ['a']].all(xs, xs.exists(x, x in counters.k || x == input.s))"],
    ["counters.k > 1", "type"],
    ["counters.k == counters.k", "type"],
    ["'a' in [counters.k]", "type"],
    ["input.any == counters.k", "unproven-member"],
    ["has(input.any) && input.any == counters.k", "type"],
    ["size(counters.k) > 1", "arguments"],
    ["input in counters.k", "type"],
    ["input.n + counters.n in counters.k", "counter"],
  ];

  test("the compiler accepts a valid `remembers` and reports each invalid one", () => {
    for (const [definition, ...expected] of definitions)
      assertCodes(withRule("'a' in counters.k", `{ k: ${definition} }`), expected, definition);
  });

  test("the compiler accepts `in` on a counter that remembers and reports invalid conditions", () => {
    const counters = `{ k: ${seen}, n: { of: t, per: session } }`;
    for (const [condition, ...expected] of conditions) assertCodes(withRule(condition, counters), expected, condition);
  });

  test("the expression under `remembers` is part of a counter's identity", () => {
    const found = ["input.s", "input.n", "input.s.lowerAscii()", undefined].map((remembers) => {
      const definition = `{ of: t, per: session${remembers === undefined ? "" : `, remembers: ${remembers}`} }`;
      return compile(contractText({ counters: `{ k: ${definition} }` })).counters[0]?.identity;
    });
    assert.equal(new Set(found).size, 4);
  });
});

/** Compares the codes of a text's problems, and the sentences that are stored under this name. */
function assertCodes(text: string, expected: readonly string[], name: string): void {
  assert.deepEqual(codes(text), expected, name);
  if (expected.length > 0) says(name, problems(text).join("\n"));
}

/** Sessions of calls over events kept in a plain map. */
class Sessions {
  readonly #events = new Map<string, number>();
  readonly #policySet: PolicySet;

  constructor(text: string) {
    this.#policySet = compile(text);
  }

  ask(call: Call): Decision {
    const caller = { keyName: "default", sessionId: call.session ?? null };
    const prepared = prepare(this.#policySet, request(call), caller);
    const lookupPlan = planLookups(prepared, 1_700_000_000_000);
    const decision = decide(
      lookupPlan,
      lookupPlan.lookups.map(({ key }) => String(this.#events.get(key) ?? 0)),
    );
    for (const { key } of count(prepared, { verdict: decision.verdict, answered: decision.verdict }))
      this.#events.set(key, (this.#events.get(key) ?? 0) + 1);
    return decision;
  }
}

const call = (s: string, more: object = {}, session = "one"): Call => ({ session, input: { n: 1, s, ...more } });

suite("values that a counter remembers", () => {
  test("a counter finds a value of an earlier call only in its session and with its type", () => {
    const sessions = new Sessions(withRule("input.s in counters.k"));
    assert.equal(sessions.ask(call("a")).verdict, "ALLOW");
    assert.equal(sessions.ask(call("a")).verdict, "BLOCK");
    assert.equal(sessions.ask(call("b")).verdict, "ALLOW");
    assert.equal(sessions.ask(call("a", {}, "two")).verdict, "ALLOW");
    assert.deepEqual(sessions.ask(call("a")).read, [["c.k[0]", "1"]]);
    const typed = new Sessions(withRule("input.n in counters.k || '1' in counters.k"));
    assert.equal(typed.ask(call("1")).verdict, "ALLOW");
    assert.equal(typed.ask(call("x")).verdict, "BLOCK");
    assert.equal(new Sessions(withRule("input.n in counters.k")).ask(call("1")).verdict, "ALLOW");
  });

  test("a counter of released calls does not remember the values of a blocked call", () => {
    const counters = "{ k: { of: t, per: session, counting: released, remembers: input.s } }";
    const sessions = new Sessions(withRule("input.n > 1 || input.s in counters.k", counters));
    assert.equal(sessions.ask(call("a", { n: 2 })).verdict, "BLOCK");
    assert.equal(sessions.ask(call("a")).verdict, "ALLOW");
    assert.equal(sessions.ask(call("a")).verdict, "BLOCK");
  });

  test("a counter remembers each value of a list, and `exists` looks up each item", () => {
    const counters = "{ k: { of: t, per: session, remembers: 'input.?list.orValue([])' } }";
    const sessions = new Sessions(withRule("input.?list.orValue([]).exists(x, x in counters.k)", counters));
    assert.equal(sessions.ask(call("", { list: ["a", "b", "a"] })).verdict, "ALLOW");
    assert.equal(sessions.ask(call("", { list: ["c", "d"] })).verdict, "ALLOW");
    assert.deepEqual(sessions.ask(call("", { list: ["e", "b", "f"] })).read, [
      ["c.k[0]", "0"],
      ["c.k[1]", "1"],
    ]);
  });

  test("a missing optional member is not looked up, and the counter remembers its default instead", () => {
    const counters = "{ k: { of: t, per: session, remembers: 'input.?t.orValue(input.s)' } }";
    const sessions = new Sessions(withRule("has(input.t) && input.t in counters.k", counters));
    assert.equal(sessions.ask(call("a")).verdict, "ALLOW");
    assert.equal(sessions.ask(call("b", { t: "a" })).verdict, "BLOCK");
  });

  test("a counter per session remembers nothing for a call without a session", () => {
    const sessions = new Sessions(withRule("input.s in counters.k"));
    for (let transaction = 0; transaction < 2; transaction += 1)
      assert.equal(sessions.ask({ input: { n: 1, s: "a" } }).verdict, "ALLOW");
  });

  test("a call with too many values or a value that is too long is blocked", () => {
    const many = Array.from({ length: 257 }, (_, at) => `v${at}`);
    const counters = "{ k: { of: t, per: session, remembers: 'input.?list.orValue([])' } }";
    const sessions = new Sessions(withRule("input.?list.orValue([]).exists(x, x in counters.k)", counters));
    assert.match(sessions.ask(call("", { list: many })).reason, /\bover 256 values\b/);
    assert.match(sessions.ask(call("", { list: ["x".repeat(16_385)] })).reason, /over 16384 bytes/);
    assert.equal(sessions.ask(call("", { list: many.slice(1) })).verdict, "ALLOW");
  });

  test("values that an observing rule looks up do not use up the limit of deciding rules", () => {
    const list = Array.from({ length: 257 }, (_, at) => `v${at}`);
    const rules = (mode: string): string =>
      `[{ rule: r, on: t, when: "input.s in counters.k", verdict: BLOCK, reason: seen },
        { rule: o, on: t, ${mode}when: "has(input.list) && input.list.exists(x, x in counters.k)", verdict: BLOCK, reason: any }]`;
    const observing = new Sessions(contractText({ counters: `{ k: ${seen} }`, rules: rules("mode: observe, ") }));
    for (const wanted of [list, ["x".repeat(17_000)]]) {
      const { verdict, observed } = observing.ask(call(`s${wanted.length}`, { list: wanted }));
      assert.deepEqual([verdict, observed.map(({ verdict: said }) => said)], ["ALLOW", ["BLOCK"]]);
    }
    assert.equal(observing.ask(call("s257", { list })).rule, "c.r");
    const enforcing = new Sessions(contractText({ counters: `{ k: ${seen} }`, rules: rules("") }));
    assert.equal(enforcing.ask(call("s", { list })).verdict, "BLOCK");
  });

  test("a value behind a condition is looked up only if the condition is true", () => {
    const guarded =
      "has(input.maybe) && input.maybe != null && input.maybe.lowerAscii() in counters.k || input.s in counters.k";
    const sessions = new Sessions(withRule(guarded));
    assert.equal(sessions.ask(call("a", { maybe: null })).verdict, "ALLOW");
    assert.equal(sessions.ask(call("b", { maybe: "A" })).verdict, "BLOCK");
    const long = "input.s.size() < 100 && input.s in counters.k || 'a' in counters.k";
    const counters = "{ k: { of: t, when: input.s.size() < 100, per: session, remembers: input.s } }";
    const short = new Sessions(withRule(long, counters));
    assert.equal(short.ask(call("x".repeat(17_000))).verdict, "ALLOW");
    assert.equal(short.ask(call("a")).verdict, "ALLOW");
    assert.equal(short.ask(call("x".repeat(17_000))).verdict, "BLOCK");
  });

  test("nested loops over long lists exceed the limit of steps, and the call is blocked", () => {
    const list = Array.from({ length: 30_000 }, () => "a");
    for (const wanted of ["y", "input.s"]) {
      const nested = `has(input.list) && input.list.exists(x, input.list.exists(y, ${wanted} in counters.k))`;
      const { verdict, reason } = new Sessions(withRule(nested)).ask(call("a", { list }));
      assert.deepEqual([verdict, /over 2000000 steps/.test(reason)], ["BLOCK", true], reason);
    }
  });

  test("texts that look alike are different values, and equal numbers in other spellings are the same", () => {
    const pairs: readonly (readonly [a: unknown, b: unknown, same: boolean])[] = [
      ["a", "\u0430", false],
      ["\u00e9", "e\u0301", false],
      ["A", "a", false],
      ["a", "a ", false],
      ["", " ", false],
      ['","b', "b", false],
      ['["text","a"]', "a", false],
      ["a", "a", true],
    ];
    for (const [a, b, same] of pairs) {
      const sessions = new Sessions(withRule("input.s in counters.k"));
      sessions.ask(call(String(a)));
      assert.equal(sessions.ask(call(String(b))).verdict, same ? "BLOCK" : "ALLOW", JSON.stringify([a, b]));
    }
    const numbered = (): Sessions =>
      new Sessions(withRule("input.n in counters.k", "{ k: { of: t, per: session, remembers: input.n } }"));
    const sent = (number: string): Call => ({ session: "one", input: `{"n": ${number}, "s": ""}` });
    for (const [a, b, same] of [
      ["1", "1.0", true],
      ["10", "1e1", true],
      ["0", "-0", true],
      ["9007199254740993", "9007199254740992", false],
      ["0.1", "0.10000000000000001", false],
    ] as const) {
      const sessions = numbered();
      sessions.ask(sent(a));
      assert.equal(sessions.ask(sent(b)).verdict, same ? "BLOCK" : "ALLOW", `${a} ${b}`);
    }
    const mixed = "{ k: { of: t, per: session, remembers: 'input.n > 1 ? input.s : \"1\"' } }";
    const typed = new Sessions(withRule("input.n in counters.k || (input.n == 1) in counters.k", mixed));
    for (let transaction = 0; transaction < 2; transaction += 1) assert.equal(typed.ask(call("true")).verdict, "ALLOW");
  });

  test("values in nested loops and in a `let:` are looked up", () => {
    const rules = `[{ rule: r, on: t, let: { words: '[input.s, "-"]', known: 'words.exists(w, list.exists(x, w + x in counters.k))' },
      when: known, verdict: BLOCK, reason: seen }]`;
    const text = contractText({ let: "{ list: 'input.?list.orValue([])' }", counters: `{ k: ${seen} }`, rules });
    const sessions = new Sessions(text);
    assert.equal(sessions.ask(call("-b")).verdict, "ALLOW");
    assert.equal(sessions.ask(call("a", { list: ["a"] })).verdict, "ALLOW");
    assert.equal(sessions.ask(call("a", { list: ["c", "b"] })).verdict, "BLOCK");
    assert.equal(sessions.ask(call("", { list: ["a"] })).verdict, "BLOCK");
  });

  test("a requirement and a reason can ask a counter that remembers", () => {
    const requires =
      '[{ when: "!(input.s in counters.k)", reason: "{input.s in counters.k ? 1 : 0} of {input.s} before" }]';
    const sessions = new Sessions(contractText({ counters: `{ k: ${seen} }`, requires }));
    assert.equal(sessions.ask(call("a")).verdict, "ALLOW");
    assert.equal(sessions.ask(call("a")).reason, 'Svc: 1 of "a" before');
    const rules = `[{ rule: r, on: t, when: "true", verdict: ALLOW, reason: "known: {input.s in counters.k}" }]`;
    const shown = new Sessions(contractText({ counters: `{ k: ${seen} }`, rules }));
    assert.equal(shown.ask(call("a")).reason, "Svc: known: false");
    assert.equal(shown.ask(call("a")).reason, "Svc: known: true");
  });

  test("observing rules share one limit of steps and do not use the steps of deciding rules", () => {
    const long = "has(input.list) && !input.list.all(x, input.list.all(y, y.size() == 1 || y == x))";
    const rule = (name: string, mode: string): string =>
      `{ rule: ${name}, on: t, ${mode}when: ${JSON.stringify(long)}, verdict: BLOCK, reason: long }`;
    const list = Array.from({ length: 390 }, () => "a");
    const judged = (...rules: readonly string[]): Decision =>
      new Sessions(contractText({ rules: `[${rules.join(", ")}]` })).ask(call("a", { list }));
    const observed = judged(rule("o", "mode: observe, "), rule("r", ""), rule("p", "mode: observe, "));
    assert.deepEqual([observed.verdict, observed.observed.map(({ rule: name }) => name)], ["ALLOW", ["c.p"]]);
    assert.match(judged(rule("o", ""), rule("r", "")).reason, /over 2000000 steps/);
  });

  test("a call whose value is too long makes the history unknown only if the call ran", () => {
    const policySet = compile(contractText({ counters: `{ k: ${seen} }` }));
    const counter = policySet.counters[0] as Counter;
    const recorded = (s: string, verdict: "ALLOW" | "BLOCK"): Parameters<typeof recount>[2] => ({
      toolName: "t",
      sessionId: "one",
      keyName: "default",
      inputText: JSON.stringify({ n: 1, s }),
      platformText: "null",
      verdict,
      answered: verdict,
      rule: "c.r",
    });
    const counted = (s: string, verdict: "ALLOW" | "BLOCK"): number | undefined =>
      recount(counter, policySet, recorded(s, verdict))?.length;
    assert.deepEqual([counted("a", "ALLOW"), counted("a", "BLOCK")], [1, 1]);
    assert.deepEqual([counted("x".repeat(16_385), "ALLOW"), counted("x".repeat(16_385), "BLOCK")], [undefined, 0]);
  });

  control("positive control: an unknown history is an error, not a value that was never seen", () => {
    const policySet = compile(withRule("input.s in counters.k"));
    const prepared = prepare(policySet, request(call("a")), { keyName: "default", sessionId: "one" });
    const lookupPlan = planLookups(prepared, 1_700_000_000_000);
    assert.equal(lookupPlan.lookups.length, 1);
    const { verdict, rule, reason } = decide(lookupPlan, [undefined]);
    assert.deepEqual([verdict, rule], ["BLOCK", "c.r"]);
    says("a counter that is not known", reason);
  });
});
