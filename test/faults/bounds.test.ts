/**
 * Goal: no text makes the compiler run without end, and no call the engine: excess is a static error or a BLOCK, never
 * a crash. Method: small texts that multiply are made large. Each case has a limit of processor time, tens of times the
 * normal time, because unbounded multiplication does not end.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, conditionText, contractText, judge, problems, snapshot } from "../support/contract-kit.ts";

/** Returns the processor time of this process: a busy machine does not lengthen it. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Returns the codes of the problems, found within the time. */
function codes(text: string, withinMs = 60_000): string[] {
  const start = cpuMs();
  const found = problems(text).map((problem) => problem.split(":")[0] ?? "");
  const took = cpuMs() - start;
  assert.ok(took < withinMs, `took ${Math.round(took)} ms`);
  return found;
}

function repeat(count: number, piece: (at: number) => string, by = ", "): string {
  return Array.from({ length: count }, (_, at) => piece(at)).join(by);
}

function rule(when: string): string {
  return `[{ rule: r, on: t, when: ${JSON.stringify(when)}, verdict: BLOCK, reason: x }]`;
}

const object = "type: object, additionalProperties: false";

suite("limits of the compiler", () => {
  test("the compiler refuses names that double at each step", () => {
    const lets = `{ a0: input.n, ${repeat(40, (at) => `a${at + 1}: a${at} + a${at}`)} }`;
    assert.deepEqual(codes(contractText({ let: lets, rules: rule("a40 > 1") })), ["too-large"]);
  });

  test("the compiler refuses names that nest too deeply", () => {
    const chain = (at: number): string => `a${at + 1}: "a${at}${" + 1".repeat(300)}"`;
    assert.deepEqual(codes(contractText({ let: `{ a0: input.n, ${repeat(20, chain)} }`, rules: rule("a20 > 1") })), [
      "too-large",
    ]);
    const counters = "{ k: { of: t, per: gate, when: a500 > 1 } }";
    const deep = `{ a0: input.n, ${repeat(500, (at) => `a${at + 1}: a${at} + 1`)} }`;
    assert.deepEqual(codes(contractText({ let: deep, counters })), ["too-large"]);
  });

  test("the compiler refuses expressions that are too deep or too long", () => {
    const deep: readonly string[] = [
      `${"(".repeat(5000)}true${")".repeat(5000)}`,
      `${"!".repeat(5000)}true`,
      `${"[".repeat(2400)}1${"]".repeat(2400)} == []`,
      `${"true ? ".repeat(1000)}true${" : true".repeat(1000)}`,
      `${"true && ".repeat(2000)}true`,
      `${"1 + ".repeat(2000)}1 > 0`,
      `input${".box".repeat(2000)} == 1`,
      `input${"[0]".repeat(1200)} == 1`,
      `${"[1].exists(x, ".repeat(150)}true${")".repeat(150)}`,
      `${"true || ".repeat(10_000)}true`,
    ];
    for (const text of deep) {
      const found = new Set(codes(conditionText(text)));
      assert.ok(
        found.has("too-large") || found.has("syntax") || found.has("unknown-member"),
        `${text.slice(0, 20)}: ${[...found].join()}`,
      );
    }
    assert.deepEqual(codes(conditionText(`${"true && ".repeat(390)}true`)), []);
    assert.deepEqual(codes(conditionText(`input.s in [${repeat(2000, (at) => `'${at}'`)}]`)), []);
  });

  test("the compiler reports each rule that is too large once", () => {
    const found = codes(
      contractText({
        rules: `[${repeat(3, (at) => `{ rule: r${at}, on: t, when: "${"1 + ".repeat(1000)}1 > 0", verdict: BLOCK, reason: x }`)}]`,
      }),
    );
    assert.deepEqual(found, ["too-large", "too-large", "too-large"]);
  });

  test("the compiler refuses references that double at each step", () => {
    const defs = repeat(
      30,
      (at) =>
        `d${at}: { ${object}, properties: { a: { $ref: "#/$defs/d${at + 1}" }, b: { $ref: "#/$defs/d${at + 1}" } } }`,
    );
    const input = `{ ${object}, $defs: { ${defs}, d30: { type: number } }, properties: { v: { $ref: "#/$defs/d0" } } }`;
    assert.deepEqual(codes(contractText({ input }), 120_000), ["too-large"]);
  });

  test("all tools of a contract share one budget for references, and the compiler reports it once", () => {
    const defs = repeat(
      13,
      (at) =>
        `d${at}: { ${object}, properties: { a: { $ref: "#/$defs/d${at + 1}" }, b: { $ref: "#/$defs/d${at + 1}" } } }`,
    );
    const tool =
      `{ input: { ${object}, $defs: { ${defs}, d13: { type: number } }, properties: { v: { $ref: ` +
      `"#/$defs/d0" } } }, otherwise: ALLOW }`;
    const found = codes(`contract: c\ntools: { ${repeat(40, (at) => `t${at}: ${tool}`)} }`, 120_000);
    assert.deepEqual(found, ["too-large"]);
  });

  test("the compiler accepts 14 levels of nested anyOf and refuses 25", () => {
    const nested = (levels: number): string => {
      let schema = "{ type: number }";
      for (let level = 0; level < levels; level += 1)
        schema =
          `{ anyOf: [{ ${object}, required: [k], properties: { k: { const: a }, v: ${schema} } }, { ` +
          `${object}, required: [k], properties: { k: { const: b } } }] }`;
      return contractText({ input: `{ ${object}, properties: { v: ${schema} } }` });
    };
    assert.deepEqual(codes(nested(14)), []);
    assert.deepEqual(new Set(codes(nested(25))), new Set(["yaml"]));
  });

  test("the compiler refuses patterns that are too long or repeat too often", () => {
    const pattern = (text: string): string[] =>
      codes(
        contractText({ input: `{ ${object}, properties: { v: { type: string, pattern: ${JSON.stringify(text)} } } }` }),
      );
    for (const text of [
      "(?:a{1000}){1000}",
      "a{1001}",
      "(?:(?:a{100}){100}){10}",
      "a{1000}".repeat(20),
      "(".repeat(3000),
      "a".repeat(2001),
      "[a-z]{1,990}[0-9]{1,990}",
    ])
      assert.deepEqual(pattern(text), ["pattern"], text.slice(0, 20));
    for (const text of ["^[0-9a-f]{64}$", "^.{1,255}@.{1,120}$", "(?:a|b){1,200}"])
      assert.deepEqual(pattern(text), [], text);
    assert.deepEqual(codes(conditionText(`input.s.matches('^(?:${"a{1000}".repeat(20)})$')`)), ["pattern"]);
  });

  test("an enum of 20,000 values compiles, and lookups in it are fast", () => {
    const policySet = compile(
      contractText({
        input: `{ ${object}, required: [v], properties: { v: { type: array, items: { enum: [${repeat(20_000, (at) => `v${at}`)}] } } } }`,
      }),
    );
    const v = Array.from({ length: 20_000 }, (_, at) => `v${19_999 - at}`);
    const start = cpuMs();
    assert.equal(judge(policySet, { input: { v } }).verdict, "ALLOW");
    assert.equal(judge(policySet, { input: { v: ["v"] } }).reason.length < 300, true);
    assert.ok(cpuMs() - start < 60_000);
  });

  test("the compiler refuses YAML that is nested too deeply or too large", () => {
    assert.deepEqual(codes(`contract: c\nlimits: ${"[".repeat(50_000)}`), ["yaml"]);
    assert.deepEqual(codes(`contract: c\nlimits: ${"{ a: ".repeat(20_000)}`), ["yaml"]);
    assert.deepEqual(codes(`contract: c\nlimits:\n${"- ".repeat(20_000)}x`), ["yaml"]);
    assert.deepEqual(
      codes(contractText({ limits: `{ a: ${"[".repeat(80)}1${"]".repeat(80)} }` })).includes("yaml"),
      true,
    );
    assert.deepEqual(codes(`contract: c # ${"x".repeat(1_000_000)}`), ["too-large"]);
    assert.deepEqual(codes(`contract: c\nsummary: "${"\\n".repeat(200_000)}"\ntools: {}\n`), []);
    assert.deepEqual(codes(`contract: c\nsummary: >\n${"  word\n\n".repeat(50_000)}tools: {}\n`), []);
  });

  test("a contract with 5,000 rules compiles, and the rule that applies decides the call", () => {
    const rules = repeat(
      5000,
      (at) =>
        `  - rule: r${at}\n    on: [t]\n    when: "input.n > ${at + 10} && has(input.t) && input.t == ` +
        `'x${at}'"\n    verdict: ESCALATE\n    reason: "{input.n} is over ${at}"\n`,
      "",
    );
    const text = contractText({ rules: `\n${rules}` });
    const start = cpuMs();
    const policySet = compile(text);
    const compiled = cpuMs();
    assert.ok(compiled - start < 120_000, `${compiled - start} ms`);
    assert.equal(judge(policySet, { input: { n: 5000, s: "", t: "x3" } }).rule, "c.r3");
    assert.ok(cpuMs() - compiled < 10_000);
  });

  test("the compiler reports one error for too many rules on too many tools", () => {
    const tools = repeat(
      300,
      (at) => `t${at}: { input: { ${object}, required: [a], properties: { a: { type: number } } }, otherwise: ALLOW }`,
    );
    const rules = repeat(
      200,
      (at) => `{ rule: r${at}, on: ["*"], when: "${"input.a > 1 || ".repeat(30)}false", verdict: BLOCK, reason: x }`,
    );
    assert.deepEqual(codes(`contract: c\ntools: { ${tools} }\nrules: [${rules}]`, 120_000), ["too-large"]);
  });
});

suite("limits of the evaluation", () => {
  const many = Array.from({ length: 20_000 }, (_, at) => `s${at}`);

  /** Returns the reason for a call, found within the time. */
  function reason(condition: string, input: unknown, withinMs = 30_000): string {
    const policySet = compile(conditionText(condition));
    const start = cpuMs();
    const decision = judge(policySet, { input, platform: snapshot });
    const took = cpuMs() - start;
    assert.ok(took < withinMs, `${condition} took ${Math.round(took)} ms`);
    assert.equal(decision.defect, undefined);
    return `${decision.verdict} ${decision.reason}`;
  }

  test("nested loops over long lists exceed the step limit and block", () => {
    const out = /^BLOCK Svc: .*\bc\.r\b.*\b2000000 steps$/;
    const input = { n: 1, s: "x", list: many };
    assert.match(reason("has(input.list) && input.list.exists(x, input.list.exists(y, x == y + 'z'))", input), out);
    assert.match(reason("has(input.list) && !input.list.all(x, input.list.all(y, x != y + 'z'))", input), out);
    assert.match(reason("has(input.list) && input.list.map(x, input.list + [x]).size() > 5", input), out);
    assert.match(reason("has(input.list) && input.list.exists(x, (x + 'z') in input.list)", input), out);
    assert.match(reason("has(input.list) && input.list.exists(x, input.list == [x])", input), out);
    assert.match(reason("has(input.list) && input.list.exists(x, x == 'no')", input), /^ALLOW/);
  });

  test("operations on texts cost steps in proportion to the length of the text", () => {
    const input = { n: 1, s: "y".repeat(100_000), list: many };
    const out = /\b2000000 steps$/;
    assert.match(reason("has(input.list) && input.list.exists(x, input.s.contains(x))", input), out);
    assert.match(reason("has(input.list) && input.list.exists(x, (input.s + x).endsWith('no'))", input), out);
    assert.match(reason("has(input.list) && input.list.exists(x, input.s.lowerAscii() == x)", input), out);
    assert.match(reason("has(input.list) && input.list.exists(x, input.s.matches('^(?:.*z)$'))", input), out);
    assert.match(
      reason("has(input.t) && input.?list.orValue([]).exists(x, input.s < input.t)", { ...input, t: input.s }),
      out,
    );
    assert.match(reason("input.s.matches('^(?:[a-z]+)$')", input), /^BLOCK Svc: fired$/);
  });

  test("exact arithmetic costs more steps for longer numbers, and list comparisons cost steps per item", () => {
    const exact = Array.from({ length: 100 }, (_, at) => `${"9".repeat(37)}${at + 100}e-${300 + at}`);
    const plain = Array.from({ length: 100 }, (_, at) => String(at));
    const pairs = (condition: string, numbers: readonly string[]): string => {
      const text = `input.?numbers.orValue([]).exists(x, input.?numbers.orValue([]).exists(y, ${condition}))`;
      return reason(text, `{"n": 1, "s": "", "numbers": [${numbers.join(",")}]}`);
    };
    const out = /^BLOCK Svc: .*\b2000000 steps$/;
    const costly = [
      "x * y < x - x - y",
      "x + y == -1 || x - y == 7",
      "x % (y + 1) < -1",
      "x / (y + 1) < -1",
      "-x > y || -y > x",
      "timestamp(x) + duration('1s') < timestamp(-7)",
    ];
    for (const condition of costly) {
      assert.match(pairs(condition, exact), out, condition);
      if (!/[/]|stamp/.test(condition)) assert.doesNotMatch(pairs(condition, plain), out, condition);
    }
    for (const condition of ["-1 - x in input.?numbers.orValue([])", "input.?numbers.orValue([]) == [x]"])
      assert.match(pairs(condition, plain), out, condition);
  });

  test("the engine blocks a text that is too long for its pattern", () => {
    const random = Array.from({ length: 200_000 }, (_, at) =>
      (Math.imul(at, 2_654_435_761) >>> 7) % 3 === 0 ? "b" : "a",
    );
    const text = `${random.join("")}c!`;
    assert.match(
      reason("input.s.matches('^(?:.*(?:a[ab]{450}){1,2}\\\\b.)$')", { n: 1, s: text }),
      /\b2000000 steps$|\bpattern\b/,
    );
    const input = `{ ${object}, required: [v], properties: { v: { type: string, pattern: 'a[ab]{900}\\b.' } } }`;
    const policySet = compile(contractText({ input }));
    const start = cpuMs();
    assert.match(judge(policySet, { input: { v: text } }).reason, /^Svc: input\.v\b.*\bpattern\b/);
    assert.equal(judge(policySet, { input: { v: text.slice(0, 10_000) } }).verdict, "BLOCK");
    assert.ok(cpuMs() - start < 60_000);
  });

  test("`maxLength` is tested before `pattern`, whatever their order", () => {
    const input = `{ ${object}, required: [v], properties: { v: { pattern: '^a+$', type: string, maxLength: 3 } } }`;
    assert.match(judge(compile(contractText({ input })), { input: { v: "bbbb" } }).reason, /\b3 characters\b/);
  });

  test("the engine compares the deepest input and refuses a list with too many numbers", () => {
    const input = `{ ${object}, required: [v], properties: { v: {} } }`;
    const policySet = compile(
      contractText({ input, rules: rule("input.v == input.v && input.v in [input.v] && !(input.v in [[]])") }),
    );
    const deep = `${"[".repeat(60)}1e400${"]".repeat(60)}`;
    assert.equal(judge(policySet, { input: `{"v": ${deep}}` }).verdict, "BLOCK");
    const sums = `[${Array.from({ length: 5000 }, (_, at) => `1e-${at % 400}`).join(",")}]`;
    assert.match(
      reason(
        "has(input.numbers) && input.numbers.map(x, x / 7).exists(x, x > 1)",
        `{"n": 1, "s": "", "numbers": ${sums}}`,
      ),
      /\b100 items\b/,
    );
  });
});
