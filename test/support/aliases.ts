import { payments, type Desk, type DeskOptions } from "./approvals.ts";
import type { Mutation } from "./mutation/mutate.ts";

/** The payments contract, whose tool has two other names, and whose large payments a grant can cover. */
export const aliasedPayments: string = payments
  .replace("  pay.send:\n", "  pay.send:\n    aliases: [Pay, send_money]\n")
  .replace(
    "approval: { by: [finance] }",
    "approval: { by: [finance], grants: { at_most: 1h, uses: 6, pin: [input.to] } }",
  )
  .replace("> 2500", "> 250000");

/** The same contract after the alias `Pay` has moved to another tool. */
export const movedPayments: string = aliasedPayments
  .replace("aliases: [Pay, send_money]", "aliases: [send_money]")
  .replace("  pay.legal:\n", "  pay.legal:\n    aliases: [Pay]\n");

export const aliased: DeskOptions = { contract: aliasedPayments };

/** A gate that knows each tool only by its own name. */
export const ownNameAlone: Mutation = {
  within: "prepare",
  module: "run/decide",
  find: "withOwnName(policySet, sent)",
  put: "sent",
};

/** A call under another name. */
export function as(name: string, call: object): object {
  return { ...call, tool_name: name };
}

export async function verdictOf(desk: Desk, call: object, agent?: string): Promise<string> {
  return (await desk.asks(call, agent)).verdict;
}
