/**
 * Goal: `verify --deep` never calls an honest ledger wrong if rows were erased that a counter was folded from, or that reserved an
 * amount before the counter came into force (finding P8). Method: reloads add and remove a counter, and rows are erased.
 * Positive control: a planted defect makes the same ledger differ.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startDesk, type Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../support/mutation/sources.ts";

const program = fileURLToPath(new URL("../../packages/svc-gate/src/main.ts", import.meta.url));

const text = (counter: string): string => `contract: o
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [who, usd]
      properties: { who: { type: string }, usd: { type: number, minimum: 0 } }
    otherwise: ALLOW
${counter === "" ? "" : `counters:\n  n: { of: pay, within: 30d, ${counter} }\n`}rules:
  - { rule: large, on: pay, when: input.usd > 100, verdict: ESCALATE, reason: it is large }
${counter === "" ? "" : "  - { rule: many, on: pay, when: counters.n > 50, verdict: BLOCK, reason: too many }\n"}`;

async function loads(desk: Desk, counter: string): Promise<void> {
  writeFileSync(join(desk.folder, "contracts", "pay.yaml"), text(counter));
  const { status, text: said } = await desk.operates("/admin/reload", {});
  assert.equal(status, 200, said);
}

const pays = (desk: Desk, who: string, usd = 5): Promise<any> =>
  desk.asks({ tool_name: "pay", tool_input: { who, usd }, session_id: "s" });

async function erases(desk: Desk, who: string, parts: readonly string[]): Promise<void> {
  const where = { "input.who": who };
  const { status, text: said } = await desk.operates("/admin/erase", { where, parts, reason: "a person asked for it" });
  assert.equal(status, 200, said);
}

interface Case {
  readonly what: string;
  /** Ends with the erasure. */
  readonly run: (desk: Desk) => Promise<void>;
  /** A defect of deep verification, with which the ledger looks wrong. */
  readonly defect: Mutation;
}

const cases: readonly Case[] = [
  ...["outcome", "input"].map((part): Case => ({
    what: `a call waits, a counter comes into force, and the ${part} of the call is erased`,
    run: async (desk) => {
      assert.equal((await pays(desk, "anna", 200)).verdict, "ESCALATE");
      await loads(desk, "per: key, counting: possible");
      assert.equal((await pays(desk, "bob")).verdict, "ALLOW");
      await erases(desk, "anna", [part]);
    },
    defect: {
      within: "OpenApprovals.pass",
      find: 'judgement.how === "opened" || (isErased && leaf.answered === "ESCALATE")',
      put: 'judgement.how === "opened"',
    },
  })),
  ...["released", "attempts"].map((counting): Case => ({
    what: `a counter of ${counting} leaves and comes back, and rows of its first folding are erased meanwhile`,
    run: async (desk) => {
      await pays(desk, "anna");
      await loads(desk, `per: input.who, counting: ${counting}`);
      await pays(desk, "cleo");
      await loads(desk, "");
      await pays(desk, "bob");
      await erases(desk, "anna", ["input"]);
      await erases(desk, "bob", ["input"]);
      await loads(desk, `per: input.who, counting: ${counting}`);
      await pays(desk, "cleo");
    },
    defect: {
      within: "StoredCounters.#isVerifiable",
      find: "isShort && (this.#kept.get(digest)?.folded ?? 0) > found",
      put: "false",
    },
  })),
];

/** The folder of a ledger after a case. */
async function ledgerOf(t: TestContext, { run }: Case): Promise<string> {
  const desk = await startDesk(t, { contract: text("") });
  await run(desk);
  assert.equal((await ask(desk, "/ledger/verify")).json.ok, true);
  await desk.stop();
  return join(desk.folder, "data");
}

suite("deep verification after an erasure", () => {
  for (const each of cases) {
    test(`[P8] ${each.what}`, async (t) => {
      const { code, stdout } = await command(["verify", "--deep", await ledgerOf(t, each)]);
      assert.equal(code, 0, stdout);
    });

    control(`positive control: a defect of deep verification is noticed: ${each.what}`, async (t) => {
      const env = { ...process.env, ...mutatedEnvironment([each.defect]) };
      const args = ["--import", preload, program, "verify", "--deep", await ledgerOf(t, each)];
      await assert.rejects(promisify(execFile)(process.execPath, args, { env }), /WRONG COUNTER|DIFFERS/);
    });
  }
});
