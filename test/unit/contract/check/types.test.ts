/**
 * Goal: a contract that compiles never reads a member that may be absent and never compares incomparable values.
 * Method: a table of conditions with the checker's problems, none for the good ones. The good ones are evaluated on
 * calls with and without the optional members.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  compile,
  conditionText,
  contractText,
  diagnostics,
  isTrue,
  judge,
  problems,
  snapshot,
} from "../../../support/contract-kit.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const good: readonly string[] = [
  "input.n > 1 && input.s == 'x'",
  "has(input.t) && input.t == 'x'",
  "!has(input.t) || input.t == 'x'",
  "has(input.t) ? input.t == 'x' : false",
  "!has(input.t) ? false : input.t == 'x'",
  "!(!has(input.t)) && input.t == 'x'",
  "!(!has(input.t) || input.t == 'x')",
  "(has(input.t) && has(input.m)) && input.t == 'x' && input.m > 1",
  "has(input.t) && (input.n > 1 || input.t == 'x')",
  "(has(input.t) && input.n > 1 || has(input.t) && input.n < 1) && input.t == 'x'",
  "'t' in input && input.t == 'x'",
  "has(input['t']) && input.t == 'x'",
  "has(input.t) && input['t'] == 'x'",
  "input.?t.orValue('x') == 'x'",
  "input.?t.hasValue() && has(input.t)",
  "has(input.box) && input.box.x > 1",
  "has(input.box) && has(input.box.y) && input.box.y == 'x'",
  "input.?box.?y.orValue('') == 'x'",
  "has(input.list) && input.list.exists(x, x.startsWith('x'))",
  "input.?list.orValue([]).exists(x, x.startsWith('x'))",
  "input.?list.orValue([]) + ['x'] == ['x']",
  "has(input.maybe) && input.maybe != null && input.maybe.size() > 1",
  "has(input.maybe) && (input.maybe == null || input.maybe.size() > 1)",
  "has(input.maybe) && null != input.maybe && input.maybe < 'b'",
  "has(input.maybe) && input.maybe == 'x'",
  "has(input.any) && input.any == 1",
  "has(input.any) && input.any == 'x'",
  "has(input.any) && input.any in ['x', 'y']",
  "has(input.open) && has(input.open.z) && input.open.z > 1",
  "has(input.open) && 'z' in input.open",
  "input.?open.?z.orValue(0) > 1",
  "has(input.open) && input.open[input.s] > 0",
  "has(input.open) && input.open.exists(k, k == 'z')",
  "has(input.kind) && input.kind == 'a'",
  "platform.spent + input.n > limits.most && platform.wallet in limits.names",
  "has(platform.price) && input.n > platform.price",
  "timestamp(platform.spent) < now",
  "tool == 't' && session.present",
  "['x', null].exists(x, x != null && x.size() > 0)",
  "[input.?t].size() == 1",
  "{'a': 1, 'b': 'x'}.b == 'x'",
  "{'a': 1, 'b': 2}[input.s] > 1",
];

/** The problem is in the golden file, under the condition. */
const bad: readonly (readonly [condition: string, code: string])[] = [
  ["input.t == 'x'", "unproven-member"],
  ["has(input.t) || input.t == 'x'", "unproven-member"],
  ["!has(input.t) && input.t == 'x'", "unproven-member"],
  ["input.n > 1 || has(input.t) && input.t == 'x' || input.t == 'y'", "unproven-member"],
  ["(has(input.t) || input.n > 1) && input.t == 'x'", "unproven-member"],
  ["(input.n > 1 ? has(input.t) : true) && input.t == 'x'", "unproven-member"],
  ["[1].all(x, has(input.t)) && input.t == 'x'", "unproven-member"],
  ["input.?t.hasValue() && input.t == 'x'", "unproven-member"],
  ["has(input.box.y)", "unproven-member"],
  ["has(input.box) && input.box.y == 'x'", "unproven-member"],
  ["has(input.open) && input.open.z > 1", "unproven-member"],
  ["input.?t == 'x'", "type"],
  ["input.?t.startsWith('x')", "arguments"],
  ["input.?box.x > 1", "type"],
  ["input.?t.orValue(1) == 1", "type"],
  ["input.s.orValue('x') == 'x'", "type"],
  ["(input.n > 1 ? input.?t : input.?m).orValue('x') == 'x'", "type"],
  ["has(input.maybe) && input.maybe.size() > 1", "arguments"],
  ["has(input.maybe) && input.maybe < 'b'", "type"],
  ["has(input.any) && input.any > 1", "type"],
  ["has(input.any) && input.any + 'x' == 'x'", "type"],
  ["has(input.any) && input.any.x == 1", "type"],
  ["input.n > '1'", "type"],
  ["input.n == '1'", "type"],
  ["input.n in ['1']", "type"],
  ["input.s in input.s", "type"],
  ["1 in {'a': 1}", "type"],
  ["input.n + input.s > 1", "type"],
  ["input.s - 's' == ''", "type"],
  ["[1] + ['x'] == []", "type"],
  ["now > 5", "type"],
  ["now - 5 > now", "type"],
  ["input.n", "type"],
  ["input.n && true", "type"],
  ["!input.n", "type"],
  ["-input.s == ''", "type"],
  ["input.n ? true : false", "type"],
  ["(input.n > 1 ? 1 : 'x') == 1", "type"],
  ["[1, 'x'].size() > 1", "type"],
  ["{1: 2}.size() > 1", "type"],
  ["{'a': 1, 'a': 2}.size() > 1", "type"],
  ["{'a': 1}.b > 1", "unproven-member"],
  ["input.x == 1", "unknown-member"],
  ["has(input.x)", "unknown-member"],
  ["input.?x.orValue(1) == 1", "unknown-member"],
  ["platform.spendt > 1", "unknown-member"],
  ["limits.mots > 1", "unknown-limit"],
  ["counters.seen > 1", "unknown-counter"],
  ["session.id == 'x'", "unknown-member"],
  ["has(limits.most)", "has"],
  ["limits == 1", "incomplete"],
  ["imput.n > 1", "unknown-name"],
  ["x > 1", "unknown-name"],
  ["[1].exists(x, x > 1) && x > 1", "unknown-name"],
  ["[1].exists(input, input > 1)", "shadowed-name"],
  ["[1].exists(x, [2].exists(x, x > 1))", "shadowed-name"],
  ["[1].exists(x > 1)", "macro"],
  ["input.n.exists(x, x > 1)", "type"],
  ["[1].exists(x, x)", "type"],
  ["has(input)", "has"],
  ["has(input.t, input.m)", "has"],
  ["has(input.?t)", "has"],
  ["input.s.startsWth('x')", "unknown-function"],
  ["startsWith(input.s, 'x')", "unknown-function"],
  ["int(input.s) > 1", "left-out"],
  ["input.s.upperAscii() == 'X'", "left-out"],
  ["cel.bind(x, 1, x) == 1", "left-out"],
  ["input.s.matches('x')", "pattern"],
  ["input.s.matches('^(?:a)|(?:b)$')", "pattern"],
  ["input.s.matches('^(?:(?=a)b)$')", "pattern"],
  ["input.s.matches(input.s)", "literal"],
  ["duration('x') > duration('1s')", "literal"],
  ["toString == 1", "unknown-name"],
  ["input.constructor == 1", "unknown-member"],
  ["limits.__proto__ == 1", "unknown-limit"],
  ["input.s.constructor()", "unknown-function"],
  ["false < true", "type"],
];

suite("the type checker", { tags: ["contract.language"] }, () => {
  test("a condition compiles if its members are proven present and its types fit", () => {
    for (const condition of good) assert.deepEqual(problems(conditionText(condition)), [], condition);
  });

  test("the checker refuses each wrong condition with one problem", { tags: ["platform.declared-facts"] }, () => {
    for (const [condition, code] of bad) {
      const [problem = "", ...more] = problems(conditionText(condition));
      assert.ok(problem.startsWith(`${code}: `), `${condition}: ${problem}`);
      assert.deepEqual(more, [], condition);
      says(condition, problem);
    }
  });

  test("a condition that compiles evaluates whichever optional members a call has", () => {
    const inputs = [
      { n: 2, s: "x" },
      { n: 2, s: "z", t: "x", m: 2, list: ["x"], numbers: [1], maybe: null, any: 1, box: { x: 2 }, open: {} },
      { n: 2, s: "z", t: "y", maybe: "xx", any: { x: 1 }, box: { x: 2, y: "x" }, open: { z: 2 }, kind: "a", list: [] },
    ];
    for (const condition of good) {
      for (const input of inputs) {
        const result = isTrue(condition, { input });
        const mayFail = /\[input\.s\]/.test(condition);
        assert.ok(typeof result === "boolean" || mayFail, `${condition}: ${result}`);
      }
    }
  });

  test("without `requires: platform.present` a condition must test for the snapshot before it reads a fact", () => {
    const rules = (condition: string): string =>
      contractText({ rules: `[{ rule: r, on: t, when: "${condition}", verdict: BLOCK, reason: x }]` });
    for (const condition of ["platform.spent > 1", "has(platform.price)", "!platform.present && platform.spent > 1"]) {
      const [problem = "", ...more] = problems(rules(condition));
      assert.deepEqual(more, [], condition);
      says("unproven-platform", problem);
    }
    assert.deepEqual(problems(rules("platform.present && platform.spent > 1")), []);
    assert.deepEqual(problems(rules("!platform.present || platform.spent > 1")), []);
  });

  test("a requirement proves members present for the rules and requirements after it", () => {
    const rules =
      "[{ rule: r, on: t, when: \"input.t == 'x' && platform.price > 1\", verdict: BLOCK, reason: '{input.t}' }]";
    const all = "[platform.present, has(input.t), has(platform.price)]";
    assert.deepEqual(problems(contractText({ rules, requires: all })), []);
    assert.equal(problems(contractText({ rules, requires: "[platform.present, has(platform.price)]" })).length, 2);
    assert.deepEqual(problems(contractText({ requires: "[has(input.t), \"input.t == 'x'\"]" })), []);
    assert.equal(problems(contractText({ requires: "[\"input.t == 'x'\", has(input.t)]" })).length, 1);
  });

  test("a requirement's reason cannot read input, platform or now before the schemas are checked", () => {
    const early = (reason: string): string[] =>
      problems(contractText({ requires: `[{ when: platform.present, reason: "${reason}" }]` }));
    assert.deepEqual(early("no snapshot for {tool}, at most {limits.most}"), []);
    for (const root of ["input.n", "now"]) assert.equal(early(`{${root}}`).length, 1, root);
    assert.match(early("{platform.spent}")[0] ?? "", /^not-here/);
    says("input-before-its-schema", early("{input.n * 2}")[0] ?? "");
  });

  test("the checker checks a let at each expression that reads it, and refuses cycles", () => {
    const rule = (when: string): string => `[{ rule: r, on: t, when: "${when}", verdict: BLOCK, reason: x }]`;
    const texts = (let_: string, when: string): string[] => problems(contractText({ let: let_, rules: rule(when) }));
    assert.deepEqual(texts("{ isX: \"input.t == 'x'\" }", "has(input.t) && isX"), []);
    says("let-reads-what-may-be-absent", String(texts("{ isX: \"input.t == 'x'\" }", "isX")[0]));
    assert.deepEqual(texts("{ a: input.n, b: a + 1 }", "b > 1"), []);
    for (const [let_, when, name] of [
      ["{ a: b, b: a }", "a > 1", "let-cycle"],
      ["{ a: a }", "a > 1", "let-cycle"],
      ["{ a: input.n, spare: input.x }", "a > 1", "let-unused"],
      ["{ a: x > 1 }", "[1].exists(x, a)", "let-reads-a-macro's-name"],
    ] as const) {
      const [problem = "", ...more] = texts(let_, when);
      assert.deepEqual(more, [], let_);
      says(name, problem);
    }
    for (const name of [
      "input",
      "platform",
      "limits",
      "counters",
      "tool",
      "session",
      "now",
      "key",
      "gate",
      "call",
      "for",
    ]) {
      says(`let-named ${name}`, String(texts(`{ ${name}: input.n }`, "input.n > 1")[0]));
    }
    for (const name of ["in", "true"]) assert.match(texts(`{ ${name}: input.n }`, "input.n > 1")[0] ?? "", /^name/);
  });

  test("the compiler reports every problem of a contract once, in the order of the text", () => {
    const rules = `
  - { rule: a, on: t, when: input.x > 1, verdict: BLOCK, reason: "{input.y}" }
  - { rule: a, on: u, when: "input.n >", verdict: DENY, reason: "" }
  - { rule: b, on: t, when: input.n + 'x' > 2 && missing, verdict: ALLOW, final: true, reason: ok }`;
    const found = diagnostics(contractText({ rules, limits: "{ most: ten, least: { min: 1 } }" }));
    assert.deepEqual(
      found.map(({ code }) => code),
      [
        "limit",
        "unknown-member",
        "unknown-member",
        "twice",
        "unknown-tool",
        "syntax",
        "verdict",
        "reason",
        "type",
        "unknown-name",
        "final",
      ],
    );
  });

  test("a presence test of one list item proves nothing about another item", () => {
    const input = `{ type: object, additionalProperties: false, properties: {
      lines: { type: array, items: { type: object, additionalProperties: false, properties: { a: { type: number } } } } } }`;
    const rules = (when: string): string[] =>
      problems(contractText({ input, rules: `[{ rule: r, on: t, when: "${when}", verdict: BLOCK, reason: x }]` }));
    assert.deepEqual(rules("has(input.lines) && input.lines.exists(x, has(x.a) && x.a > 1)"), []);
    assert.equal(rules("has(input.lines) && input.lines.exists(x, x.a > 1)").length, 1);
    assert.equal(rules("has(input.lines) && has(input.lines[0].a) && input.lines[1].a > 1").length, 1);
    assert.equal(rules("has(input.lines) && input.lines.exists(x, has(x.a)) && input.lines.all(x, x.a > 1)").length, 1);
  });
});

test("a member has no type if one branch of anyOf allows other types for it", () => {
  const either = (first: string): string[] => {
    const shape = (k: string, more: string): string =>
      `{ type: object, required: [k], properties: { k: { const: ${k} } }, ${more} }`;
    const second = "additionalProperties: false, properties: { k: { const: b }, x: { type: number } }";
    const v = `{ anyOf: [${shape("a", first)}, { type: object, required: [k], ${second} }] }`;
    const input = `{ type: object, additionalProperties: false, required: [v], properties: { v: ${v} } }`;
    const rules = `[{ rule: r, on: t, when: has(input.v.x) && input.v.x > 5, verdict: BLOCK, reason: x }]`;
    return problems(contractText({ input, rules }));
  };
  assert.deepEqual(either("additionalProperties: false"), []);
  assert.deepEqual(either("additionalProperties: { type: number }"), []);
  for (const others of ["true", "{ type: string }"]) {
    const [problem = "", ...more] = either(`additionalProperties: ${others}`);
    assert.deepEqual(more, [], others);
    says("without-a-declared-type", problem);
  }
});

test("the hint corrects a misspelt name", () => {
  const hint = (condition: string): string | undefined => diagnostics(conditionText(condition))[0]?.hint;
  assert.equal(hint("input.kidn == 'a'"), "did you mean `kind`?");
  assert.equal(hint("platform.walet == 'a'"), "did you mean `wallet`?");
  assert.equal(hint("limits.nmaes == []"), "did you mean `names`?");
  assert.equal(hint("imput.n == 1"), "did you mean `input`?");
  assert.equal(hint("input.s.startwith('x')"), "did you mean `startsWith`?");
  says("hint-for-an-optional-member", String(hint("input.t == 'x'")));
});

test("an input cannot become or shadow a fact", { tags: ["platform.from-platform-only"] }, () => {
  const input = `{ type: object, additionalProperties: true, properties: { platform: { type: object, additionalProperties: true } } }`;
  const rules = `[{ rule: r, on: t, when: "platform.spent > 10", verdict: BLOCK, reason: "{platform.spent} is spent" }]`;
  const policySet = compile(contractText({ input, rules, requires: "platform.present" }));
  const sent = { platform: { spent: 0, present: true }, spent: 0, present: true, platform_state: { spent: 0 } };
  assert.equal(judge(policySet, { input: sent, platform: { wallet: "w", spent: 11 } }).reason, "Svc: 11 is spent");
  assert.equal(judge(policySet, { input: sent }).rule, "c.$requires.1");
  assert.equal(judge(policySet, { input: sent, platform: snapshot }).verdict, "ALLOW");
});
