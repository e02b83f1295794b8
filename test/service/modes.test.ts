/**
 * Goal: answers and receipts in each mode are as the API says. Method: one table of calls with the verdict that the
 * contract reaches, asked in every mode.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, check, desk, startGate } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Case {
  readonly call: { readonly tool_name: string; readonly tool_input: object };
  readonly reached: string;
  readonly assisted: string;
}

const cases: readonly Case[] = [
  { call: { tool_name: "note.add", tool_input: {} }, reached: "ALLOW", assisted: "ALLOW" },
  { call: { tool_name: "mail.send", tool_input: {} }, reached: "ESCALATE", assisted: "ESCALATE" },
  { call: { tool_name: "door.open", tool_input: {} }, reached: "BLOCK", assisted: "ESCALATE" },
  { call: { tool_name: "door.force", tool_input: {} }, reached: "BLOCK", assisted: "BLOCK" },
  { call: { tool_name: "safe.open", tool_input: {} }, reached: "BLOCK", assisted: "BLOCK" },
  { call: { tool_name: "nobody.knows", tool_input: {} }, reached: "BLOCK", assisted: "BLOCK" },
  { call: { tool_name: "typed", tool_input: { amount: "1" } }, reached: "BLOCK", assisted: "BLOCK" },
  { call: { tool_name: "stated", tool_input: {} }, reached: "BLOCK", assisted: "BLOCK" },
  { call: { tool_name: "divided", tool_input: { amount: 0 } }, reached: "BLOCK", assisted: "BLOCK" },
  { call: { tool_name: "divided", tool_input: { amount: 0.5 } }, reached: "BLOCK", assisted: "ESCALATE" },
];

const modes: readonly (readonly [string, (each: Case) => string])[] = [
  ["observe", () => "ALLOW"],
  ["assist", ({ assisted }) => assisted],
  ["enforce", ({ reached }) => reached],
];

for (const [mode, answered] of modes) {
  test(
    `every call gets the answer of ${mode} mode`,
    {
      tags: [
        "check.observe-allows",
        "mode.observe",
        "mode.assist",
        "mode.enforce",
        "verdict.meanings",
        "receipt.reached-verdict",
      ],
    },
    async (t) => {
      const gate = await startGate(t, { flags: { mode } });
      const reasons = (await reachedReasons(t)) as readonly string[];
      for (const [at, each] of cases.entries()) {
        const { status, json } = await check(gate, each.call);
        const about = `${JSON.stringify(each.call)} in ${mode} mode`;
        assert.deepEqual([status, json.verdict, json.mode], [200, answered(each), mode], about);
        const row = (await ask(gate, `/receipts/${json.receipt.seq}`)).json;
        assert.deepEqual([row.verdict, row.answered, row.mode], [each.reached, answered(each), mode], about);
        assert.equal(row.reason, reasons[at], "the receipt has the contract's own reason");
        const own = row.reason.replace(/^Svc: /, "");
        if (mode === "enforce") assert.equal(json.reason, row.reason, about);
        else says(`${mode} ${each.reached} ${answered(each)}`, json.reason, { "OWN REASON": own });
      }
      assert.equal((await ask(gate, "/health")).json.mode, mode);
    },
  );
}

/** Asks a gate that adds nothing to the contract's verdict for each call. */
async function reachedReasons(t: Parameters<typeof startGate>[0]): Promise<readonly unknown[]> {
  const gate = await startGate(t, { flags: { mode: "enforce" } });
  const answers = await Promise.all(cases.map(({ call }) => check(gate, call)));
  return answers.map(({ json }) => json.reason);
}

test(
  `another contract gives other verdicts for the same call`,
  { tags: ["service.contract-decides", "verdict.contract-sets-conditions", "service.separate-decider"] },
  async (t) => {
    const input = "{ type: object, additionalProperties: true }";
    const strict = desk.replace(
      `note.add: { input: ${input}, otherwise: ALLOW }`,
      `note.add: { input: ${input}, otherwise: BLOCK }`,
    );
    assert.notEqual(strict, desk);
    for (const [text, verdict] of [
      [desk, "ALLOW"],
      [strict, "BLOCK"],
    ] as const) {
      const gate = await startGate(t, { contracts: { "desk.yaml": text } });
      assert.equal((await check(gate, { tool_name: "note.add", tool_input: {} })).json.verdict, verdict);
    }
  },
);
