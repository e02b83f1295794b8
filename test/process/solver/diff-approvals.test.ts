/**
 * Goal: `svc-gate diff` names each part of an approval that became weaker or stricter, also if no verdict differs.
 * Method: one contract and its mandate, with one part changed for each case. Each case is also compared in the other
 * direction, which must give the opposite. The positive control removes the comparison of approvals from the answer.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import {
  changeText,
  compareContracts,
  compareSettings,
  openSolver,
  type ToolDifference,
} from "../../../packages/workbench/src/analysis/mod.ts";
import { diffCommand } from "../../../packages/workbench/src/commands/diff.ts";
import { recompile, renderDiagnostic, type PolicySet } from "../../../packages/readers/src/contract.ts";
import { control } from "../../support/controls/control.ts";

interface Parts {
  readonly mandate?: string;
  readonly subject?: string;
  readonly contract?: string;
  readonly tool?: string;
  readonly rule?: string;
  readonly otherwise?: string;
  /** Rules after `large`. */
  readonly rules?: readonly string[];
  /** Replaces the rule `large`. */
  readonly large?: string;
  /** A table of commands. */
  readonly commands?: string;
}

function files(parts: Parts): readonly [mandate: string, contract: string] {
  const large =
    parts.large ??
    `{ rule: large, on: t, when: input.usd > 100, verdict: ESCALATE, reason: large${approval(parts.rule)} }`;
  const contract = `contract: c
platform:
  type: object
  required: [wallet, price]
  properties: { wallet: { type: string }, price: { type: number } }
${parts.subject === undefined ? "" : `subject: ${parts.subject}\n`}${line(parts.contract)}requires: platform.present
${parts.commands === undefined ? "" : `commands: ${parts.commands}\n`}tools:
  t:
    input:
      type: object
      additionalProperties: false
      required: [usd]
      properties: { usd: { type: number, minimum: 0 }, note: { type: string }, memo: { type: string } }
${parts.tool === undefined ? "" : `    approval: ${parts.tool}\n`}    otherwise: ${parts.otherwise ?? "ALLOW"}
rules:
${[large, ...(parts.rules ?? [])].map((rule) => `  - ${rule}\n`).join("")}`;
  return [`mandate: m\ncontracts: [c.yaml]\n${parts.mandate ?? ""}`, contract];
}

/** A rule about a command line, with grants. */
function ofLine(grants: string): Parts {
  const when = 'has(input.note) && commands(input.note, ".").verdict == "ESCALATE"';
  const terms = `{ grants: { ${grants}, at_most: 1h, uses: 2 } }`;
  return {
    commands: "{ forms: [{ run: a, words: NAME, does: reads, verdict: ESCALATE, reason: asks }] }",
    large: `{ rule: large, on: t, when: '${when}', verdict: ESCALATE, reason: large, approval: ${terms} }`,
  };
}

const approval = (text: string | undefined): string => (text === undefined ? "" : `, approval: ${text}`);
const line = (text: string | undefined): string => (text === undefined ? "" : `approval: ${text}\n`);

function load(parts: Parts): PolicySet {
  const [mandate, contract] = files(parts);
  const compiled = recompile(`--- # mandate.yaml\n${mandate}--- # c.yaml\n${contract}`);
  if (!compiled.ok) assert.fail(compiled.problem.map(renderDiagnostic).join("\n\n"));
  return compiled.value;
}

const asking = (name: string, when: string, terms?: string): string =>
  `{ rule: ${name}, on: t, when: ${when}, verdict: ESCALATE, reason: r${approval(terms)} }`;

/** A change that makes approvals weaker, and the lines for it. */
const weaker: readonly (readonly [what: string, before: Parts, after: Parts, lines: readonly string[]])[] = [
  ["fewer people", { rule: "{ of: 2 }" }, {}, ["c.large of: 2 -> 1"]],
  ["more groups", { rule: "{ by: [a] }" }, { rule: "{ by: [a, b] }" }, ["c.large by: [a] -> [a, b]"]],
  ["no group", { rule: "{ by: [a] }" }, {}, ["c.large by: [a] -> everyone"]],
  ["a longer decide_within", {}, { rule: "{ decide_within: 90m }" }, ["c.large decide_within: 1h -> 90m"]],
  ["a longer use_within", {}, { rule: "{ use_within: 1d }" }, ["c.large use_within: 10m -> 1d"]],
  ["batches", { rule: "{ batch: false }" }, {}, ["c.large batch: false -> true"]],
  ["a pin less", { rule: "{ pins: [platform.price] }" }, {}, ["c.large pins: [platform.price] -> []"]],
  [
    "a fact more under free",
    { rule: "{}" },
    { rule: "{ free: [platform.price] }" },
    ["c.large free: [] -> [platform.price]"],
  ],
  ["a larger drift", { rule: "{ drift: 0.5 }" }, { rule: "{ drift: 0.51 }" }, ["c.large drift: 0.5 -> 0.51"]],
  ["a yes to one's own call", {}, { rule: "{ self: true }" }, ["c.large self: false -> true"]],
  ["grants", {}, { rule: "{ grants: { at_most: 1h, uses: 2 } }" }, ["c.large grants: false -> true"]],
  [
    "longer grants",
    { rule: "{ grants: { at_most: 1h, uses: 2 } }" },
    { rule: "{ grants: { at_most: 2h, uses: 2 } }" },
    ["c.large grants.at_most: 1h -> 2h"],
  ],
  [
    "grants with more uses",
    { rule: "{ grants: { at_most: 1h, uses: 2 } }" },
    { rule: "{ grants: { at_most: 1h, uses: 3 } }" },
    ["c.large grants.uses: 2 -> 3"],
  ],
  [
    "grants with a pin less",
    { rule: "{ grants: { at_most: 1h, uses: 2, pin: [input.usd] } }" },
    { rule: "{ grants: { at_most: 1h, uses: 2 } }" },
    ["c.large grants.pin: [input.usd] -> []"],
  ],
  [
    "a member more that grants leave free",
    ofLine("by: form"),
    ofLine("by: form, free: [input.usd]"),
    ["c.large grants.free: [] -> [input.usd]"],
  ],
  ["a text more that is unbound", {}, { tool: "{ unbound: [input.note] }" }, ["unbound: [] -> [input.note]"]],
  ["a subject less", { subject: "[platform.wallet]" }, {}, ["subject: [platform.wallet] -> []"]],
  ["fewer people in the tool", { tool: "{ of: 2 }" }, {}, ["c.large of: 2 -> 1"]],
  ["fewer people in the contract", { contract: "{ of: 2 }" }, {}, ["c.large of: 2 -> 1"]],
  ["fewer people in the mandate", { mandate: "approval: { of: 2 }\n" }, {}, ["c.large of: 2 -> 1"]],
  [
    "a nearer part that replaces that of the mandate",
    { mandate: "approval: { of: 2 }\n" },
    { mandate: "approval: { of: 2 }\n", rule: "{ of: 1 }" },
    ["c.large of: 2 -> 1"],
  ],
  [
    "fewer people under otherwise",
    { tool: "{ of: 2 }", otherwise: "ESCALATE", rule: "{ of: 1 }" },
    { otherwise: "ESCALATE" },
    ["c.$otherwise of: 2 -> 1"],
  ],
  [
    "a rule of another name with fewer people",
    { rule: "{ of: 2 }" },
    { large: asking("big", "input.usd > 100") },
    ["c.large/c.big of: 2 -> 1"],
  ],
  [
    "a rule that is removed, so that another one asks",
    { rules: [asking("huge", "input.usd > 500", "{ of: 2 }")] },
    {},
    ["c.huge/c.large of: 2 -> 1"],
  ],
  [
    "a rule that asks for fewer calls, so that another one asks",
    { rules: [asking("huge", "input.usd > 500", "{ of: 2 }")] },
    { rules: [asking("huge", "input.usd > 900", "{ of: 2 }")] },
    ["c.huge/c.large of: 2 -> 1"],
  ],
  [
    "a new rule that asks in place of an otherwise",
    { tool: "{ of: 2 }", rule: "{ of: 2 }", otherwise: "ESCALATE" },
    {
      tool: "{ of: 2 }",
      rule: "{ of: 2 }",
      otherwise: "ESCALATE",
      rules: [asking("low", "input.usd < 5", "{ of: 1 }")],
    },
    ["c.$otherwise/c.low of: 2 -> 1"],
  ],
];

const same: readonly (readonly [what: string, before: Parts, after: Parts])[] = [
  [
    "defaults that are written",
    {},
    { rule: "{ of: 1, decide_within: 60m, use_within: 600s, batch: true, drift: 0, pins: [] }" },
  ],
  ["a part that moves to the mandate", { rule: "{ of: 2 }" }, { mandate: "approval: { of: 2 }\n" }],
  ["a part that a nearer one replaces", { tool: "{ of: 2 }", rule: "{ of: 3 }" }, { rule: "{ of: 3 }" }],
  ["groups in another order", { rule: "{ by: [a, b] }" }, { rule: "{ by: [b, a] }" }],
  ["a rule of another name", { rule: "{ of: 2 }" }, { large: asking("big", "input.usd > 100", "{ of: 2 }") }],
  [
    "a rule that asks for other calls than those of the removed rule",
    { rules: [asking("low", "input.usd < 5")] },
    { rules: [asking("low", "5 > input.usd")] },
  ],
];

suite("what approvals need, compared", () => {
  const opened = openSolver();
  after(async () => (await opened)?.close());
  const compared = async (before: Parts, changed: Parts): Promise<ToolDifference> => {
    const solver = await opened;
    assert.ok(solver, "z3-solver is not installed");
    const options = { solver, timeMs: 60_000, guesses: 200 };
    const [found] = await compareContracts(load(before), load(changed), options);
    assert.ok(found);
    return found;
  };
  const linesOf = ({ approvals }: ToolDifference, direction: string): readonly string[] =>
    approvals.map(({ rule, instead, ...change }) => {
      const name = [rule, instead].filter((part) => part !== null).join("/");
      const text = changeText(change);
      assert.equal(text.endsWith(` (${direction})`), true, text);
      return `${name} ${text.slice(0, -direction.length - 3)}`.trim();
    });

  for (const [what, before, changed, lines] of weaker) {
    test(`the comparison answers "weaker" for ${what}, and "stricter" for the opposite`, async () => {
      const found = await compared(before, changed);
      assert.deepEqual([found.answer, linesOf(found, "weaker")], ["weaker", lines]);
      const opposite = await compared(changed, before);
      assert.equal(opposite.answer, "stricter");
      assert.equal(linesOf(opposite, "stricter").length, lines.length);
    });
  }

  for (const [what, before, changed] of same) {
    test(`the comparison answers "equivalent" for ${what}`, async () => {
      const found = await compared(before, changed);
      assert.deepEqual([found.answer, found.approvals], ["equivalent", []]);
    });
  }

  test("grants by form are neither weaker nor stricter than grants that bind the command line", async () => {
    for (const [old, now] of [
      ["pin: []", "by: form"],
      ["by: form", "pin: []"],
    ] as const) {
      const found = await compared(ofLine(old), ofLine(now));
      const isForm = now === "by: form";
      assert.equal(found.answer, "changed");
      assert.deepEqual(linesOf(found, "changed"), [`c.large grants by form: ${!isForm} -> ${isForm}`]);
    }
  });

  test("a change that is weaker in one part and stricter in another is named, and the tool is changed", async () => {
    const found = await compared({ rule: "{ of: 2 }" }, { rule: "{ batch: false }" });
    assert.deepEqual(
      [found.answer, found.approvals.map(({ part, direction }) => [part, direction])],
      [
        "changed",
        [
          ["of", "weaker"],
          ["batch", "stricter"],
        ],
      ],
    );
    const other = await compared({ rule: "{ by: [a] }" }, { rule: "{ by: [b] }" });
    assert.deepEqual([other.answer, other.approvals[0]?.direction], ["changed", "changed"]);
    const verdict = await compared({ rule: "{ of: 2 }" }, { rules: [asking("low", "input.usd < 5", "{ of: 2 }")] });
    assert.equal(verdict.answer, "changed");
  });

  test("a rule that BLOCKs instead of asking is stricter, though another rule asks with fewer people", async () => {
    const huge = asking("huge", "input.usd > 500", "{ of: 2 }");
    const found = await compared({ rules: [huge] }, { rules: [huge.replace("ESCALATE", "BLOCK")] });
    assert.deepEqual([found.answer, found.approvals], ["stricter", []]);
  });

  test("a rule that is removed is not compared with a rule that asks only for other calls", async () => {
    const found = await compared({ rules: [asking("low", "input.usd < 5", "{ of: 2 }")] }, {});
    assert.deepEqual([found.answer, found.approvals], ["weaker", []]);
  });

  test("a softened BLOCK of assist mode that needs less is noted, and changes no answer", async () => {
    const block = asking("huge", "input.usd > 500", "{ of: 2 }").replace("ESCALATE", "BLOCK");
    const found = await compared({ rules: [block] }, { rules: [block.replace("of: 2", "of: 1")] });
    assert.equal(found.answer, "equivalent");
    assert.deepEqual(found.notes, ["in assist mode, for a BLOCK by c.huge: of: 2 -> 1 (weaker)"]);
  });

  control("positive control: without the approvals, the comparison calls each weaker contract equivalent", async () => {
    const solver = await opened;
    const blind = ({ tools, ...rest }: PolicySet): PolicySet => ({
      ...rest,
      tools: new Map(
        [...tools].map(([tool, plan]) => {
          const routes = plan.routes.map((route) => {
            const terms = load({}).tools.get("t")?.routes[0]?.terms ?? route.terms;
            return { ...route, terms, rules: route.rules.map((rule) => ({ ...rule, terms })) };
          });
          return [tool, { ...plan, routes, unbound: [], subject: [] }];
        }),
      ),
    });
    for (const [what, before, changed] of weaker) {
      const options = { solver, timeMs: 60_000, guesses: 200 };
      const [found] = await compareContracts(blind(load(before)), blind(load(changed)), options);
      assert.equal(found?.answer, "equivalent", what);
    }
  });
});

suite("the settings of a mandate for approvals", () => {
  const settings: readonly (readonly [before: string, after: string, text: string])[] = [
    ["{ self: false }", "{ self: true }", "self: false -> true"],
    ["{ open: { key: 40 } }", "{ open: { key: 41 } }", "open.key: 40 -> 41"],
    ["{ open: { session: 5 } }", "{}", "open.session: 5 -> 20"],
    ["{ open: { ledger: 500 } }", "{}", "open.ledger: 500 -> 10000"],
  ];
  const load2 = (text: string): PolicySet => load({ mandate: `approvals: ${text}\n` });
  for (const [before, changed, text] of settings) {
    test(`the comparison says "${text} (weaker)", and the opposite is stricter`, () => {
      const found = compareSettings(load2(before), load2(changed)).map(changeText);
      assert.deepEqual(found, [`${text} (weaker)`]);
      assert.match(compareSettings(load2(changed), load2(before)).map(changeText).join(), /^[a-z.]+: .* \(stricter\)$/);
    });
  }
});

suite("svc-gate diff", () => {
  const fileOf = (t: TestContext, parts: Parts): string => {
    const folder = mkdtempSync(join(tmpdir(), "svc-gate-diff-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const [mandate, contract] = files(parts);
    writeFileSync(join(folder, "mandate.yaml"), mandate);
    writeFileSync(join(folder, "c.yaml"), contract);
    return join(folder, "mandate.yaml");
  };
  const options = { json: false, text: false, weaker: false, time: "30" };
  const parts = { before: { rule: "{ of: 2 }" }, after: { mandate: "approvals: { self: true }\n" } };

  test("the command prints what approvals need, and fails with --no-weaker", async (t) => {
    const [before, changed] = [fileOf(t, parts.before), fileOf(t, parts.after)];
    const { exitCode, text } = await diffCommand(before, changed, options);
    assert.equal(exitCode, 1);
    assert.equal(
      text,
      [
        "t: weaker",
        "  approval for c.large: of: 2 -> 1 (weaker)",
        "",
        "approvals of the mandate:",
        "  self: false -> true (weaker)",
        "",
        "1 tool: 1 weaker",
      ].join("\n"),
    );
    assert.equal((await diffCommand(before, changed, { ...options, weaker: true })).exitCode, 0);
    assert.equal((await diffCommand(changed, before, options)).exitCode, 0);
    const self = fileOf(t, { ...parts.before, ...parts.after });
    assert.equal((await diffCommand(before, self, options)).exitCode, 1);
  });

  test("the command reports the same as JSON", async (t) => {
    const { text } = await diffCommand(fileOf(t, parts.before), fileOf(t, parts.after), { ...options, json: true });
    const { tools, settings } = JSON.parse(text) as { tools: { approvals: unknown }[]; settings: unknown };
    assert.deepEqual(tools[0]?.approvals, [
      { rule: "c.large", instead: null, part: "of", direction: "weaker", before: 2, after: 1 },
    ]);
    assert.deepEqual(settings, [{ part: "self", direction: "weaker", before: false, after: true }]);
  });
});
