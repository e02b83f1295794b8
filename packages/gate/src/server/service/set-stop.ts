import type { Approval, EndedByStop } from "../../../../core/src/approvals/mod.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import { good, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { endDue } from "../approvals/acts.ts";
import { stopEvent, type StopRequest, type Stopper } from "../policy/stops.ts";
import type { Gate } from "./gate.ts";

export interface SetStop {
  readonly receipt: Durable<Receipt>;
  readonly ended: EndedByStop;
}

/**
 * Sets a stop on the ledger of a gate. Approvals whose time is over end before it, so that it neither counts them nor lets
 * them wait again.
 */
export async function setStop(gate: Gate, wanted: StopRequest, stopper: Stopper): Promise<Result<SetStop, Refusal>> {
  let ended: EndedByStop = { approvals: 0, votes: 0, grants: 0 };
  const expired: Approval[] = [];
  const receipt = await gate.appendAdminEvent(async (transaction, at) => {
    const { policy } = gate;
    expired.push(...(await endDue({ transaction, at }, policy)));
    const known = new Map(expired.map((approval) => [approval.row, approval]));
    const made = await stopEvent({ transaction, at }, { ...wanted, ...stopper }, policy.policySet, known);
    if (made.ok) ended = made.value.ended;
    return made.ok ? good(made.value.event) : made;
  });
  if (!receipt.ok) return receipt;
  gate.approvals.announceChanges(expired);
  return good({ receipt: receipt.value, ended });
}
