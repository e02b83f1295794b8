/**
 * Goal: a contract's text has one reading, and a mandate sets what it may. Method: tables of texts with every problem
 * that they have; limits and mandates at their bounds.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, contractText, diagnostics, holds, judge, mandate, problems } from "../../../support/contract-kit.ts";

const smallTool = "tools: { t: { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }\n";
const small = `contract: c\n${smallTool}`;

const yaml: readonly (readonly [text: string, ...problems: readonly string[]])[] = [
  ["", "empty-file: the file is empty"],
  ["# nothing\n", "empty-file: the file is empty"],
  ["--- \n# nothing\n", "shape: a contract is a map of names to values"],
  ["[a]", "shape: a contract is a map of names to values"],
  ["just text", "shape: a contract is a map of names to values"],
  [`${small}---\n${small}`, "yaml: a second YAML document in one file"],
  [`%YAML 1.1\n---\n${small}`, "yaml: contracts are YAML 1.2"],
  [`\ufeff${small}`, "yaml: the character U+FEFF does not show"],
  [`${small}# \u202e rtl`, "yaml: the character U+202E does not show"],
  [`${small}summary: "a\u0007b"`, "yaml: the character U+0007 does not show"],
  [`${small}summary: &a text`, "yaml: an anchor (`&name`) is not part of the contract language"],
  [`${small}&a summary: text`, "yaml: an anchor (`&name`) is not part of the contract language"],
  [
    `${small}summary: &a x\nlet: { x: *a }`,
    "yaml: an anchor (`&name`) is not part of the contract language",
    "yaml: an alias (`*name`) is not part of the contract language",
  ],
  [`${small}summary: !!str 1`, "yaml: a tag (`!name`) is not part of the contract language"],
  [`${small}summary: ! 1`, "yaml: a tag (`!name`) is not part of the contract language"],
  [`${small}!!str summary: 1`, "yaml: a tag (`!name`) is not part of the contract language"],
  [`${small}limits: !!map {}`, "yaml: a tag (`!name`) is not part of the contract language"],
  [
    `${small}limits: { <<: { a: 1 } }`,
    "yaml: a merge key (`<<`) is not part of the contract language",
    "name: `<<` cannot be written in a condition",
    "limit: a limit is a value, or `{ default, min, max }`",
  ],
  [`${small}? [a]\n: b`, "yaml: a key that is not text is not part of the contract language"],
  [`${small}summary: a\nsummary: b`, "yaml: this key stands twice in one map"],
  [`${small}summary: a\n"summary": b`, "yaml: this key stands twice in one map"],
  [`${small}\tlimits: { a: 1 }`, "yaml: YAML does not allow a tab for indentation"],
  [`${small}limits: { a: 1`, "yaml: flow map must end with a }"],
  [`contract: c\n${smallTool}rules: [{{}]`, "yaml: expected flow map to end with }"],
  [
    `${small}constructor: 1\n__proto__: 2`,
    "unknown-key: a contract has no `constructor`",
    "unknown-key: a contract has no `__proto__`",
  ],
];

suite("YAML is reduced to JSON's model", { tags: ["contract.language"] }, () => {
  test("the compiler refuses YAML features beyond JSON's model", () => {
    for (const [text, ...expected] of yaml) {
      const found = problems(text);
      if (expected[0]?.startsWith("yaml: ") && /flow map|expected/.test(expected[0]))
        assert.equal(found.length, 1, text);
      else assert.deepEqual(found, expected, text);
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
    assert.match(limit("1".repeat(41))[0] ?? "", /^yaml: a number of 41 digits/);
    assert.match(limit("1e401")[0] ?? "", /^yaml: an exponent beyond 400/);
  });

  test("the compiler reads numbers exactly from the text", () => {
    const parts = { limits: "{ most: 0.1, names: [x], big: 9007199254740993, spelt: 1.50e1 }" };
    for (const condition of ["limits.most + 0.2 == 0.3", "limits.big == 9007199254740992 + 1", "limits.spelt == 15"])
      assert.equal(holds(condition, {}, parts), true, condition);
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

const shapes: readonly (readonly [text: string, ...problems: readonly string[]])[] = [
  ["contract: c\n", "missing: a contract lists the tools that it routes, under `tools:`"],
  [smallTool, "missing: `contract:` with its name is missing"],
  [`contract: Payments!\n${smallTool}`, "name: `Payments!` is not a name"],
  [`contract: ${"p".repeat(65)}\n${smallTool}`, `name: \`${"p".repeat(64)}\` is not a name`],
  [`contract: [c]\n${smallTool}`, "shape: `contract` is a single text"],
  [`${small}rule: []`, "unknown-key: a contract has no `rule`"],
  ["contract: c\ntools: [t]", "shape: `tools` is a map of names to values"],
  ["contract: c\ntools: { t: }", "shape: a tool is a map of names to values"],
  [
    "contract: c\ntools: { t: {} }",
    "missing: a tool says what input it takes, under `input:`",
    "missing: a tool says what holds when no rule fires, under `otherwise:`",
  ],
  [
    "contract: c\ntools: { t: { input: { type: object, additionalProperties: false } } }",
    "missing: a tool says what holds when no rule fires, under `otherwise:`",
  ],
  [
    "contract: c\ntools: { 'mail.*': { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }",
    "name: `mail.*` is not the name of a tool",
  ],
  [
    "contract: c\ntools: { '': { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }",
    "name: `` is not the name of a tool",
  ],
  [contractText({ otherwise: "allow" }), "verdict: `allow` is not a verdict"],
  [contractText({ otherwise: "DENY" }), "verdict: `DENY` is not a verdict"],
  [contractText({ otherwise: "constructor" }), "verdict: `constructor` is not a verdict"],
  [contractText({ rules: "{ r: {} }" }), "shape: `rules` is a list"],
  [contractText({ rules: "[r]" }), "shape: a rule is a map of names to values"],
  [
    contractText({ rules: "[{ rule: r, on: t }]" }),
    "missing: rule `r` has no `when:`",
    "missing: rule `r` has no `verdict:`",
    "missing: rule `r` has no `reason:`",
  ],
  [
    contractText({ rules: "[{ rule: r, when: 'true', verdict: ALLOW, reason: x }]" }),
    "missing: rule `r` says for which tools it holds, under `on:`",
  ],
  [
    contractText({ rules: "[{ rule: r, on: u, when: 'true', verdict: ALLOW, reason: x }]" }),
    "unknown-tool: this contract lists no tool `u`",
  ],
  [
    contractText({ rules: "[{ rule: r, on: ['t', 'u*'], when: 'true', verdict: ALLOW, reason: x }]" }),
    "unknown-tool: this contract lists no tool `u*`",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: '' }]" }),
    "reason: a reason is one sentence for a person, and this one is empty",
  ],
  [
    contractText({ rules: '[{ rule: r, on: t, when: "true", verdict: ALLOW, reason: "a\\nb" }]' }),
    "reason: a reason is one sentence on one line",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: '{input.n' }]" }),
    "reason: a `{` in the reason is not closed",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: 'a } b' }]" }),
    "reason: a `}` in the reason closes nothing",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: '{}' }]" }),
    "syntax: an expression is missing",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ALLOW, reason: 'all of {input}' }]" }),
    "reason: a reason shows single values, not objects",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: ESCALATE, final: true, reason: x }]" }),
    "final: only a rule that BLOCKs can be `final`",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, when: 'true', verdict: BLOCK, final: yes, reason: x }]" }),
    "ambiguous-scalar: `yes` is read differently by different YAML readers",
    "shape: `final` is true or false",
  ],
  [
    contractText({ rules: "[{ rule: r, on: t, wen: 'true', when: 'true', verdict: BLOCK, reason: x }]" }),
    "unknown-key: a rule has no `wen`",
  ],
  [
    contractText({ limits: "{ most: { max: 1 }, names: [x] }" }),
    "limit: a limit is a value, or `{ default, min, max }`",
  ],
  [
    contractText({ limits: "{ most: { default: 1, maximum: 1 }, names: [x] }" }),
    "limit: a limit is a value, or `{ default, min, max }`",
  ],
  [
    contractText({ limits: "{ most: { default: 5, max: 1 }, names: [x] }" }),
    "limit: the default is above the most that the contract allows, 1",
  ],
  [
    contractText({ limits: "{ most: { default: x, max: 1 }, names: [x] }" }),
    "limit: `max` is a number, for a limit that is a number",
  ],
  [
    contractText({ limits: "{ most: [1, x], names: [x] }" }),
    "limit: a limit is a number, a text, true or false, or a list of values of one type",
  ],
  [
    contractText({ limits: "{ 'a-b': 1, in: 2 }" }),
    "name: `a-b` cannot be written in a condition",
    "name: `in` cannot be written in a condition",
  ],
];

test("the compiler refuses a contract with missing, unknown or malformed parts", () => {
  for (const [text, ...expected] of shapes) assert.deepEqual(problems(text), expected, text);
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
  assert.deepEqual(problems(text), ["schema: `text` is not a type of JSON"]);
  const force = compile(text.replace("type: text", "type: string"));
  const call = { tool: "__proto__", input: '{"__proto__": 1}', counters: { "c.__proto__": "3", "c.constructor": "0" } };
  assert.equal(judge(force, call).verdict, "BLOCK");
  assert.equal(judge(force, { tool: "constructor", input: {} }).verdict, "ESCALATE");
  assert.equal(judge(force, { tool: "toString", input: {} }).rule, "$route");
});

const limited = contractText({
  limits: "{ most: { default: 10, min: 1, max: 50 }, names: [alice], mode: strict, strict: true, free: 5 }",
  requires: "platform.present",
  rules:
    `[{ rule: r, on: t, when: "input.n > limits.most || !(input.s in limits.names) || limits.mode != ` +
    `'strict' || !limits.strict || limits.free > 5", verdict: BLOCK, reason: "{limits.most} ` +
    `{limits.names}" }]`,
});

const settings: readonly (readonly [settings: string, ...problems: readonly string[]])[] = [
  ["{ most: 1 }"],
  ["{ most: 50 }"],
  ["{ most: 50.0 }"],
  ["{ names: [] }"],
  ["{ names: [bob, carol] }"],
  ["{ mode: lax, strict: false, free: -1e400 }"],
  ["{ most: 0.99 }", "limit: `most` is below the least that the contract allows, 1"],
  ["{ most: 50.01 }", "limit: `most` is above the most that the contract allows, 50"],
  ['{ most: "5" }', "limit: `most` must be a number, as the contract declares it"],
  ["{ most: [5] }", "limit: `most` must be a number, as the contract declares it"],
  ["{ most: { default: 5 } }", "limit: a limit is a number, a text, true or false, or a list of values of one type"],
  ["{ names: alice }", "limit: `names` must be a list of texts, as the contract declares it"],
  ["{ names: [1] }", "limit: `names` must be a list of texts, as the contract declares it"],
  ["{ strict: 'true' }", "limit: `strict` must be a boolean, as the contract declares it"],
  ["{ mots: 5 }", "unknown-limit: the contract has no limit `mots`"],
  [
    "{ __proto__: 5, constructor: 5 }",
    "unknown-limit: the contract has no limit `__proto__`",
    "unknown-limit: the contract has no limit `constructor`",
  ],
  ["5", "shape: `limits.c` is a map of names to values"],
];

suite("a mandate", () => {
  const load = (text: string): string[] => {
    const compiled = mandate(text, { "c.yaml": limited, "d.yaml": small.replace("contract: c", "contract: d") });
    return compiled.ok ? [] : compiled.problem.map(({ code, message }) => `${code}: ${message}`);
  };

  test("a mandate sets limits only within the contract's bounds", { tags: ["limit.payments-in-contract"] }, () => {
    for (const [text, ...expected] of settings)
      assert.deepEqual(load(`mandate: m\ncontracts: [c.yaml]\nlimits: { c: ${text} }`), expected, text);
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
    assert.deepEqual(load("mandate: m\n"), ["missing: a mandate names its contracts, under `contracts:`"]);
    assert.deepEqual(load("mandate: m\ncontracts: [x.yaml]"), [
      "no-file: `x.yaml` cannot be read: there is no such file",
    ]);
    assert.deepEqual(load("mandate: m\ncontracts: [c.yaml, c.yaml]"), ["twice: two contracts are called `c`"]);
    assert.deepEqual(load("mandate: m\ncontracts: [c.yaml]\nlimits: { e: {} }"), [
      "unknown-contract: no contract of this mandate is called `e`",
    ]);
    assert.deepEqual(load("mandate: m\ncontracts: [c.yaml]\nmode: observe"), ["unknown-key: a mandate has no `mode`"]);
    const entry = (tools: string): string[] => load(`mandate: m\ncontracts: [{ file: c.yaml, tools: ${tools} }]`);
    for (const tools of ["[t]", "['t*']", "['*']", "t"]) assert.deepEqual(entry(tools), [], tools);
    for (const tools of ["[]", "[T]", "['t.*']", "[tt]"])
      assert.deepEqual(entry(tools), ["not-allowed: the mandate does not let `c` route `t`"], tools);
  });

  test("a mandate without contracts makes every tool unknown", { tags: ["service.silence-refuses"] }, () => {
    const compiled = mandate("mandate: m\ncontracts: []\n", {});
    assert.ok(compiled.ok);
    assert.equal(judge(compiled.value).reason, 'Svc: unknown tool "t": no contract routes it');
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
  const places = (text: string): string[] =>
    diagnostics(text).map(({ span }) => `${span.from}:${span.file.text.slice(span.from, span.to)}`);
  const text = `${small}summary: "é😀"\nrools: 1\n`;
  assert.deepEqual(places(text), [`${text.indexOf("rools")}:rools`]);
  const crlf = text.replaceAll("\n", "\r\n");
  assert.deepEqual(places(crlf), [`${crlf.indexOf("rools")}:rools`]);
});
