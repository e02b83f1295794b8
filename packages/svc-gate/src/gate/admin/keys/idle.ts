import { NotKept, type Change, type InForce, type Ledger, type Turn } from "../../../ledger/mod.ts";
import { parseLeaf, type Durable, type Receipt } from "../../../ledger/entry/mod.ts";
import { bad, good, refuse, type Mode, type Refusal, type Result } from "../../../wire/mod.ts";
import { Clock, systemTime } from "../../core/clock.ts";
import { noContracts } from "../../core/contracts.ts";
import type { Act } from "../act.ts";
import { openIdle, type IdlePlace } from "../idle.ts";
import { isLater, activePolicy } from "../../core/active-policy.ts";
import { tenantId } from "../../start/tenants-file.ts";
import type { DeskAsking } from "./desk.ts";
import { KeyRing, operatorKey } from "./ring.ts";

/** The keys of a ledger that no gate serves, and what its operator does to them. */
export interface IdleKeys {
  readonly ring: KeyRing;
  /** Who acts: whoever can write a data folder. */
  readonly asking: (tenant: string | null) => DeskAsking;
  close(): Promise<void>;
}

/**
 * Opens the keys in a data folder or a database. What is done to them is a row, under what was in force last. Of the first
 * key only its name is known here. In a database `mayBegin` lets the first key come before the first gate, which is refused
 * without one.
 *
 * @throws {LedgerRefused} where there is no ledger, or a gate serves it
 */
export async function openIdleKeys(place: Omit<IdlePlace, "tenant">): Promise<IdleKeys> {
  // Keys of all tenants are rows of the root's ledger.
  const { ledger, close } = await openIdle({ ...place, tenant: null });
  const gate = {
    changes: (after: number): Promise<readonly Change[]> => ledger.changes(after),
    enact: (actOf: ActOf): Promise<Result<Durable<Receipt>, Refusal>> => enact(ledger, actOf),
  };
  const ring = await KeyRing.open({ gate, ledger, firstKey: "", isTenant: (id) => tenantId.test(id) });
  return {
    ring,
    asking: (tenant) => ({ by: operatorKey, tenant }),
    close: async () => {
      await ring.close();
      await close();
    },
  };
}

type ActOf = (turn: Turn) => Promise<Result<Act, Refusal>>;

/** One act on a ledger that no gate in this process serves. */
export async function enact(ledger: Ledger, actOf: ActOf): Promise<Result<Durable<Receipt>, Refusal>> {
  const before = await lastInForce(ledger);
  let turn: Turn | undefined;
  try {
    turn = await ledger.begin();
    const time = new Clock(systemTime).read(turn.head.at, turn.sharedTime);
    if (!time.ok) return await refused(turn, refuse("clock-unreliable", time.problem));
    const { contract, mode, engine: writer } = turn.inForce ?? before;
    if (isLater(writer)) return await refused(turn, refuse("superseded", `a later gate (${writer}) wrote this ledger`));
    const act = await actOf(turn);
    if (!act.ok) return await refused(turn, act.problem);
    turn.change({ ...act.value, at: time.value, contract, mode: mode as Mode });
    const [receipt] = await turn.commit();
    return good(receipt as Durable<Receipt>);
  } catch (error) {
    if (!(error instanceof NotKept)) throw error;
    await turn?.abort();
    return bad(refuse("ledger-unavailable", `nothing was written: ${error.message}`));
  }
}

async function refused(turn: Turn, refusal: Refusal): Promise<Result<never, Refusal>> {
  await turn.abort();
  return bad(refusal);
}

/** What the last row was written under; on a ledger without rows, what a gate that was told nothing goes by. */
export async function lastInForce(ledger: Ledger): Promise<InForce> {
  for await (const [row] of ledger.rows(Math.max(1, ledger.head.seq))) {
    const { contract, mode, engine: writer } = parseLeaf(row?.leaf ?? "") ?? {};
    if (contract && mode && writer) return { contract: contract.replace(/^sha256:/, ""), mode, engine: writer };
  }
  const nothing = activePolicy(noContracts(), ledger.modeAtOpen ?? "observe");
  await ledger.keepContract(nothing.force.text);
  return nothing;
}
