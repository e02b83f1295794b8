/**
 * Goal: the rules of evaluation in spec/contract.md are in force: the order of checks, the strictest verdict wins, no error is
 * absorbed, and an evaluation error is a BLOCK that names it. Method: tables of small contracts and calls; random
 * contracts for the general properties, with a printed seed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { isStricter, isVerdict, verdicts, type Verdict } from "../../../../packages/core/src/wire/mod.ts";
import { compile, contractText, judge, snapshot, type Call, type Parts } from "../../../support/contract-kit.ts";
import { control } from "../../../support/controls/control.ts";
import { randomRuns } from "../../../support/random-test.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** `npm test` runs a part of the random cases. */
const share = Number(process.env["PROPERTY_SHARE"] ?? 1);

function rule(name: string, when: string, verdict: string, reason = name, final = false): string {
  const parts = [`rule: ${name}`, "on: t", `when: ${JSON.stringify(when)}`, `verdict: ${verdict}`, `final: ${final}`];
  return `{ ${[...parts, `reason: ${JSON.stringify(reason)}`].join(", ")} }`;
}

function rules(...list: readonly string[]): string {
  return `[${list.join(", ")}]`;
}

/** Verdict and rule. */
function outcome(text: string | readonly string[], call: Call = {}): string {
  const decision = judge(compile(...(typeof text === "string" ? [text] : text)), call);
  assert.match(decision.reason, /^Svc: \S/);
  return `${decision.verdict} ${decision.rule}${decision.final ? " final" : ""}`;
}

const [allow, escalate, block] = [
  rule("a", "true", "ALLOW"),
  rule("e", "true", "ESCALATE"),
  rule("b", "true", "BLOCK"),
];
const never = rule("never", "false", "BLOCK");

suite(
  "the strictest verdict wins, and the order of rules chooses only the reason",
  { tags: ["verdict.values", "verdict.meanings"] },
  () => {
    const cases: readonly (readonly [rules: string, otherwise: string, outcome: string])[] = [
      [rules(), "ALLOW", "ALLOW c.$otherwise"],
      [rules(never), "ESCALATE", "ESCALATE c.$otherwise"],
      [rules(never), "BLOCK", "BLOCK c.$otherwise final"],
      [rules(allow), "BLOCK", "ALLOW c.a"],
      [rules(escalate), "ALLOW", "ESCALATE c.e"],
      [rules(allow, escalate, block), "ALLOW", "BLOCK c.b"],
      [rules(block, escalate, allow), "ALLOW", "BLOCK c.b"],
      [rules(allow, block, rule("b2", "true", "BLOCK")), "ALLOW", "BLOCK c.b"],
      [rules(rule("b2", "true", "BLOCK"), block), "ALLOW", "BLOCK c.b2"],
      [rules(block, rule("f", "true", "BLOCK", "f", true)), "ALLOW", "BLOCK c.b final"],
      [rules(escalate, rule("x", "1 / (input.n - 1) > 0", "ALLOW")), "ALLOW", "BLOCK c.x final"],
    ];

    test("the strictest verdict within one contract wins", () => {
      for (const [list, otherwise, expected] of cases)
        assert.equal(outcome(contractText({ rules: list, otherwise })), expected, `${list} ${otherwise}`);
    });

    test("the strictest verdict of all contracts that route the tool wins", () => {
      const text = (name: string, list: string, otherwise: string): string =>
        contractText({ rules: list, otherwise }, name);
      const both = (a: string, b: string): string[] => [outcome([a, b]), outcome([b, a])];
      assert.deepEqual(both(text("c", rules(), "ALLOW"), text("d", rules(), "ALLOW")), [
        "ALLOW c.$otherwise",
        "ALLOW d.$otherwise",
      ]);
      assert.deepEqual(both(text("c", rules(), "ALLOW"), text("d", rules(escalate), "BLOCK")), [
        "ESCALATE d.e",
        "ESCALATE d.e",
      ]);
      assert.deepEqual(both(text("c", rules(allow), "ALLOW"), text("d", rules(), "BLOCK")), [
        "BLOCK d.$otherwise final",
        "BLOCK d.$otherwise final",
      ]);
      assert.deepEqual(both(text("c", rules(block), "ALLOW"), text("d", rules(escalate), "ALLOW")), [
        "BLOCK c.b",
        "BLOCK c.b",
      ]);
    });

    test(
      "another contract can give another verdict for the same call",
      { tags: ["verdict.contract-sets-conditions", "payments.replaceable"] },
      () => {
        const found = verdicts.map((otherwise) => judge(compile(contractText({ otherwise }))).verdict);
        assert.deepEqual(found, [...verdicts]);
      },
    );
  },
);

test(
  "the engine blocks a tool that no contract routes, and the reason names the tool",
  { tags: ["check.unrouted-tool", "service.silence-refuses", "error.gate-blocks"] },
  () => {
    const policySet = compile(contractText().replace("  t:\n", "  payment.send:\n"));
    const named: readonly (readonly [tool: string, reason: string])[] = [
      ["shell", 'unknown tool "shell": no contract routes it'],
      ["Payment.Send", 'unknown tool "Payment.Send": no contract routes it; it resembles "payment.send"'],
      ["payment.send ", 'unknown tool "payment.send ": no contract routes it; it resembles "payment.send"'],
      ["payment.send\u200b", 'unknown tool "payment.send\\u200b": no contract routes it; it resembles "payment.send"'],
      ["pаyment.send", 'unknown tool "p\\u0430yment.send": no contract routes it; it resembles "payment.send"'],
      ["\u202edne.tnemyap", 'unknown tool "\\u202edne.tnemyap": no contract routes it'],
      ["x\ny", 'unknown tool "x\\u000ay": no contract routes it'],
      ["__proto__", 'unknown tool "__proto__": no contract routes it'],
      ["constructor", 'unknown tool "constructor": no contract routes it'],
      ["x".repeat(256), `unknown tool "${"x".repeat(64)}…": no contract routes it`],
    ];
    for (const [tool, reason] of named) {
      const decision = judge(policySet, { tool });
      assert.deepEqual([decision.verdict, decision.rule, decision.final], ["BLOCK", "$route", true], tool);
      assert.equal(decision.reason, `Svc: ${reason}`);
    }
  },
);

suite("the order of the checks", () => {
  const requires = `[
      { when: platform.present, reason: no facts }, { when: "session.present && tool == 't'", reason: no session },
      { when: "input.n > 0", reason: "n is {input.n}" }, has(platform.price)]`;
  const text = contractText({ requires, rules: rules(rule("r", "platform.price < 5", "BLOCK", "cheap")) });
  const [session, priced] = ["s", { ...snapshot, price: 1 }];
  const order: readonly (readonly [call: Call, outcome: string, reason: string])[] = [
    [{ tool: "u" }, "BLOCK $route final", "unknown tool"],
    [{ input: {} }, "BLOCK c.$requires.1 final", "no facts"],
    [{ input: {}, platform: {} }, "BLOCK c.$requires.2 final", "no session"],
    [{ input: {}, platform: {}, session }, "BLOCK c.$input final", "input.n is missing"],
    [{ input: { n: 0, s: "" }, platform: {}, session }, "BLOCK c.$platform final", "platform.wallet is missing"],
    [{ input: { n: 0, s: "" }, platform: snapshot, session }, "BLOCK c.$requires.3 final", "n is 0"],
    [{ platform: snapshot, session }, "BLOCK c.$requires.4 final", "`has(platform.price)` is required"],
    [{ platform: priced, session }, "BLOCK c.r", "cheap"],
    [{ platform: { ...priced, price: 5 }, session }, "ALLOW c.$otherwise", "allowed"],
  ];

  test(
    "the engine checks route, presence, schemas, requirements and rules, in this order",
    { tags: ["platform.present-false"] },
    () => {
      for (const [call, expected, reason] of order) {
        assert.equal(outcome(text, call), expected);
        assert.ok(judge(compile(text), call).reason.startsWith(`Svc: ${reason}`), reason);
      }
    },
  );

  test("the presence requirements of all contracts come before the schemas of any", () => {
    const other = contractText({ requires: "session.present" }, "d");
    assert.equal(outcome([contractText(), other], { input: {} }), "BLOCK d.$requires.1 final");
  });

  test(
    "without a snapshot `platform.present` is false, and the contract says what follows",
    { tags: ["platform.present-false"] },
    () => {
      const lenient = contractText({
        rules: rules(rule("r", "!platform.present || platform.spent > 100", "ESCALATE")),
      });
      assert.equal(outcome(lenient), "ESCALATE c.r");
      assert.equal(outcome(lenient, { platform: snapshot }), "ALLOW c.$otherwise");
      assert.equal(
        outcome(contractText({ rules: rules(rule("r", "session.present", "ESCALATE")) })),
        "ALLOW c.$otherwise",
      );
    },
  );

  test("a condition can compare every type of fact in a snapshot", { tags: ["platform.facts-comparable"] }, () => {
    const platform =
      "{ type: object, additionalProperties: false, required: [a, b, c, d, e], properties: { a: { type: " +
      "number }, b: { type: string }, c: { type: boolean }, d: { type: array, items: { type: string } " +
      "}, e: { type: object, required: [f], properties: { f: { type: integer } } } } }";
    const condition = "platform.a == 1.5 && platform.b == 'x' && platform.c && 'y' in platform.d && platform.e.f == 2";
    const facts = contractText({ platform, requires: "platform.present", rules: rules(rule("r", condition, "BLOCK")) });
    assert.equal(outcome(facts, { platform: { a: 1.5, b: "x", c: true, d: ["y"], e: { f: 2 } } }), "BLOCK c.r");
    assert.equal(
      outcome(facts, { platform: { a: 1.5, b: "x", c: true, d: ["y"], e: { f: 3 } } }),
      "ALLOW c.$otherwise",
    );
  });

  test("the engine does not verify the content of a snapshot", { tags: ["platform.not-verified"] }, () => {
    const facts = contractText({
      requires: "platform.present",
      rules: rules(rule("r", "platform.spent > 10", "BLOCK")),
    });
    for (const wallet of ["w", "another", ""])
      assert.equal(outcome(facts, { platform: { wallet, spent: 10 } }), "ALLOW c.$otherwise");
  });

  test("`now` is the moment of the check, to the millisecond", () => {
    const moments = contractText({ rules: rules(rule("r", "now >= timestamp('2026-01-01T00:00:00.250Z')", "BLOCK")) });
    const at = Temporal.Instant.from("2026-01-01T00:00:00.250Z").epochMilliseconds;
    assert.equal(outcome(moments, { now: at }), "BLOCK c.r");
    assert.equal(outcome(moments, { now: at - 1 }), "ALLOW c.$otherwise");
  });
});

suite("an error of evaluation is a BLOCK that names the rule and the cause", () => {
  const erring = "1 / (input.n - 1) > 0";
  const cases: readonly string[] = [
    erring,
    `true && ${erring}`,
    `${erring} || true`,
    `!(${erring})`,
    "[1][5] == 1",
    "has(input.open) && input.open[input.s] > 1",
    "timestamp(input.s) < now",
    "input.?numbers.orValue([1e400, 1e400, 1e400, 1e400]).size() > 0 && 1e400 * 1e400 * 1e400 * 1e400 * input.n > 0",
  ];

  test("a rule that cannot be evaluated blocks, whatever its verdict", () => {
    for (const verdict of verdicts) {
      for (const when of cases) {
        const decision = judge(compile(contractText({ rules: rules(rule("r", when, verdict)), otherwise: "ALLOW" })), {
          input: { n: 1, s: "x", open: {} },
        });
        assert.deepEqual([decision.verdict, decision.rule, decision.final], ["BLOCK", "c.r", true], when);
        says(when, decision.reason);
        assert.equal(decision.errors[0]?.[0], "c.r");
        assert.equal(decision.defect, undefined);
      }
    }
  });

  test("an error in a reason, in a requirement or in `otherwise` blocks", () => {
    const inReason = contractText({ rules: rules(rule("r", "true", "ALLOW", "{1 / (input.n - 1)}")) });
    assert.equal(outcome(inReason), "BLOCK c.r final");
    assert.equal(outcome(contractText({ requires: `["${erring}"]` })), "BLOCK c.$requires.1 final");
    assert.equal(
      outcome(contractText({ otherwise: '{ verdict: ALLOW, reason: "{1 / (input.n - 1)}" }' })),
      "BLOCK c.$otherwise final",
    );
  });

  test("an earlier BLOCK keeps its reason, and the decision lists later errors too", () => {
    const decision = judge(compile(contractText({ rules: rules(block, rule("x", erring, "ALLOW")) })));
    assert.deepEqual([decision.rule, decision.final, decision.errors.map(([name]) => name)], ["c.b", true, ["c.x"]]);
    assert.deepEqual(decision.fired, ["c.b"]);
  });
});

suite("a refusal without a reason of its own says what is false in each rule that could allow the call", () => {
  const small = rule("small", "input.n < 10 && input.s == 'y'", "ALLOW");
  const reasonOf = (parts: Parts, call: Call = {}): string => judge(compile(contractText(parts)), call).reason;

  test("it names the first part that is false, and a part of a name that `let` gives", () => {
    const parts = { rules: rules(small), otherwise: "BLOCK" };
    says("the second part", reasonOf(parts));
    says("the first part", reasonOf(parts, { input: { n: 10, s: "y" } }));
    says("a person decides", reasonOf({ ...parts, otherwise: "ESCALATE" }));
    const named = rules(rule("named", "fits", "ALLOW"));
    says(
      "a name of let",
      reasonOf({ let: "{ fits: 'input.n == 1 && input.s == \"y\"' }", rules: named, otherwise: "BLOCK" }),
    );
    assert.equal(judge(compile(contractText(parts)), { input: { n: 9, s: "y" } }).verdict, "ALLOW", "positive control");
  });

  test("it names three rules and counts the others, without those that observe or do not allow", () => {
    const allowing = [1, 2, 3, 4, 5].map((n) => rule(`r${n}`, `input.n == ${n * 100}`, "ALLOW"));
    const others = [
      rule("b", "input.n == 7", "BLOCK"),
      rule("o", "input.n == 8", "ALLOW").replace("{", "{ mode: observe,"),
    ];
    says("five rules", reasonOf({ rules: rules(...others, ...allowing), otherwise: "BLOCK" }));
    says("no rule", reasonOf({ rules: rules(...others), otherwise: "BLOCK" }));
    says(
      "a long condition",
      reasonOf({ rules: rules(rule("r", `input.s == '${"y".repeat(200)}'`, "ALLOW")), otherwise: "BLOCK" }),
    );
  });

  test("what it costs to say so changes no verdict", () => {
    const twice = "has(input.list) && input.list.exists(x, input.list.exists(y, x == y + 'q'))";
    const list = Array.from({ length: 500 }, (_, at) => `${at}`);
    const contract = compile(contractText({ rules: rules(rule("r", twice, "ALLOW")), otherwise: "ESCALATE" }));
    const decision = judge(contract, { input: { n: 1, s: "x", list } });
    assert.deepEqual([decision.verdict, decision.errors], ["ESCALATE", []]);
    assert.match(decision.reason, /c\.r does not, because/);
  });

  test("what YAML escapes is not shown, and `false` says nothing", () => {
    for (const when of ["input.s == '\\\\u00e9'", "false"])
      assert.equal(
        reasonOf({ rules: rules(rule("r", when, "ALLOW")), otherwise: "BLOCK" }),
        "Svc: c refuses t unless a rule allows it: c.r does not",
      );
  });

  test("a reason that the contract gives stays as it is", () => {
    const otherwise = "{ verdict: BLOCK, reason: not today }";
    assert.equal(reasonOf({ rules: rules(small), otherwise }), "Svc: not today");
  });
});

test(
  "a reason shows numbers as they were sent, and quotes, escapes and cuts texts",
  { tags: ["verdict.reason", "service.one-question"] },
  () => {
    const shown: readonly (readonly [reason: string, input: unknown, shown: string])[] = [
      ["{input.n} of {limits.most}", '{"n": 1.50, "s": ""}', "1.50 of 10"],
      ["{input.n}", '{"n": 1e2, "s": ""}', "1e2"],
      ["{input.n * 2}", '{"n": 0.1, "s": ""}', "0.2"],
      ["{input.n / 3}", '{"n": 1, "s": ""}', "1/3"],
      ["{{{input.s}}}", { n: 1, s: "x" }, '{"x"}'],
      ["{input.s}", { n: 1, s: 'a"b\\c\n\u202e\u0000' }, '"a\\"b\\\\c\\u000a\\u202e\\u0000"'],
      ["{input.s}", { n: 1, s: "y".repeat(65) }, `"${"y".repeat(64)}…"`],
      ["{input.?t}", { n: 1, s: "" }, "nothing"],
      ["{input.?t.orValue('none')}", { n: 1, s: "" }, '"none"'],
      ["{limits.names} {tool} {platform.present}", { n: 1, s: "" }, '["alice", "bob"] "t" false'],
      ["{'{' + input.s + '}'} {{}}", { n: 1, s: "x" }, '"{x}" {}'],
      ["{duration('90s')} {input.s == 'x' ? 'yes' : 'no'}", { n: 1, s: "x" }, '90s "yes"'],
    ];
    for (const [reason, input, expected] of shown) {
      const decision = judge(compile(contractText({ rules: rules(rule("r", "true", "ESCALATE", reason)) })), { input });
      assert.equal(decision.reason, `Svc: ${expected}`);
    }
  },
);

suite("properties of random contracts and calls", () => {
  const verdict = fc.constantFrom(...verdicts);
  const condition = fc.constantFrom(
    "true",
    "false",
    "input.n > 1",
    "input.n < 1",
    "input.s == 'x'",
    "1 / (input.n - 1) > 0",
    "has(input.t)",
    "counters.k > 2",
    "platform.present",
  );
  const ruleParts = fc.record({ when: condition, verdict, final: fc.boolean() });
  const parts = fc.record({ rules: fc.array(ruleParts, { maxLength: 4 }), otherwise: verdict });
  const call = fc.record({
    n: fc.integer({ min: 0, max: 2 }),
    s: fc.constantFrom("x", "y"),
    t: fc.option(fc.constant("t"), { nil: undefined }),
    k: fc.integer({ min: 0, max: 4 }),
  });
  type RandomParts = {
    readonly rules: readonly { readonly when: string; readonly verdict: Verdict; readonly final: boolean }[];
    readonly otherwise: Verdict;
  };

  const counters = "{ k: { of: t, per: gate } }";
  function text(from: RandomParts, name: string): string {
    const list = from.rules.map(({ when, verdict: reached, final }, at) =>
      rule(`r${at}`, when, reached, `r${at}`, final && reached === "BLOCK"),
    );
    return contractText({ rules: rules(...list), otherwise: from.otherwise, counters }, name);
  }
  function decide(
    texts: readonly string[],
    { n, s, t, k }: { n: number; s: string; t?: string | undefined; k: number },
  ): ReturnType<typeof judge> {
    return judge(compile(...texts), { input: { n, s, t }, counters: { "c.k": `${k}`, "d.k": `${k}` } });
  }

  test("adding a BLOCK rule, anywhere, never makes the verdict more lenient", (t) => {
    fc.assert(
      fc.property(parts, condition, fc.nat(4), call, (from, when, at, sent) => {
        const more = { ...from, rules: from.rules.toSpliced(at, 0, { when, verdict: "BLOCK", final: false }) };
        assert.ok(!isStricter(decide([text(from, "c")], sent).verdict, decide([text(more, "c")], sent).verdict));
      }),
      randomRuns(t, 400 * share),
    );
  });

  test("a second contract for the tool never makes the verdict more lenient, in either order", (t) => {
    fc.assert(
      fc.property(parts, parts, call, (a, b, sent) => {
        const [one, two] = [text(a, "c"), text(b, "d")];
        const alone = decide([one], sent);
        const both = decide([one, two], sent);
        const turned = decide([two, one], sent);
        assert.ok(!isStricter(alone.verdict, both.verdict));
        assert.deepEqual([both.verdict, both.final], [turned.verdict, turned.final]);
      }),
      randomRuns(t, 400 * share),
    );
  });

  test("the order of the rules changes neither verdict nor finality, only the reason", (t) => {
    fc.assert(
      fc.property(parts, call, (from, sent) => {
        const turned = { ...from, rules: from.rules.toReversed() };
        const [a, b] = [decide([text(from, "c")], sent), decide([text(turned, "c")], sent)];
        assert.deepEqual([a.verdict, a.final, a.fired.length], [b.verdict, b.final, b.fired.length]);
      }),
      randomRuns(t, 400 * share),
    );
  });

  test(
    "a decision has one of three verdicts and a one-line reason, and a second compilation repeats it",
    { tags: ["verdict.values", "verdict.reason"] },
    (t) => {
      fc.assert(
        fc.property(parts, call, (from, sent) => {
          const first = decide([text(from, "c")], sent);
          assert.ok(isVerdict(first.verdict) && /^Svc: \S[^\n]*$/.test(first.reason));
          assert.deepEqual(decide([text(from, "c")], sent), first);
          assert.equal(first.defect, undefined);
          const strictest = first.errors.length > 0 ? "BLOCK" : first.verdict;
          assert.equal(first.verdict, strictest);
        }),
        randomRuns(t, 400 * share),
      );
    },
  );

  control("positive control: `isStricter` orders ALLOW, ESCALATE and BLOCK", () => {
    const order = verdicts.map((a) => verdicts.map((b) => isStricter(a, b)));
    assert.deepEqual(order, [
      [false, false, false],
      [true, false, false],
      [true, true, false],
    ]);
  });
});
