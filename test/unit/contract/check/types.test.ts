/**
 * Goal: what compiles never reads what may be absent and never compares what cannot be compared. Method: a table of
 * conditions with the problems that the checker finds in them, none for the good ones, and what the good ones come to
 * on calls with and without the optional members.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  compile,
  conditionText,
  contractText,
  diagnostics,
  holds,
  judge,
  problems,
  snapshot,
} from "../../../support/contract-kit.ts";

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

const bad: readonly (readonly [condition: string, problem: string])[] = [
  ["input.t == 'x'", "unproven-member: `input.t` is optional and may be absent here"],
  ["has(input.t) || input.t == 'x'", "unproven-member: `input.t` is optional and may be absent here"],
  ["!has(input.t) && input.t == 'x'", "unproven-member: `input.t` is optional and may be absent here"],
  [
    "input.n > 1 || has(input.t) && input.t == 'x' || input.t == 'y'",
    "unproven-member: `input.t` is optional and may be absent here",
  ],
  ["(has(input.t) || input.n > 1) && input.t == 'x'", "unproven-member: `input.t` is optional and may be absent here"],
  [
    "(input.n > 1 ? has(input.t) : true) && input.t == 'x'",
    "unproven-member: `input.t` is optional and may be absent here",
  ],
  ["[1].all(x, has(input.t)) && input.t == 'x'", "unproven-member: `input.t` is optional and may be absent here"],
  ["input.?t.hasValue() && input.t == 'x'", "unproven-member: `input.t` is optional and may be absent here"],
  ["has(input.box.y)", "unproven-member: `input.box` is optional and may be absent here"],
  ["has(input.box) && input.box.y == 'x'", "unproven-member: `input.box.y` is optional and may be absent here"],
  ["has(input.open) && input.open.z > 1", "unproven-member: `input.open.z` is optional and may be absent here"],
  ["input.?t == 'x'", "type: an optional (a text or nothing) never equals a text"],
  [
    "input.?t.startsWith('x')",
    "arguments: `startsWith` takes (text, text), not (an optional (a text or nothing), a text)",
  ],
  ["input.?box.x > 1", "type: an optional (an object or nothing) has no members"],
  ["input.?t.orValue(1) == 1", "type: the default is a number, the member is a text"],
  ["input.s.orValue('x') == 'x'", "type: `orValue` is for a member that may be absent, not for a text"],
  [
    "(input.n > 1 ? input.?t : input.?m).orValue('x') == 'x'",
    "type: the two outcomes differ: an optional (a text or nothing) and an optional (a number or nothing)",
  ],
  [
    "has(input.maybe) && input.maybe.size() > 1",
    "arguments: `size` takes (text; or list; or object), not (a text or null)",
  ],
  ["has(input.maybe) && input.maybe < 'b'", "type: a text or null and a text have no order"],
  ["has(input.any) && input.any > 1", "type: a value without a declared type and a number have no order"],
  ["has(input.any) && input.any + 'x' == 'x'", "type: `+` does not take a value without a declared type and a text"],
  ["has(input.any) && input.any.x == 1", "type: a value without a declared type has no members"],
  ["input.n > '1'", "type: a number and a text have no order"],
  ["input.n == '1'", "type: a number never equals a text"],
  ["input.n in ['1']", "type: a number is never in a list of texts"],
  ["input.s in input.s", "type: `in` looks in a list or an object, not in a text"],
  ["1 in {'a': 1}", "type: a number is never a member's name"],
  ["input.n + input.s > 1", "type: `+` does not take a number and a text"],
  ["input.s - 's' == ''", "type: `-` does not take a text and a text"],
  ["[1] + ['x'] == []", "type: `+` does not take a list of numbers and a list of texts"],
  ["now > 5", "type: a timestamp and a number have no order"],
  ["now - 5 > now", "type: `-` does not take a timestamp and a number"],
  ["input.n", "type: a condition must be true or false, this is a number"],
  ["input.n && true", "type: each side of `&&` must be true or false, this is a number"],
  ["!input.n", "type: what `!` is applied to must be true or false, this is a number"],
  ["-input.s == ''", "type: what `-` is applied to must be a number, this is a text"],
  ["input.n ? true : false", "type: what stands before `?` must be true or false, this is a number"],
  ["(input.n > 1 ? 1 : 'x') == 1", "type: the two outcomes differ: a number and a text"],
  ["[1, 'x'].size() > 1", "type: a list of a number and a text"],
  ["{1: 2}.size() > 1", "type: a key must be a text, this is a number"],
  ["{'a': 1, 'a': 2}.size() > 1", 'type: the key "a" stands twice'],
  ["{'a': 1}.b > 1", "unproven-member: `{'a': 1}.b` is optional and may be absent here"],
  ["input.x == 1", "unknown-member: `input` has no member `x`"],
  ["has(input.x)", "unknown-member: `input` has no member `x`"],
  ["input.?x.orValue(1) == 1", "unknown-member: `input` has no member `x`"],
  ["platform.spendt > 1", "unknown-member: `platform` has no member `spendt`"],
  ["limits.mots > 1", "unknown-limit: there is no limit `mots`"],
  ["counters.seen > 1", "unknown-counter: there is no counter `seen`"],
  ["session.id == 'x'", "unknown-member: `session` has only `present`"],
  ["has(limits.most)", "has: `limits` has the members that are declared, no others"],
  ["limits == 1", "incomplete: `limits` is read by member: `limits.name`"],
  ["imput.n > 1", "unknown-name: nothing is called `imput` here"],
  ["x > 1", "unknown-name: nothing is called `x` here"],
  ["[1].exists(x, x > 1) && x > 1", "unknown-name: nothing is called `x` here"],
  ["[1].exists(input, input > 1)", "shadowed-name: `input` already has a meaning here"],
  ["[1].exists(x, [2].exists(x, x > 1))", "shadowed-name: `x` already has a meaning here"],
  ["[1].exists(x > 1)", "macro: `exists` is written `list.exists(x, condition)`"],
  ["input.n.exists(x, x > 1)", "type: `exists` goes over a list or the names of an object, not over a number"],
  ["[1].exists(x, x)", "type: the condition of `exists` must be true or false, this is a number"],
  ["has(input)", "has: `has` takes one member, such as `has(input.note)`"],
  ["has(input.t, input.m)", "has: `has` takes one member, such as `has(input.note)`"],
  ["has(input.?t)", "has: `has` takes one member, such as `has(input.note)`"],
  ["input.s.startsWth('x')", "unknown-function: there is no function `startsWth`"],
  ["startsWith(input.s, 'x')", "unknown-function: `startsWith` is written `value.startsWith(...)`"],
  ["int(input.s) > 1", "left-out: `int` is not part of the contract language"],
  ["input.s.upperAscii() == 'X'", "left-out: `upperAscii` is not part of the contract language"],
  ["cel.bind(x, 1, x) == 1", "left-out: `cel.bind` is not part of the contract language"],
  ["input.s.matches('x')", "pattern: the pattern must be for the whole text: `^(?:...)$`"],
  ["input.s.matches('^(?:a)|(?:b)$')", "pattern: the pattern must be for the whole text: `^(?:...)$`"],
  ["input.s.matches('^(?:(?=a)b)$')", "pattern: not a pattern of RE2: invalid or unsupported Perl syntax: `(?=`"],
  ["input.s.matches(input.s)", "literal: the last argument of `matches` must be a text written here"],
  ["duration('x') > duration('1s')", 'literal: "x" is not a duration such as "10m" or "1h30m"'],
  ["toString == 1", "unknown-name: nothing is called `toString` here"],
  ["input.constructor == 1", "unknown-member: `input` has no member `constructor`"],
  ["limits.__proto__ == 1", "unknown-limit: there is no limit `__proto__`"],
  ["input.s.constructor()", "unknown-function: there is no function `constructor`"],
  ["false < true", "type: a boolean and a boolean have no order"],
];

suite("the type checker", { tags: ["contract.language"] }, () => {
  test("a condition compiles if its members are proven present and its types fit", () => {
    for (const condition of good) assert.deepEqual(problems(conditionText(condition)), [], condition);
  });

  test("the checker refuses each wrong condition with one problem", { tags: ["platform.declared-facts"] }, () => {
    for (const [condition, problem] of bad) assert.deepEqual(problems(conditionText(condition)), [problem], condition);
  });

  test("a condition that compiles evaluates whichever optional members a call has", () => {
    const inputs = [
      { n: 2, s: "x" },
      { n: 2, s: "z", t: "x", m: 2, list: ["x"], numbers: [1], maybe: null, any: 1, box: { x: 2 }, open: {} },
      { n: 2, s: "z", t: "y", maybe: "xx", any: { x: 1 }, box: { x: 2, y: "x" }, open: { z: 2 }, kind: "a", list: [] },
    ];
    for (const condition of good) {
      for (const input of inputs) {
        const result = holds(condition, { input });
        const mayFail = /\[input\.s\]/.test(condition);
        assert.ok(typeof result === "boolean" || mayFail, `${condition}: ${result}`);
      }
    }
  });

  test("without `requires: platform.present` a condition must test for the snapshot before it reads a fact", () => {
    const rules = (condition: string): string =>
      contractText({ rules: `[{ rule: r, on: t, when: "${condition}", verdict: BLOCK, reason: x }]` });
    const problem = "unproven-platform: a check may come without a snapshot, so `platform` may be absent here";
    assert.deepEqual(problems(rules("platform.spent > 1")), [problem]);
    assert.deepEqual(problems(rules("has(platform.price)")), [problem]);
    assert.deepEqual(problems(rules("!platform.present && platform.spent > 1")), [problem]);
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
    assert.match(early("{input.n * 2}")[0] ?? "", /^not-here: `input` has not met its schema yet/);
  });

  test("the checker checks a let at each place that reads it, and refuses cycles", () => {
    const rule = (when: string): string => `[{ rule: r, on: t, when: "${when}", verdict: BLOCK, reason: x }]`;
    const texts = (let_: string, when: string): string[] => problems(contractText({ let: let_, rules: rule(when) }));
    assert.deepEqual(texts("{ isX: \"input.t == 'x'\" }", "has(input.t) && isX"), []);
    assert.equal(
      texts("{ isX: \"input.t == 'x'\" }", "isX")[0],
      "unproven-member: `input.t` is optional and may be absent here",
    );
    assert.deepEqual(texts("{ a: input.n, b: a + 1 }", "b > 1"), []);
    assert.deepEqual(texts("{ a: b, b: a }", "a > 1"), ["let-cycle: `a` is defined by itself"]);
    assert.deepEqual(texts("{ a: a }", "a > 1"), ["let-cycle: `a` is defined by itself"]);
    assert.deepEqual(texts("{ a: input.n, spare: input.x }", "a > 1"), ["unused-name: nothing reads `spare`"]);
    assert.deepEqual(texts("{ a: x > 1 }", "[1].exists(x, a)"), ["unknown-name: nothing is called `x` here"]);
    for (const name of ["input", "platform", "limits", "counters", "tool", "session", "now", "key", "gate", "for"]) {
      assert.deepEqual(texts(`{ ${name}: input.n }`, "input.n > 1").slice(0, 1), [
        `shadowed-name: \`${name}\` already has a meaning`,
      ]);
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
  const untyped = "type: a value without a declared type and a number have no order";
  assert.deepEqual(either("additionalProperties: false"), []);
  assert.deepEqual(either("additionalProperties: { type: number }"), []);
  assert.deepEqual(either("additionalProperties: true"), [untyped]);
  assert.deepEqual(either("additionalProperties: { type: string }"), [untyped]);
});

test("the hint corrects a misspelt name", () => {
  const hint = (condition: string): string | undefined => diagnostics(conditionText(condition))[0]?.hint;
  assert.equal(hint("input.kidn == 'a'"), "did you mean `kind`?");
  assert.equal(hint("platform.walet == 'a'"), "did you mean `wallet`?");
  assert.equal(hint("limits.nmaes == []"), "did you mean `names`?");
  assert.equal(hint("imput.n == 1"), "did you mean `input`?");
  assert.equal(hint("input.s.startwith('x')"), "did you mean `startsWith`?");
  assert.equal(
    hint("input.t == 'x'"),
    "say what holds without it: `has(input.t) && ...`, or `input.?t.orValue(...)`, or require it",
  );
});

test("an input cannot become or shadow a fact", { tags: ["platform.from-platform-only"] }, () => {
  const input = `{ type: object, additionalProperties: true, properties: { platform: { type: object, additionalProperties: true } } }`;
  const rules = `[{ rule: r, on: t, when: "platform.spent > 10", verdict: BLOCK, reason: "{platform.spent} is spent" }]`;
  const force = compile(contractText({ input, rules, requires: "platform.present" }));
  const sent = { platform: { spent: 0, present: true }, spent: 0, present: true, platform_state: { spent: 0 } };
  assert.equal(judge(force, { input: sent, platform: { wallet: "w", spent: 11 } }).reason, "Svc: 11 is spent");
  assert.equal(judge(force, { input: sent }).rule, "c.$requires.1");
  assert.equal(judge(force, { input: sent, platform: snapshot }).verdict, "ALLOW");
});
