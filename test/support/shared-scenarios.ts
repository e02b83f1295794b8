import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { assertLedgerValid, startDesk, type Desk, type DeskOptions } from "./approvals.ts";
import { control } from "./controls/control.ts";
import { sharedPostgres } from "./databases.ts";
import { ask } from "./gate.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { twoDesks } from "./two-desks.ts";

/** A rule about rows that gates share, as a scenario between two gates, and a defect that the scenario must notice. */
export interface SharedScenario {
  readonly rule: string;
  /** @param other another gate on the same ledger, or the same gate */
  readonly run: (one: Desk, other: Desk) => Promise<void>;
  /** Several where two checks back each other. */
  readonly defect: Mutation | readonly Mutation[];
  readonly options?: Pick<DeskOptions, "contract" | "env" | "mode" | "persons" | "scopes">;
}

/**
 * Runs each scenario with one gate on SQLite, with two gates on PostgreSQL, and as a positive control with a defect of
 * the one gate. Afterwards the ledger must verify.
 */
export async function runShared(name: string, scenarios: readonly SharedScenario[]): Promise<void> {
  const server = await sharedPostgres({ after });
  suite(name, { concurrency: 2 }, () => {
    for (const { rule, run, defect, options } of scenarios) {
      test(rule, async (t) => {
        const desk = await startDesk(t, options);
        await run(desk, desk);
        await assertLedgerValid(desk);
      });
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        const desk = await startDesk(t, { ...options, defects: [defect].flat() });
        await assert.rejects(() => run(desk, desk));
      });
      const skip = typeof server === "string" ? server : false;
      test(`${rule} (two gates on PostgreSQL)`, { skip }, async (t) => {
        if (typeof server === "string") return;
        const [one, other] = await twoDesks(t, await server.create(), options);
        await run(one, other);
        const { json } = await ask(other, "/ledger/verify");
        assert.equal(json.ok, true, JSON.stringify(json));
      });
    }
  });
}
