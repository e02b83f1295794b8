import { NotKept } from "../../ledger/errors.ts";
import { resetMoment, type InForce, type Ledger, type AppendTransaction } from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import { bad, good, refuse, type Mode, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { Clock, systemTime } from "../policy/clock.ts";
import { isLater, recordedPolicy } from "../policy/active-policy.ts";
import type { MakeAdminEvent, AdminEvents } from "../policy/admin-event.ts";
import { signerEvent } from "../policy/signer-event.ts";

/**
 * Appends administrative events to a ledger that no gate in this process serves. The policy stays that of the last row.
 */
export class OfflineAdminEvents implements AdminEvents {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /**
   * @param recordsSigner appends the row of a changed signing key first. Gates that serve the ledger without that key
   *   would stop, so only work that requires them to be stopped may do this. Otherwise the next start appends the row.
   */
  async appendAdminEvent(makeEvent: MakeAdminEvent, recordsSigner = false): Promise<Result<Durable<Receipt>, Refusal>> {
    const before = await recordedPolicy(this.#ledger);
    let transaction: AppendTransaction | undefined;
    try {
      transaction = await this.#ledger.begin();
      const appended = await this.#append(transaction, transaction.store.inForce ?? before, makeEvent, recordsSigner);
      if (!appended.ok) await transaction.abort();
      return appended;
    } catch (error) {
      await transaction?.abort();
      if (error instanceof NotKept) return bad(refuse("ledger-unavailable", `nothing was written: ${error.message}`));
      throw error;
    }
  }

  async #append(
    transaction: AppendTransaction,
    { contract, mode, engine: writer }: InForce,
    makeEvent: MakeAdminEvent,
    recordsSigner: boolean,
  ): Promise<Result<Durable<Receipt>, Refusal>> {
    const time = new Clock(systemTime).read(transaction.head.at, transaction.store.at);
    if (!time.ok) return bad(refuse("clock-unreliable", `${time.problem}: correct the clock first`));
    if (isLater(writer))
      return bad(refuse("superseded", `a later version of the gate (${writer}) wrote this ledger: use that version`));
    const entry = { at: resetMoment(time.value, transaction.head.at), contract, mode: mode as Mode };
    const act = await makeEvent(transaction, entry.at);
    if (!act.ok) return act;
    const change = recordsSigner ? this.#ledger.signerChange : undefined;
    if (change !== undefined) transaction.change({ ...entry, ...signerEvent(change, act.value.by) });
    for (const each of [...(act.value.first ?? []), act.value]) transaction.change({ ...entry, ...each });
    const receipts = await transaction.commit(undefined, change?.to);
    return good(receipts.at(-1) as Durable<Receipt>);
  }
}
