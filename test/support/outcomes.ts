import assert from "node:assert/strict";
import { large, startDesk, type Desk, type DeskOptions, type Scenario } from "./approvals.ts";
import type { TestContext } from "node:test";
import { ask, type Answer } from "./gate.ts";

/** Payments within a budget that outcomes settle, and a tool whose answers show the counters. */
export const settled = `contract: pay
platform:
  type: object
  required: [wallet]
  properties: { wallet: { type: string } }
tools:
  pay.send:
    input:
      type: object
      additionalProperties: false
      required: [amount, to]
      properties:
        amount: { type: number, minimum: 0 }
        to: { type: string }
    requires: platform.present
    otherwise: ALLOW
  pay.look:
    input: { type: object, additionalProperties: false }
    requires: platform.present
    otherwise: ALLOW
counters:
  spent: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: possible, within: 24h, settles: outcome }
  gross: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: released, within: 24h }
  paid: { of: [pay.send], per: platform.wallet, sum: input.amount, counting: done, within: 24h }
  finished: { of: [pay.send], per: platform.wallet, counting: done, claims: true }
rules:
  - rule: budget
    on: [pay.send]
    when: counters.spent + input.amount > 1500
    verdict: BLOCK
    reason: "{counters.spent} is spent"
  - { rule: large, on: [pay.send], when: input.amount > 1000, verdict: ESCALATE, reason: a large payment }
  - rule: look
    on: [pay.look]
    when: counters.spent >= 0
    verdict: BLOCK
    reason: "{counters.spent} {counters.gross} {counters.paid} {counters.finished}"
`;

/** The values of the counters of `settled`. */
export interface Values {
  readonly spent: number;
  readonly gross: number;
  readonly paid: number;
  readonly finished: number;
}

/** A gate with payments that outcomes settle. */
export interface Till extends Desk {
  /** Makes a payment and returns the answer. */
  readonly pays: (amount: number, wallet?: string) => Promise<any>;
  /** Reports an outcome: `asker` is the key that pays, `books` a key with the scope `outcome` alone. */
  readonly reports: (by: "asker" | "books", answer: any, status: string, more?: object) => Promise<Answer>;
  /** The key with the scope `outcome` alone. */
  readonly books: string;
  readonly values: (wallet?: string) => Promise<Values>;
}

export async function startTill(t: TestContext, options: DeskOptions = {}, books?: string): Promise<Till> {
  return tillOf(await startDesk(t, { contract: settled, ...options }), books);
}

/** @param books a key with the scope `outcome` alone; by default this makes one */
export async function tillOf(desk: Desk, books?: string): Promise<Till> {
  const made = books ?? (await desk.operates("/admin/keys", { name: "books", scopes: ["outcome"] })).json.key;
  const on = (wallet: string): object => ({ platform_state: { wallet } });
  return {
    ...desk,
    books: made,
    pays: (amount, wallet = "w") => desk.asks({ ...large, tool_input: { amount, to: "anna" }, ...on(wallet) }),
    reports: async (by, { receipt: { seq, hash } }, status, more = {}) => {
      const headers: Record<string, string> = { "content-type": "application/json" };
      if (by === "books") headers["authorization"] = `Bearer ${made}`;
      const body = JSON.stringify({ receipt: { seq, hash }, status, ...more });
      return ask(desk, "/outcomes", { method: "POST", headers, body });
    },
    values: async (wallet = "w") => {
      const { verdict, reason } = await desk.asks({ ...large, tool_name: "pay.look", tool_input: {}, ...on(wallet) });
      assert.equal(verdict, "BLOCK", reason);
      const [spent, gross, paid, finished] = reason.replace("Svc: ", "").split(" ").map(Number);
      return { spent, gross, paid, finished };
    },
  };
}

/** A scenario about outcomes. */
export function scenario(
  rule: string,
  run: (till: Till, t: TestContext) => Promise<void>,
  defect: Scenario["defect"],
  options: DeskOptions = {},
): Scenario {
  return {
    rule,
    run: async (desk, t) => run(await tillOf(desk), t),
    defect,
    options: { contract: settled, ...options },
  };
}
