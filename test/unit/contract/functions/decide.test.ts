/**
 * Goal: an uncertain text is a BLOCK whichever way a rule asks, and the gate loads only the functions that a contract
 * calls. Method: the contract of spec/contract.md and one with rules behind `!` decide plain and hostile calls.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, suite, test } from "node:test";
import { loadFunctions, type PolicySet } from "../../../../packages/core/src/contract/mod.ts";
import { compile, contractText, judge, type Call } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const page = readFileSync(new URL("../../../../spec/contract.md", import.meta.url), "utf8");
const outside = compile(/^```yaml\n(contract: outside\n[^]*?)^```$/m.exec(page)?.[1] ?? "");

const friday = Date.UTC(2026, 0, 30, 12);
const saturday = Date.UTC(2026, 0, 31, 12);
const vendors = { vendors: ["Acme Trading"] };

function get(url: string): Call {
  return { tool: "http.get", input: { url } };
}

function write(path: string): Call {
  return { tool: "fs.write", input: { path } };
}

function send(vendor: string, mail: string, now = friday): Call {
  return { tool: "invoice.send", input: { vendor, mail }, platform: vendors, now };
}

const decisions: readonly (readonly [call: Call, verdict: string, rule: string])[] = [
  [get("https://api.example.com/v1"), "ALLOW", "outside.known-hosts"],
  [get("https://eu.cdn.example.com/v1"), "ALLOW", "outside.known-hosts"],
  [get("http://api.example.com/v1"), "BLOCK", "outside.$otherwise"],
  [get("https://evil-cdn.example.com.evil.test/"), "BLOCK", "outside.$otherwise"],
  [get("https://api.example.com@evil.test/"), "BLOCK", "outside.known-hosts"],
  [get("https://api.example.com\\@evil.test/"), "BLOCK", "outside.known-hosts"],
  [write("/srv/project/src/a.ts"), "ALLOW", "outside.project"],
  [write("/srv/project-evil/a.ts"), "BLOCK", "outside.$otherwise"],
  [write("/srv/project/.env.local"), "BLOCK", "outside.$otherwise"],
  [write("/srv/project/../../etc/passwd"), "BLOCK", "outside.project"],
  [send("Acme Trading", "bill@mail.example.com"), "ALLOW", "outside.$otherwise"],
  [send("Acme Trading", "bill@mail.example.com", saturday), "ESCALATE", "outside.office-hours"],
  [send("Acrne Trading", "bill@mail.example.com"), "BLOCK", "outside.look-alike"],
  [send("Acme Trading", "bill@example.com.evil.test"), "BLOCK", "outside.look-alike"],
  [send("Acme Trading", "Bill <bill@example.com>"), "BLOCK", "outside.look-alike"],
];

suite("the example contract of spec/contract.md", () => {
  test("a call that needs a parser is blocked until the parsers are loaded", () => {
    const { verdict, reason } = judge(outside, get("https://api.example.com/v1"));
    assert.equal(verdict, "BLOCK");
    assert.match(reason, /is not loaded/);
  });

  test("the contract decides as the specification says and blocks calls in doubt", async () => {
    await loadFunctions(outside);
    for (const [call, verdict, rule] of decisions) {
      const decision = judge(outside, call);
      assert.equal(decision.defect, undefined);
      assert.deepEqual([decision.verdict, decision.rule], [verdict, rule], JSON.stringify(call.input));
    }
  });

  test("the reason names the doubt", () => {
    const { reason } = judge(outside, get("https://api.example.com@evil.test/"));
    says("url-in-doubt", reason);
  });
});

suite("rules with and without a negated condition", () => {
  const conditions = [
    '!input.s.under("/srv")',
    'input.s.under("/srv")',
    'input.s.glob("**/.env")',
    '!input.s.glob("/srv/**")',
  ];
  const forces = new Map(conditions.map((condition) => [condition, escalating(condition)]));
  before(() => Promise.all([...forces.values()].map(loadFunctions)));

  test("a path in doubt is blocked, with or without negation, and a plain path is not", () => {
    for (const policySet of forces.values()) {
      assert.equal(judge(policySet, { input: { n: 1, s: "/srv/../etc" } }).verdict, "BLOCK");
      assert.notEqual(judge(policySet, { input: { n: 1, s: "/srv/etc" } }).verdict, "BLOCK");
    }
  });

  control("positive control: a rule with `startsWith` allows the path in doubt", () => {
    const policySet = escalating('!input.s.startsWith("/srv")');
    assert.equal(judge(policySet, { input: { n: 1, s: "/srv/../etc" } }).verdict, "ALLOW");
  });
});

function escalating(condition: string): PolicySet {
  return compile(
    contractText({
      rules: `[{ rule: r, on: t, when: ${JSON.stringify(condition)}, verdict: ESCALATE, reason: fired }]`,
    }),
  );
}

test("a contract lists the functions that it calls, so the gate loads no others", () => {
  const called = (condition: string): readonly string[] =>
    [...escalating(condition).functions].filter(({ load }) => load !== undefined).map(({ name }) => name);
  assert.deepEqual(called('input.s.glob("a/*")'), ["glob"]);
  assert.deepEqual(called('url(input.s).host.cidr("10.0.0.0/8")'), ["url", "cidr"]);
  assert.deepEqual(called('input.s.under("/srv") || similar(input.s, ["a"])'), []);
});
