/**
 * Goal: the compiler never throws and the engine has no defect, whatever the contract's text and the call. Method: the
 * example contracts with random edits; random inputs and facts for contracts that use every feature. The seed is
 * printed if a case fails.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import fc from "fast-check";
import { compileContracts, renderDiagnostic } from "../../../packages/readers/src/contract.ts";
import { compile, contractText, judge, type Call } from "../../support/contract-kit.ts";
import { randomRuns } from "../../support/random-test.ts";

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

const page = readFileSync(new URL("../../../spec/contract.md", import.meta.url), "utf8");
const sources = [
  readFileSync(new URL("../../../contracts/payments.yaml", import.meta.url), "utf8"),
  ...[...page.matchAll(/^```yaml\n(contract:[^]*?)^```$/gm)].map(([, text = ""]) => text),
  `${contractText()}sensitive: [input.box.x, "platform.wallet"]\n`,
];
const pieces = fc.oneof(
  fc.constantFrom(
    ...(
      "{ } [ ] : , - # & * ! | > ' \" % @ ` ? ( ) . .? [? && || in has \n \r\n \t null true 1e400 $ref " +
      "anyOf allOf __proto__ constructor ALLOW BLOCK platform input limits counters \\ \u0000 \ufeff 😀"
    ).split(" "),
  ),
  fc.string({ unit: "binary", maxLength: 3 }),
);
const calls: readonly Call[] = [
  {
    tool: "payment.send",
    input: { amount: 10, currency: "USD", payee_address: "p", payee: "p", offer_expires_epoch: 5 },
    platform: { monthly_spend_usd: 1, approved_payees: ["p"], now_epoch: 4 },
  },
  { tool: "refund", input: { usd: 1 }, platform: { wallet: "w", as_of_epoch: 1, spent_usd: 1 } },
  { tool: "mail.send", input: { to: ["a"], subject: "s", reply_to: null } },
];

suite("the compiler and the engine on random texts and calls", { tags: ["contract.compiled"] }, () => {
  test("no contract with random edits makes the compiler throw or the engine fail", (t) => {
    const edit = fc.record({ at: fc.nat(10_000), remove: fc.nat(12), insert: pieces });
    let compiledCount = 0;
    const isTrue = fc.property(
      fc.constantFrom(...sources),
      fc.array(edit, { minLength: 1, maxLength: 3 }),
      (source, edits) => {
        let text = source;
        for (const { at, remove, insert } of edits) {
          const from = at % (text.length + 1);
          text = text.slice(0, from) + insert + text.slice(from + remove);
        }
        const compiled = compileContracts([{ name: "c.yaml", text }]);
        if (compiled.ok) {
          compiledCount += 1;
          for (const call of calls) assert.equal(judge(compiled.value, call).defect, undefined);
        } else {
          assert.ok(compiled.problem.length > 0);
          for (const problem of compiled.problem) {
            assert.ok(
              problem.span.from >= 0 && problem.span.to > problem.span.from && problem.span.from <= text.length,
            );
            assert.match(renderDiagnostic(problem), /^error\[[a-z-]+\]: ./);
          }
        }
      },
    );
    fc.assert(isTrue, randomRuns(t, 400 * share));
    compiledCount = 0;
    fc.assert(isTrue, { numRuns: 100, seed: 1 });
    assert.ok(compiledCount > 0, "none of the edited contracts of seed 1 compiled");
  });

  test("no random call causes a defect in the engine", (t) => {
    const conditions = [
      "input.n > limits.most || input.s == 'x'",
      "has(input.any) && (input.any == input.n || input.any == input.s || input.any in [1, 2] || input.any == [] || input.any == null)",
      "has(input.list) && input.list.exists(x, x == input.s || x.size() > 2) || 'a' in input.?list.orValue([])",
      "has(input.numbers) && input.numbers.map(x, x * 2).exists_one(x, x > input.n / 3)",
      "has(input.box) && (input.box.x > 1 || input.box.?y.orValue('') < 'm')",
      "has(input.open) && input.open.all(k, k.startsWith('a') || has(input.open.a))",
      "has(input.maybe) && input.maybe != null && input.maybe.matches('^(?:[a-z]*)$')",
      "platform.present && has(platform.price) && platform.price % 3 == 1",
      "platform.present && timestamp(platform.spent) + duration('1h') > now",
      "counters.k + input.?m.orValue(0) > 3",
      "has(input.numbers) && input.numbers == [1]",
    ];
    const rules = conditions.map(
      (when, at) =>
        `{ rule: r${at}, on: t, when: ${JSON.stringify(when)}, verdict: ESCALATE, reason: "{input.n} ` +
        `{input.s} {input.?list} {input.?maybe}" }`,
    );
    const counters = "{ k: { of: t, per: [input.s, key], when: input.n > 0, sum: input.?m.orValue(1), within: 1h } }";
    const policySet = compile(contractText({ rules: `[${rules.join(", ")}]`, counters }));
    const json = fc.jsonValue({ maxDepth: 3 });
    const often = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
      fc.oneof({ weight: 5, arbitrary }, { weight: 1, arbitrary: json });
    const number = often(
      fc.oneof(
        fc.integer({ min: -5, max: 5 }),
        fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }),
      ),
    );
    const string = often(fc.string({ maxLength: 4 }));
    const input = fc.record(
      {
        n: number,
        s: string,
        m: number,
        list: often(fc.array(fc.string({ maxLength: 3 }), { maxLength: 4 })),
        numbers: often(fc.array(number, { maxLength: 4 })),
        any: json,
        maybe: fc.oneof(string, fc.constant(null)),
        box: often(fc.record({ x: number, y: string }, { requiredKeys: ["x"] })),
        open: often(fc.dictionary(fc.constantFrom("a", "b", "__proto__"), number, { noNullPrototype: true })),
      },
      { requiredKeys: ["n", "s"] },
    );
    const platform = fc.option(
      fc.record({ wallet: string, spent: number, price: number }, { requiredKeys: ["wallet", "spent"] }),
      { nil: undefined },
    );
    const verdictsSeen = new Set<string>();
    const isTrue = fc.property(input, platform, fc.nat(9), (sent, state, k) => {
      const decision = judge(policySet, { input: sent, platform: state, counters: { "c.k": `${k}` } });
      assert.equal(decision.defect, undefined, decision.reason);
      assert.match(decision.reason, /^Svc: \S[^\n]*$/);
      verdictsSeen.add(`${decision.verdict} ${decision.rule.split(".")[1]}`);
    });
    fc.assert(isTrue, randomRuns(t, 3000 * share));
    verdictsSeen.clear();
    fc.assert(isTrue, { numRuns: 1000, seed: 1 });
    // The calls of seed 1 reach deep: both schemas refuse some, and several rules are the first to fire.
    for (const seen of ["BLOCK $input", "BLOCK $platform"]) assert.ok(verdictsSeen.has(seen), [...verdictsSeen].join());
    assert.ok(verdictsSeen.size >= 6, [...verdictsSeen].join());
  });
});
