import { hash } from "node:crypto";

/** The most that one account may spend in all, at whichever gate. */
export const budget = { callsMax: 5, hundredthsMax: 2000 } as const;
/** A session with this many calls within two seconds is slowed down. */
export const hasty = { calls: 25, withinMs: 2000 } as const;

/** The two editions differ in one limit: reloads switch between them during the load. */
export const editions = [budget.callsMax, budget.callsMax - 1] as const;

/** Returns the contract. Every counter has a bound that several gates could exceed together, and none may. */
export function contractOf(callsMax: number): string {
  return `contract: campaign
tools:
  spend:
    input:
      type: object
      additionalProperties: false
      required: [id, account, amount]
      properties:
        id: { type: string }
        account: { type: string }
        amount: { type: number, minimum: 0 }
    otherwise: ALLOW
counters:
  uses: { of: spend, per: input.account, counting: released }
  spent: { of: spend, per: input.account, sum: input.amount, counting: released }
  recent: { of: spend, per: session, within: 2s }
rules:
  - { rule: too-many, on: spend, when: counters.uses >= ${callsMax}, verdict: BLOCK, reason: "{counters.uses} are enough" }
  - { rule: too-much, on: spend, when: counters.spent + input.amount > 20, verdict: BLOCK, reason: "{counters.spent} is spent" }
  - { rule: hasty, on: spend, when: counters.recent >= ${hasty.calls}, verdict: ESCALATE, reason: "{counters.recent} in two seconds" }
`;
}

/** How many calls of an account a contract allows, by the text of GET /rules. */
export function callsMaxOf(text: string): number {
  return Number(/counters\.uses >= (\d+)/.exec(text)?.[1]);
}

export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}
