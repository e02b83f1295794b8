/**
 * Goal: of the facts that a host's key sends, only those in a contract's `host_facts` count, for every part of that
 * contract and for no other contract. Method: the same calls by both kinds of keys under small contracts, and a table of
 * mistakes. The positive control is the ordinary key: each call has another result with it.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  planLookups,
  decide,
  prepare,
  recount,
  type Decision,
  type PolicySet,
} from "../../../../packages/core/src/contract/mod.ts";
import type { KeyKind } from "../../../../packages/core/src/wire/mod.ts";
import { compile, diagnostics, marked, locate, request, type Call } from "../../../support/contract-kit.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Parts {
  readonly name?: string;
  readonly hostFacts?: string;
  readonly required?: string;
  readonly more?: string;
  readonly tool?: string;
  readonly rules?: string;
}

function textOf({ name = "c", hostFacts, required = "", more = "", tool = "", rules = "" }: Parts): string {
  return `contract: ${name}
platform:
  type: object
  required: [${required}]
  properties: { cwd: { type: string }, wallet: { type: string }, spent: { type: number, minimum: 0 } }
${hostFacts === undefined ? "" : `host_facts: ${hostFacts}\n`}${more}
tools:
  t:
    input: { type: object, additionalProperties: false, properties: { n: { type: number, minimum: 0 } } }
    requires: [platform.present${tool}]
    otherwise: ALLOW
rules:
  - { rule: never, on: t, when: input.?n.orValue(0) < 0, verdict: BLOCK, reason: never }
${rules}`;
}

function judgeAs(policySet: PolicySet, keyKind: KeyKind | undefined, { counters = {}, ...call }: Call): Decision {
  const sent = request({ input: {}, ...call });
  const lookupPlan = planLookups(prepare(policySet, sent, { keyName: "k", sessionId: null, keyKind }), 1);
  return decide(
    lookupPlan,
    lookupPlan.lookups.map(({ counter }) => counters[counter.name] ?? "0"),
  );
}

/** The rule and the verdict for a host's key, then for an ordinary key. */
function both(policySet: PolicySet, call: Call): readonly string[] {
  return (["host", undefined] as const).map((kind) => {
    const { rule, verdict } = judgeAs(policySet, kind, call);
    return `${rule} ${verdict}`;
  });
}

const all = { cwd: "/home", wallet: "w", spent: 7 };

suite("facts of a host's key", () => {
  test("a required fact that is not listed is missing, and the reason says why", () => {
    const policySet = compile(textOf({ hostFacts: "[cwd]", required: "wallet" }));
    assert.deepEqual(both(policySet, { platform: all }), ["c.$platform BLOCK", "c.$otherwise ALLOW"]);
    says("a required fact", judgeAs(policySet, "host", { platform: all }).reason);
    const listed = compile(textOf({ hostFacts: "[cwd, wallet]", required: "wallet" }));
    assert.deepEqual(both(listed, { platform: all }), ["c.$otherwise ALLOW", "c.$otherwise ALLOW"]);
    const wrong = judgeAs(listed, "host", { platform: { wallet: 3 } });
    says("a listed fact of the wrong type", wrong.reason);
  });

  test("without host_facts no fact counts, and facts are still present", () => {
    const rule = '  - { rule: seen, on: t, when: has(platform.cwd), verdict: BLOCK, reason: "cwd {platform.cwd}" }\n';
    const policySet = compile(textOf({ rules: rule }));
    assert.deepEqual(both(policySet, { platform: all }), ["c.$otherwise ALLOW", "c.seen BLOCK"]);
    assert.equal(judgeAs(policySet, "host", {}).rule, "c.$requires.1", "a call without facts has none");
  });

  test("a requirement, a rule and an otherwise that read such a fact name it in the reason", () => {
    const needs = compile(textOf({ hostFacts: "[cwd]", tool: ', "has(platform.wallet)"' }));
    assert.deepEqual(both(needs, { platform: all }), ["c.$requires.2 BLOCK", "c.$otherwise ALLOW"]);
    says("a requirement", judgeAs(needs, "host", { platform: all }).reason);
    says("a requirement without the fact", judgeAs(needs, "host", { platform: { cwd: "/" } }).reason);
    const asks = `  - rule: nobody
    on: t
    when: "!has(platform.wallet) || !has(platform.spent)"
    verdict: ESCALATE
    reason: nobody says whose money it is
`;
    const rule = compile(textOf({ hostFacts: "[cwd]", rules: asks }));
    assert.deepEqual(both(rule, { platform: all }), ["c.nobody ESCALATE", "c.$otherwise ALLOW"]);
    says("a rule", judgeAs(rule, "host", { platform: all }).reason);
    const gate = '  - { rule: ok, on: t, when: platform.?wallet.orValue("") == "w", verdict: ALLOW, reason: ours }\n';
    const otherwise = compile(
      textOf({ hostFacts: "[cwd]", rules: gate }).replace("otherwise: ALLOW", "otherwise: BLOCK"),
    );
    assert.deepEqual(both(otherwise, { platform: all }), ["c.$otherwise BLOCK", "c.ok ALLOW"]);
    says("an otherwise", judgeAs(otherwise, "host", { platform: all }).reason);
  });

  test("each contract of a tool goes by its own list, in deciding and in observing rules and in reasons", () => {
    const rules = (fact: string): string => `  - rule: deciding
    on: t
    when: has(platform.${fact})
    verdict: BLOCK
    reason: "{platform.${fact}}"
  - { rule: observing, on: t, mode: observe, when: has(platform.${fact}), verdict: BLOCK, reason: "{platform.${fact}}" }
`;
    const texts = (hostFacts: string): readonly string[] => [
      textOf({ name: "a", hostFacts: "[cwd]", rules: rules("wallet") }),
      textOf({ name: "b", hostFacts, rules: rules("wallet") }),
    ];
    const one = judgeAs(compile(...texts("[wallet]")), "host", { platform: all });
    assert.deepEqual([one.fired, one.reason], [["b.deciding"], 'Svc: "w"']);
    assert.deepEqual(
      one.observed.map(({ rule, reason }) => [rule, reason]),
      [["b.observing", '"w"']],
    );
    const none = judgeAs(compile(...texts("[spent]")), "host", { platform: all });
    assert.deepEqual([none.verdict, none.fired, none.observed], ["ALLOW", [], []]);
  });

  test("macros, selections and whole objects see only what counts", () => {
    const conditions = [
      'platform.?wallet.orValue("") == "w"',
      'platform[?"wallet"].orValue("") == "w"',
      '["w"].exists(item, item == platform.?wallet.orValue(""))',
      "has(platform.wallet) && platform.wallet.size() == 1",
    ];
    for (const when of conditions) {
      const rules = `  - { rule: r, on: t, when: ${JSON.stringify(when)}, verdict: BLOCK, reason: fired }\n`;
      const policySet = compile(textOf({ hostFacts: "[cwd]", rules }));
      assert.deepEqual(both(policySet, { platform: all }), ["c.$otherwise ALLOW", "c.r BLOCK"], when);
    }
  });

  test("a counter that reads such a fact counts only the calls in which it counts", () => {
    const counters = `counters:
  rich: { of: t, per: key, when: "platform.?spent.orValue(0) > 5" }
`;
    const policySet = compile(textOf({ hostFacts: "[cwd]", more: counters }));
    const [counter] = policySet.counters;
    assert.ok(counter !== undefined);
    const recorded = {
      toolName: "t",
      sessionId: null,
      keyName: "k",
      inputText: "{}",
      platformText: JSON.stringify(all),
      verdict: "ALLOW",
      answered: "ALLOW",
      rule: "c.$otherwise",
    } as const;
    assert.deepEqual(recount(counter, policySet, { ...recorded, keyKind: "host" }), []);
    assert.equal(recount(counter, policySet, recorded)?.length, 1);
  });

  test("counters are the same only if they count the same calls of hosts", () => {
    const counters = "counters: { spent: { of: t, per: key, sum: platform.spent } }\n";
    const identityOf = (hostFacts?: string): string | undefined =>
      compile(textOf({ ...(hostFacts !== undefined && { hostFacts }), required: "spent", more: counters })).counters[0]
        ?.identity;
    assert.equal(identityOf("[cwd]"), identityOf(), "the counter does not read cwd");
    assert.equal(identityOf("[spent, cwd]"), identityOf("[spent]"));
    assert.notEqual(identityOf("[spent]"), identityOf());
  });

  test("the facts that count for no contract are known, so that an approval is not bound to them", () => {
    const policySet = compile(
      textOf({ name: "a", hostFacts: "[cwd]" }),
      textOf({ name: "b", hostFacts: "[spent]", more: "subject: [platform.wallet]\n" }),
    );
    const prepared = (keyKind: KeyKind | undefined): readonly string[] =>
      prepare(policySet, request({ input: {}, platform: all }), { keyName: "k", sessionId: null, keyKind }).uncounted;
    assert.deepEqual([prepared("host"), prepared(undefined)], [["wallet"], []]);
  });
});

test("the compiler reports each entry of host_facts that names no declared fact", () => {
  const cases: readonly (readonly [what: string, hostFacts: string])[] = [
    ["an unknown fact", "[cwd, walet]"],
    ["a fact that resembles no other", "[hostname]"],
    ["a path", "[platform.cwd]"],
    ["a fact twice", "[cwd, cwd]"],
    ["not a list", "cwd"],
  ];
  for (const [what, hostFacts] of cases) {
    const [found, ...others] = diagnostics(textOf({ hostFacts }));
    assert.ok(found !== undefined && others.length === 0, what);
    says(what, `${locate(found)} ${marked(found)}: ${found.code}: ${found.message} (${found.hint ?? ""})`);
  }
  const without = diagnostics(
    "contract: c\nhost_facts: [cwd]\ntools: { t: { input: { type: object, additionalProperties: true }, otherwise: ALLOW } }\n",
  );
  says("a contract without facts", without.map(({ message }) => message).join("; "));
});
