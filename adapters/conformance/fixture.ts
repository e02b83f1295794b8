/** The real gate of the kit, with one contract: small payments run, medium ones need a person, and large ones do not run. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, key, startGate, type Ending } from "../../test/support/gate.ts";
import type { Driver } from "./case.ts";
import { startPerson } from "./person.ts";

/** A row of a check, as the gate shows it. */
export interface Receipt {
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly verdict: string;
  readonly answered: string;
  readonly mode: string;
  readonly at: number;
  readonly session_id: string | null;
  readonly outcome?: { readonly status: string };
}

export interface RealGate {
  readonly url: string;
  readonly key: string;
  /** The checks of a session, oldest first. With an empty id: all, which must have one session. */
  readonly receipts: (session: string) => Promise<readonly Receipt[]>;
  /** Waits for an open approval of the session, and approves it as a person. */
  readonly approve: (session: string) => Promise<void>;
  readonly deny: (session: string) => Promise<void>;
  /** Changes the contract in force: payments that needed a person are blocked. */
  readonly blockMedium: () => Promise<void>;
}

/** Returns the contract with the tools' names at the gate. */
function contractFor({ tools, waits, shellMember = "command" }: Driver, isMediumBlocked: boolean): string {
  const any = "{ type: object, additionalProperties: true }";
  const medium = isMediumBlocked ? "BLOCK" : "ESCALATE";
  const payments = [...new Set([tools.pay.gate, tools.mcp.gate])];
  const on = `[${payments.map((name) => `"${name}"`).join(", ")}]`;
  const paymentTools = payments.map(
    (name) => `  "${name}":
    input:
      type: object
      additionalProperties: false
      required: [amount]
      properties: { amount: { type: number, minimum: 0 } }
    otherwise: ALLOW`,
  );
  return `contract: host
tools:
${paymentTools.join("\n")}
  "${tools.shell.gate}":
    input: { type: object, additionalProperties: true, properties: { ${shellMember}: { type: string } }, required: [${shellMember}] }
    otherwise: ALLOW
  "${tools.agent.gate}": { input: ${any}, otherwise: ALLOW }
${waits === undefined ? "" : `  "${waits.gate}": { input: ${any}, otherwise: ALLOW }\n`}rules:
  - { rule: large, on: ${on}, when: input.amount >= 500, verdict: BLOCK, reason: "{input.amount} is too much" }
  - rule: hurried
    on: ${on}
    when: input.amount >= 400 && input.amount < 500
    verdict: ESCALATE
    approval: { use_within: 1s }
    reason: "{input.amount} needs a person soon"
  - rule: medium
    on: ${on}
    when: input.amount >= 50 && input.amount < 400
    verdict: ${medium}
    reason: "{input.amount} ${isMediumBlocked ? "is too much" : "needs a person"}"
  - rule: shell
    on: ["${tools.shell.gate}"]
    when: input.${shellMember}.contains("forbidden")
    verdict: BLOCK
    reason: "900 is too much for a command as well"
`;
}

export async function startRealGate(t: Ending, driver: Driver, mode: "enforce" | "observe"): Promise<RealGate> {
  const contracts = { "host.yaml": contractFor(driver, false) };
  const { address, folder } = await startGate(t, { contracts, flags: { mode } });
  const person = await startPerson(address, folder);
  return {
    url: address,
    key,
    receipts: async (session) => {
      const path = `/receipts?limit=1000${session === "" ? "" : `&session_id=${session}`}`;
      const rows: readonly Receipt[] = (await ask({ address }, path)).json.receipts.toReversed();
      const sessions = new Set(rows.map(({ session_id }) => session_id));
      if (sessions.size > 1) throw new Error(`the calls of one run have ${sessions.size} sessions`);
      return rows;
    },
    approve: (session) => person.approve(session === "" ? undefined : session),
    deny: (session) => person.deny(session === "" ? undefined : session),
    blockMedium: async () => {
      writeFileSync(join(folder, "contracts", "host.yaml"), contractFor(driver, true));
      const { status, json } = await person.reload();
      if (status !== 200) throw new Error(`the reload was refused: ${JSON.stringify(json)}`);
    },
  };
}
