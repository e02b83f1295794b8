/**
 * Goal: a contract's text has one reading, and a mandate can set only what it may. Method: tables of texts with all
 * their problems; limits and mandates at their bounds.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, contractText, diagnostics, isTrue, judge, mandate, problems } from "../../../support/contract-kit.ts";
import { sentencesOf } from "../../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const smallTool = "tools: { t: { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }\n";
const small = `contract: c\n${smallTool}`;

/**
 * Compares codes with the expected ones in order, and the sentences with those named, each of which starts with the
 * code.
 */
function saysProblems(found: readonly string[], expected: readonly string[], text = ""): void {
  const codesOf = (problems_: readonly string[]) => problems_.map((problem) => problem.split(":")[0]);
  assert.deepEqual(codesOf(found), codesOf(expected), `${text}\n${found.join("\n")}`);
  for (const [at, name] of expected.entries()) says(name, found[at] ?? "");
}

const yaml: readonly (readonly [text: string, ...names: readonly string[]])[] = [
  ["", "empty-file"],
  ["# nothing\n", "empty-file"],
  ["--- \n# nothing\n", "shape: contract"],
  ["[a]", "shape: contract"],
  ["just text", "shape: contract"],
  [`${small}---\n${small}`, "yaml: second-document"],
  [`%YAML 1.1\n---\n${small}`, "yaml: version"],
  [`\ufeff${small}`, "yaml: FEFF"],
  [`${small}# \u202e rtl`, "yaml: 202E"],
  [`${small}summary: "a\u0007b"`, "yaml: 0007"],
  [`${small}summary: &a text`, "yaml: anchor"],
  [`${small}&a summary: text`, "yaml: anchor"],
  [`${small}summary: &a x\nlet: { x: *a }`, "yaml: anchor", "yaml: alias"],
  [`${small}summary: !!str 1`, "yaml: tag"],
  [`${small}summary: ! 1`, "yaml: tag"],
  [`${small}!!str summary: 1`, "yaml: tag"],
  [`${small}limits: !!map {}`, "yaml: tag"],
  [`${small}limits: { <<: { a: 1 } }`, "yaml: merge-key", "name: << in-condition", "limit: shape"],
  [`${small}? [a]\n: b`, "yaml: key"],
  [`${small}summary: a\nsummary: b`, "yaml: twice"],
  [`${small}summary: a\n"summary": b`, "yaml: twice"],
  [`${small}\tlimits: { a: 1 }`, "yaml: tab"],
  [`${small}limits: { a: 1`, "yaml: parser"],
  [`contract: c\n${smallTool}rules: [{{}]`, "yaml: parser"],
  [`${small}constructor: 1\n__proto__: 2`, "unknown-key: constructor", "unknown-key: __proto__"],
];

suite("YAML is reduced to JSON's model", { tags: ["contract.language"] }, () => {
  test("the compiler refuses YAML features beyond JSON's model", () => {
    for (const [text, ...expected] of yaml) {
      const found = problems(text);
      // The YAML parser chooses its own words.
      if (expected[0] === "yaml: parser") assert.equal(found.length, 1, text);
      else saysProblems(found, expected, text);
      assert.match(found[0] ?? "", new RegExp(`^${expected[0]?.split(":")[0]}`), text);
    }
  });

  test("the compiler refuses unquoted scalars that YAML readers interpret differently", () => {
    const limit = (value: string): string[] =>
      problems(contractText({ limits: `{ most: 1, names: [x], v: ${value} }` }));
    const ambiguous =
      "no No NO yes on off y N 010 0o10 0x1F 1_000 12:30 1:30:00 +1 .5 5. 1.e3 .inf -.inf .nan .NaN " +
      "2026-01-31 2026-1-31T10:00:00Z True NULL";
    for (const value of ambiguous.split(" ")) assert.match(limit(value)[0] ?? "taken", /^ambiguous-scalar/, value);
    for (const value of [
      "1",
      "-1",
      "0.5",
      "1e3",
      "true",
      "x",
      '"no"',
      "'010'",
      "2026-01-31x",
      "nope",
      "1h",
      "v1.2.3",
      "a:b",
    ])
      assert.deepEqual(limit(value), [], value);
    for (const value of ["null", "~", ""]) assert.match(limit(value)[0] ?? "taken", /^limit/, value);
    saysProblems(limit("1".repeat(41)).slice(0, 1), ["yaml: digits"]);
    saysProblems(limit("1e401").slice(0, 1), ["yaml: exponent"]);
  });

  test("the compiler reads numbers exactly from the text", () => {
    const parts = { limits: "{ most: 0.1, names: [x], big: 9007199254740993, spelt: 1.50e1 }" };
    for (const condition of ["limits.most + 0.2 == 0.3", "limits.big == 9007199254740992 + 1", "limits.spelt == 15"])
      assert.equal(isTrue(condition, {}, parts), true, condition);
  });

  test("line ends, comments and indentation do not change decisions", () => {
    const text = contractText({
      rules:
        "\n  - rule: r\n    on: t\n    when: >-\n      input.n > 1\n      && input.s == 'x'\n    verdict: BLOCK\n    reason: x\n",
    });
    for (const variant of [
      text,
      text.replaceAll("\n", "\r\n"),
      `# a comment\n${text}`,
      text.replaceAll(/^ {2}/gm, "      "),
    ]) {
      assert.equal(judge(compile(variant), { input: { n: 2, s: "x" } }).verdict, "BLOCK");
      assert.equal(judge(compile(variant), { input: { n: 1, s: "x" } }).verdict, "ALLOW");
    }
  });
});

const shapes: readonly (readonly [text: string, ...names: readonly string[]])[] = [
  ["contract: c\n", "missing: tools"],
  [smallTool, "missing: contract"],
  [`contract: Payments!\n${smallTool}`, "name: Payments!"],
  [`contract: ${"p".repeat(65)}\n${smallTool}`, "name: too-long"],
  [`contract: [c]\n${smallTool}`, "shape: contract-text"],
  [`${small}rule: []`, "unknown-key: rule"],
  ["contract: c\ntools: [t]", "shape: tools"],
  ["contract: c\ntools: { t: }", "shape: tool"],
  ["contract: c\ntools: { t: {} }", "missing: input", "missing: otherwise"],
  ["contract: c\ntools: { t: { input: { type: object, additionalProperties: false } } }", "missing: otherwise"],
  [
    "contract: c\ntools: { 'mail.*': { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }",
    "name: mail.*",
  ],
  [
    "contract: c\ntools: { '': { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }",
    "name: empty",
  ],
  [contractText({ otherwise: "allow" }), "verdict: allow"],
  [contractText({ otherwise: "DENY" }), "verdict: DENY"],
  [contractText({ otherwise: "constructor" }), "verdict: constructor"],
  [contractText({ rules: "{ r: {} }" }), "shape: rules"],
  [contractText({ rules: "[r]" }), "shape: rule"],
  [contractText({ rules: "[{ rule: r, on: t }]" }), "missing: when", "missing: verdict", "missing: reason"],
  [contractText({ rules: "[{ rule: r, when: 'true', verdict: ALLOW, reason: x }]" }), "missing: on"],
  [contractText({ rules: "[{ rule: r, on: u, when: 'true', verdict: ALLOW, reason: x }]" }), "unknown-tool: u"],
  [
    contractText({ rules: "[{ rule: r, on: ['t', 'u*'], when: 'true', verdict: ALLOW, reason: x }]" }),
    "unknown-tool: u*",
  ],
  [contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: '' }]" }), "reason: empty"],
  [contractText({ rules: '[{ rule: r, on: t, when: "true", verdict: ALLOW, reason: "a\\nb" }]' }), "reason: two-lines"],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: '{input.n' }]" }),
    "reason: not-closed",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: 'a } b' }]" }),
    "reason: closes-nothing",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: '{}' }]" }),
    "syntax: no-expression",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: 'all of {input}' }]" }),
    "reason: object",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ESCALATE, final: true, reason: x }]" }),
    "final: escalates",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: BLOCK, final: yes, reason: x }]" }),
    "ambiguous-scalar: yes",
    "shape: final",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, wen: 'true', when: 'true', verdict: BLOCK, reason: x }]" }),
    "unknown-key: wen",
  ],
  [contractText({ limits: "{ most: { max: 1 }, names: [x] }" }), "limit: shape"],
  [contractText({ limits: "{ most: { default: 1, maximum: 1 }, names: [x] }" }), "limit: shape"],
  [contractText({ limits: "{ most: { default: 5, max: 1 }, names: [x] }" }), "limit: default-above-max"],
  [contractText({ limits: "{ most: { default: x, max: 1 }, names: [x] }" }), "limit: max-of-text"],
  [contractText({ limits: "{ most: [1, x], names: [x] }" }), "limit: type"],
  [contractText({ limits: "{ 'a-b': 1, in: 2 }" }), "name: a-b", "name: in"],
];

test("the compiler refuses a contract with missing, unknown or malformed parts", () => {
  for (const [text, ...expected] of shapes) saysProblems(problems(text), expected, text);
});

test("a contract can use __proto__ and constructor as ordinary names", () => {
  const text = `contract: c
limits: { __proto__: 5, constructor: 6, toString: 7 }
let: { hasOwnProperty: limits.__proto__ + limits.constructor + limits.toString, valueOf: hasOwnProperty > 17 }
tools:
  __proto__:
    input: { type: object, additionalProperties: false, properties: { __proto__: { type: number }, constructor: { type: text } } }
    otherwise: ALLOW
  constructor: { input: { type: object, additionalProperties: false }, otherwise: ESCALATE }
counters: { __proto__: { of: [__proto__, constructor], per: gate }, constructor: { of: "*", per: gate } }
rules:
  - rule: r
    on: __proto__
    when: valueOf && counters.__proto__ == 3 && counters.constructor == 0 && input.?__proto__.orValue(0) == 1
    verdict: BLOCK
    reason: x
`;
  saysProblems(problems(text), ["schema: text"]);
  const policySet = compile(text.replace("type: text", "type: string"));
  const call = { tool: "__proto__", input: '{"__proto__": 1}', counters: { "c.__proto__": "3", "c.constructor": "0" } };
  assert.equal(judge(policySet, call).verdict, "BLOCK");
  assert.equal(judge(policySet, { tool: "constructor", input: {} }).verdict, "ESCALATE");
  assert.equal(judge(policySet, { tool: "toString", input: {} }).rule, "$route");
});

const limited = contractText({
  limits: "{ most: { default: 10, min: 1, max: 50 }, names: [alice], mode: strict, strict: true, free: 5 }",
  requires: "platform.present",
  rules:
    `[{ rule: r, on: t, when: "input.n > limits.most || !(input.s in limits.names) || limits.mode != ` +
    `'strict' || !limits.strict || limits.free > 5", verdict: BLOCK, reason: "{limits.most} ` +
    `{limits.names}" }]`,
});

const settings: readonly (readonly [settings: string, ...names: readonly string[]])[] = [
  ["{ most: 1 }"],
  ["{ most: 50 }"],
  ["{ most: 50.0 }"],
  ["{ names: [] }"],
  ["{ names: [bob, carol] }"],
  ["{ mode: lax, strict: false, free: -1e400 }"],
  ["{ most: 0.99 }", "limit: below-min"],
  ["{ most: 50.01 }", "limit: above-max"],
  ['{ most: "5" }', "limit: no-number"],
  ["{ most: [5] }", "limit: no-number"],
  ["{ most: { default: 5 } }", "limit: type"],
  ["{ names: alice }", "limit: no-texts"],
  ["{ names: [1] }", "limit: no-texts"],
  ["{ strict: 'true' }", "limit: no-boolean"],
  ["{ mots: 5 }", "unknown-limit: mots"],
  ["{ __proto__: 5, constructor: 5 }", "unknown-limit: __proto__", "unknown-limit: constructor"],
  ["5", "shape: limits.c"],
];

suite("a mandate", () => {
  const load = (text: string): string[] => {
    const compiled = mandate(text, { "c.yaml": limited, "d.yaml": small.replace("contract: c", "contract: d") });
    return compiled.ok ? [] : compiled.problem.map(({ code, message }) => `${code}: ${message}`);
  };

  test("a mandate sets limits only within the contract's bounds", { tags: ["limit.payments-in-contract"] }, () => {
    for (const [text, ...expected] of settings)
      saysProblems(load(`mandate: m\ncontracts: [c.yaml]\nlimits: { c: ${text} }`), expected, text);
  });

  test("rules read the limits that a mandate sets, and the text in force contains the mandate", () => {
    const text = "mandate: m\ncontracts: [c.yaml]\nlimits: { c: { most: 20, names: [bob] } }\n";
    const compiled = mandate(text, { "c.yaml": limited });
    assert.ok(compiled.ok);
    const decision = judge(compiled.value, { input: { n: 21, s: "bob" }, platform: { wallet: "w", spent: 1 } });
    assert.equal(decision.reason, 'Svc: 20 ["bob"]');
    assert.ok(compiled.value.text.startsWith(`--- # mandate.yaml\n${text}--- # c.yaml\n`));
    assert.equal(
      judge(compiled.value, { input: { n: 20, s: "bob" }, platform: { wallet: "w", spent: 1 } }).verdict,
      "ALLOW",
    );
  });

  test("a mandate names the contracts in force and their permitted tools", { tags: ["contract.mandate-loads"] }, () => {
    assert.deepEqual(load("mandate: m\ncontracts: [c.yaml, d.yaml]"), []);
    assert.deepEqual(load("mandate: m\ncontracts: []"), []);
    saysProblems(load("mandate: m\n"), ["missing: contracts"]);
    saysProblems(load("mandate: m\ncontracts: [x.yaml]"), ["no-file: x.yaml"]);
    saysProblems(load("mandate: m\ncontracts: [c.yaml, c.yaml]"), ["twice: c"]);
    saysProblems(load("mandate: m\ncontracts: [c.yaml]\nlimits: { e: {} }"), ["unknown-contract: e"]);
    saysProblems(load("mandate: m\ncontracts: [c.yaml]\nmode: observe"), ["unknown-key: mode"]);
    const entry = (tools: string): string[] => load(`mandate: m\ncontracts: [{ file: c.yaml, tools: ${tools} }]`);
    for (const tools of ["[t]", "['t*']", "['*']", "t"]) assert.deepEqual(entry(tools), [], tools);
    for (const tools of ["[]", "[T]", "['t.*']", "[tt]"]) saysProblems(entry(tools), ["not-allowed: t"], tools);
  });

  test("a mandate without contracts makes every tool unknown", { tags: ["service.silence-refuses"] }, () => {
    const compiled = mandate("mandate: m\ncontracts: []\n", {});
    assert.ok(compiled.ok);
    says("an unknown tool", judge(compiled.value).reason);
  });

  test("the compiler reports the problems of all files at once, in file order", { tags: ["contract.compiled"] }, () => {
    const compiled = mandate("mandate: m\ncontracts: [a.yaml, gone.yaml, b.yaml]\nlimit: {}\n", {
      "a.yaml": "contract: a\ntools: {}\nrools: []\n",
      "b.yaml": "contract: b\n",
    });
    assert.ok(!compiled.ok);
    assert.deepEqual(
      compiled.problem.map(({ code, span }) => `${span.file.name} ${code}`),
      ["mandate.yaml no-file", "mandate.yaml unknown-key", "a.yaml unknown-key", "b.yaml missing"],
    );
  });
});

test("a problem has the right position after any line ends and non-ASCII characters", () => {
  const positions = (text: string): string[] =>
    diagnostics(text).map(({ span }) => `${span.from}:${span.file.text.slice(span.from, span.to)}`);
  const text = `${small}summary: "é😀"\nrools: 1\n`;
  assert.deepEqual(positions(text), [`${text.indexOf("rools")}:rools`]);
  const crlf = text.replaceAll("\n", "\r\n");
  assert.deepEqual(positions(crlf), [`${crlf.indexOf("rools")}:rools`]);
});
