/**
 * Goal: the worked example of the specification (4.6) gives exactly its results, also at its boundaries. Method:
 * contracts/payments.yaml under the repository's own mandate.yaml, one line per call.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import {
  compileMandate,
  renderDiagnostic,
  type PolicySet,
  type Decision,
} from "../../../packages/readers/src/contract.ts";
import { good } from "../../../packages/core/src/wire/mod.ts";
import { judge, mandate } from "../../support/contract-kit.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const root = new URL("../../../", import.meta.url);
const contract = readFileSync(new URL("contracts/payments.yaml", root), "utf8");
const policySet = load(readFileSync(new URL("mandate.yaml", root), "utf8"));

function load(text: string): PolicySet {
  const compiled = compileMandate({ name: "mandate.yaml", text }, (name) =>
    good({ name, text: readFileSync(new URL(name, root), "utf8") }),
  );
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n"));
  return compiled.value;
}

const now = 1_760_000_000;
const payee = "0x52908400098527886E0F7030069857D2E4169EE7";

/** Returns the call of the worked example, with changes of `input` and `platform` as JSON texts. */
function pay(input: Readonly<Record<string, string>>, platform: Readonly<Record<string, string>> | null): Decision {
  const text = (members: Readonly<Record<string, string>>): string =>
    `{${Object.entries(members)
      .filter(([, value]) => value !== "absent")
      .map(([name, value]) => `"${name}":${value}`)
      .join(",")}}`;
  const sent = { amount: "10", currency: '"USD"', payee_address: `"${payee}"`, offer_expires_epoch: `${now + 60}` };
  const facts = { monthly_spend_usd: "0", approved_payees: `["${payee}"]`, historical_price_usd: "10" };
  return judge(policySet, {
    tool: "payment.send",
    input: text({ ...sent, merchant: '"m"', resource: '"r"', ...input }),
    ...(platform === null ? {} : { platform: text({ ...facts, now_epoch: `${now}`, ...platform }) }),
  });
}

function assertDecision(decision: Decision, verdict: string, rule: string, what: string): void {
  assert.deepEqual([decision.verdict, decision.rule], [verdict, rule], `${what}: ${decision.reason}`);
  says(what, decision.reason);
  assert.match(decision.reason, /^Svc: \S/);
  assert.equal(decision.defect, undefined);
}

suite("the worked example of specification 4.6", () => {
  test(
    "the contract allows 10 USD to a registered payee while the offer is valid",
    { tags: ["payments.registered-payee", "payments.inputs"] },
    () => {
      assertDecision(pay({}, {}), "ALLOW", "payments.$otherwise", "row 1");
    },
  );

  test(
    "the contract blocks 10 USD to an address that differs by one character",
    { tags: ["payments.unregistered-payee", "platform.approved-payees"] },
    () => {
      const decision = pay({ payee_address: `"${payee.slice(0, -1)}8"` }, {});
      assertDecision(decision, "BLOCK", "payments.payee-registered", "row 2");
    },
  );

  test(
    "the contract escalates 20 USD for what usually costs 10 USD",
    { tags: ["payments.price-variance", "platform.historical-price"] },
    () => {
      const decision = pay({ amount: "20" }, {});
      assertDecision(decision, "ESCALATE", "payments.price-variance", "row 3");
    },
  );

  test(
    "the contract blocks 20 USD if 190 of 200 USD are spent",
    { tags: ["payments.monthly-budget", "platform.monthly-spend"] },
    () => {
      const decision = pay({ amount: "20" }, { monthly_spend_usd: "190", historical_price_usd: "20" });
      assertDecision(decision, "BLOCK", "payments.within-monthly-budget", "row 4");
    },
  );

  test(
    "the contract blocks an expired offer",
    { tags: ["payments.expired-offer", "verdict.stale-not-resumed", "platform.now-epoch"] },
    () => {
      const decision = pay({ offer_expires_epoch: `${now - 1}` }, {});
      assertDecision(decision, "BLOCK", "payments.offer-still-valid", "row 5");
      assert.equal(decision.final, true);
    },
  );

  test(
    "the contract blocks a payment without a snapshot",
    { tags: ["payments.no-snapshot", "check.payment-without-snapshot", "platform.present-false"] },
    () => {
      assertDecision(pay({}, null), "BLOCK", "payments.$requires.1", "row 6");
      // Whatever else is wrong with the call, the reason names the missing part first and reads no absent member.
      assertDecision(pay({ amount: "absent" }, null), "BLOCK", "payments.$requires.1", "row 6");
    },
  );
});

const boundaries: readonly (readonly [
  what: string,
  input: Readonly<Record<string, string>>,
  platform: Readonly<Record<string, string>>,
  verdict: string,
  rule: string,
])[] = [
  ["exactly the payment limit", { amount: "50" }, { historical_price_usd: "50" }, "ALLOW", "$otherwise"],
  ["the limit in other spellings", { amount: "5e1" }, { historical_price_usd: "50.00" }, "ALLOW", "$otherwise"],
  ["just over the payment limit", { amount: "50.01" }, { historical_price_usd: "50" }, "BLOCK", "within-payment-limit"],
  [
    "over by less than a double tells",
    { amount: "50.00000000000000000000001" },
    { historical_price_usd: "50" },
    "BLOCK",
    "within-payment-limit",
  ],
  ["190 + 10 = 200 exactly", {}, { monthly_spend_usd: "190" }, "ALLOW", "$otherwise"],
  ["190.01 + 10", {}, { monthly_spend_usd: "190.01" }, "BLOCK", "within-monthly-budget"],
  [
    "199.7 + 0.1 + nothing lost",
    { amount: "0.3" },
    { monthly_spend_usd: "199.7", historical_price_usd: "0.3" },
    "ALLOW",
    "$otherwise",
  ],
  [
    "0.1 + 199.9 is 200",
    { amount: "0.1" },
    { monthly_spend_usd: "199.9", historical_price_usd: "0.1" },
    "ALLOW",
    "$otherwise",
  ],
  [
    "199.9 + 0.2 is over",
    { amount: "0.2" },
    { monthly_spend_usd: "199.9", historical_price_usd: "0.2" },
    "BLOCK",
    "within-monthly-budget",
  ],
  ["exactly 1.25 times", { amount: "12.5" }, {}, "ALLOW", "$otherwise"],
  ["exactly 1.25 times 0.1", { amount: "0.125" }, { historical_price_usd: "0.1" }, "ALLOW", "$otherwise"],
  ["over 1.25 times", { amount: "12.500001" }, {}, "ESCALATE", "price-variance"],
  ["a usual price of zero", {}, { historical_price_usd: "0" }, "ESCALATE", "price-variance"],
  ["no price history", {}, { historical_price_usd: "absent" }, "ESCALATE", "price-known"],
  ["already entitled", {}, { entitlements: '["q","r"]' }, "ESCALATE", "not-already-entitled"],
  ["entitled to another", {}, { entitlements: '["R","r "]' }, "ALLOW", "$otherwise"],
  ["no resource named", { resource: "absent" }, { entitlements: '["r"]' }, "ALLOW", "$otherwise"],
  ["an offer that expires now", { offer_expires_epoch: `${now}` }, {}, "ALLOW", "$otherwise"],
  ["an offer in whole seconds, written long", { offer_expires_epoch: `${now}.0` }, {}, "ALLOW", "$otherwise"],
  ["another currency", { currency: '"EUR"' }, {}, "BLOCK", "$input"],
  ["a look-alike currency", { currency: '"UЅD"' }, {}, "BLOCK", "$input"],
  ["a text for an amount", { amount: '"5000"' }, {}, "BLOCK", "$input"],
  ["true for an amount", { amount: "true" }, {}, "BLOCK", "$input"],
  ["null for an amount", { amount: "null" }, {}, "BLOCK", "$input"],
  ["a list for an amount", { amount: "[10]" }, {}, "BLOCK", "$input"],
  ["no amount", { amount: "absent" }, {}, "BLOCK", "$input"],
  ["1e1 is 10", { amount: "1e1" }, {}, "ALLOW", "$otherwise"],
  ["10.000 is 10", { amount: "10.000" }, {}, "ALLOW", "$otherwise"],
  ["1e400 is over", { amount: "1e400" }, {}, "BLOCK", "within-payment-limit"],
  ["nothing", { amount: "0" }, {}, "BLOCK", "$input"],
  ["nothing, with a sign", { amount: "-0.0" }, {}, "BLOCK", "$input"],
  ["less than nothing", { amount: "-10" }, {}, "BLOCK", "$input"],
  ["as little as can be sent", { amount: "1e-400" }, {}, "ALLOW", "$otherwise"],
  ["half a second", { offer_expires_epoch: `${now}.5` }, {}, "BLOCK", "$input"],
  ["a member that the tool does not take", { memo: '"x"' }, {}, "BLOCK", "$input"],
  ["a fact in the input", { approved_payees: `["${payee}"]` }, {}, "BLOCK", "$input"],
  ["facts of the wrong type", {}, { monthly_spend_usd: '"0"' }, "BLOCK", "$platform"],
  ["spending below zero", {}, { monthly_spend_usd: "-1000" }, "BLOCK", "$platform"],
  ["a fact that is missing", {}, { approved_payees: "absent" }, "BLOCK", "$platform"],
  ["nobody registered", {}, { approved_payees: "[]" }, "BLOCK", "payee-registered"],
  ["a fact more than declared", {}, { wallet: '"w"' }, "ALLOW", "$otherwise"],
];

test(
  "every rule decides correctly at its boundaries",
  { tags: ["platform.entitlements", "payments.inputs", "payments.settings"] },
  () => {
    for (const [what, input, platform, verdict, rule] of boundaries)
      assertDecision(pay(input, platform), verdict, `payments.${rule}`, what);
  },
);

test(
  "BLOCK beats ESCALATE for an expired offer at an unusual price to an unregistered payee",
  { tags: ["verdict.values", "verdict.meanings"] },
  () => {
    const decision = pay({ amount: "45", offer_expires_epoch: "1", payee_address: '"x"' }, { entitlements: '["r"]' });
    assertDecision(decision, "BLOCK", "payments.offer-still-valid", "all at once");
    const rules = ["offer-still-valid", "payee-registered", "price-variance", "not-already-entitled"];
    assert.deepEqual(
      decision.fired,
      rules.map((rule) => `payments.${rule}`),
    );
  },
);

test(
  "the contract has the limits, and a mandate can override them",
  { tags: ["limit.payments-in-contract", "payments.replaceable"] },
  () => {
    const settings = "limits:\n  payments: { per_payment_usd: 5, monthly_budget_usd: 1000 }\n";
    const compiled = mandate(`mandate: m\ncontracts: [p.yaml]\n${settings}`, { "p.yaml": contract });
    assert.ok(compiled.ok);
    const call = {
      tool: "payment.send",
      input: { amount: 10, currency: "USD", payee_address: "x", offer_expires_epoch: now },
      platform: { monthly_spend_usd: 900, approved_payees: ["x"], now_epoch: now, historical_price_usd: 10 },
    };
    assert.equal(judge(compiled.value, call).rule, "payments.within-payment-limit");
    assert.equal(judge(policySet, call).rule, "payments.within-monthly-budget");
  },
);

test("the settings of the example are 50, 200 and 1.25", { tags: ["payments.settings"] }, () => {
  for (const line of ["per_payment_usd: 50", "monthly_budget_usd: 200", "price_variance: 1.25"])
    assert.ok(contract.includes(`  ${line}\n`), line);
});

test(
  "the text in force is the mandate and the contract, byte for byte",
  { tags: ["contract.verbatim", "contract.mandate-loads"] },
  () => {
    const text = readFileSync(new URL("mandate.yaml", root), "utf8");
    assert.equal(policySet.text, `--- # mandate.yaml\n${text}--- # contracts/payments.yaml\n${contract}`);
    assert.deepEqual(policySet.contracts, ["payments"]);
  },
);
