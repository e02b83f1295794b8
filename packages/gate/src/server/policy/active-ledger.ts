import type { Approval, Stops } from "../../../../core/src/approvals/mod.ts";
import { NotKept } from "../../ledger/errors.ts";
import type { InForce, Ledger, AppendTransaction } from "../../ledger/mod.ts";
import { bad, good, refuse, type Mode, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { GateHistory } from "./hooks.ts";
import { activePolicy, agrees, isLater, type ActivePolicy } from "./active-policy.ts";
import type { Clock } from "./clock.ts";
import { followedEvent, missingActs } from "./stops.ts";
import { recompileContracts } from "./contracts.ts";

/** A transaction of the ledger at a trusted time. */
export interface TimedTransaction {
  readonly transaction: AppendTransaction;
  /** Milliseconds since the epoch, not less than in the last row. */
  readonly at: number;
}

/**
 * Runs work in a transaction of its own, and commits the rows that the work has appended. If there are none, or the work
 * refuses, it aborts the transaction.
 */
export type Exclusive = <Value>(
  work: (timed: TimedTransaction) => Promise<Result<Value, Refusal>>,
) => Promise<Result<Value, Refusal>>;

/** @param run runs work in a transaction; it returns why it could not */
export function exclusiveBy(
  run: (work: (timed: TimedTransaction) => Promise<void>) => Promise<Result<unknown, Refusal>>,
): Exclusive {
  return async <Value>(work: (timed: TimedTransaction) => Promise<Result<Value, Refusal>>) => {
    const found: Result<Value, Refusal>[] = [];
    const done = await run(async (timed) => {
      const { transaction } = timed;
      const before = transaction.head.seq;
      const result = await work(timed);
      found.push(result);
      await (result.ok && transaction.head.seq > before ? transaction.commit() : transaction.abort());
    });
    return done.ok ? (found[0] as Result<Value, Refusal>) : done;
  };
}

export interface ActiveLedgerOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Called when another gate on the same ledger has changed the policy, and this gate now follows it. */
  readonly onFollow?: ((policy: ActivePolicy) => void) | undefined;
  /** The stops of the root's ledger, which a tenant's ledger follows. */
  readonly rootStops?: (() => Promise<Stops>) | undefined;
  /** Ends the approvals whose time is over, before a stop of the root is recorded. */
  readonly endDue?: ((timed: TimedTransaction, policy: ActivePolicy) => Promise<readonly Approval[]>) | undefined;
  /** Called with the approvals that a transaction has changed, after their rows are on disk. */
  readonly onApprovals?: ((changed: readonly Approval[]) => void) | undefined;
}

/** A ledger together with the policy that is in force on it. */
export class ActiveLedger {
  readonly #options: ActiveLedgerOptions;
  #policy: ActivePolicy;
  #isSuperseded = false;

  constructor(options: ActiveLedgerOptions, policy: ActivePolicy) {
    this.#options = options;
    this.#policy = policy;
  }

  get policy(): ActivePolicy {
    return this.#policy;
  }

  /** True if a later version of the gate served the ledger at the last transaction. */
  get isSuperseded(): boolean {
    return this.#isSuperseded;
  }

  /** Notes a policy that this gate's own transaction has put in force. */
  activate(policy: ActivePolicy): void {
    this.#policy = policy;
  }

  /**
   * Runs work in a transaction in which the clock is right and this gate's policy is the one in force on the ledger.
   *
   * @param anyClock the work does not need the right time: if the clock is wrong, it gets the time of the last row
   * @returns why the work was not done, or its rows were not stored
   */
  async transact(work: (timed: TimedTransaction) => Promise<void>, anyClock: boolean): Promise<Result<void, Refusal>> {
    const { ledger, clock, rootStops } = this.#options;
    let transaction: AppendTransaction | undefined;
    try {
      for (;;) {
        transaction = await ledger.begin();
        const time = clock.read(transaction.head.at, transaction.store.at);
        const { inForce } = transaction.store;
        const isBehind = inForce !== undefined && !agrees(inForce, this.#policy);
        const isSuperseded = inForce !== undefined && isLater(inForce.engine);
        this.#isSuperseded = isSuperseded;
        // A start may not have stored the text of the contract that the rows would name.
        const mayFollow = rootStops !== undefined && !anyClock && time.ok && !isBehind && !isSuperseded;
        if (mayFollow && (await this.#followStops(transaction, time.value, await rootStops()))) continue;
        if ((time.ok || anyClock) && !isBehind && !isSuperseded) {
          await work({ transaction, at: time.ok ? time.value : transaction.head.at });
          return good(undefined);
        }
        await transaction.abort();
        if (!time.ok && !anyClock)
          return bad(refuse("clock-unreliable", `${time.problem}: the gate decides no check until the clock is right`));
        if (isSuperseded) {
          const sentence = `a later version of the gate (${inForce.engine}) serves this ledger, so this gate decides nothing more`;
          return bad(refuse("superseded", sentence));
        }
        if (inForce !== undefined) await this.#follow(inForce);
      }
    } catch (error) {
      if (!(error instanceof NotKept)) throw error;
      await transaction?.abort();
      return bad(unavailable(error));
    }
  }

  /**
   * Records the acts of the root about stops that the ledger does not have yet, in a transaction of their own.
   *
   * @returns true if there were any: then the transaction has ended
   */
  async #followStops(transaction: AppendTransaction, at: number, root: Stops): Promise<boolean> {
    const missing = missingActs(transaction, root);
    if (missing.length === 0) return false;
    const { contract, mode, policySet } = this.#policy;
    const due = (await this.#options.endDue?.({ transaction, at }, this.#policy)) ?? [];
    const changed = new Map(due.map((approval) => [approval.row, approval]));
    for (const act of missing) {
      const event = await followedEvent(transaction, act, policySet, changed);
      for (const approval of transaction.change({ ...event, at, contract, mode })) changed.set(approval.row, approval);
    }
    await transaction.commit();
    this.#options.onApprovals?.([...changed.values()]);
    return true;
  }

  /** Loads the policy that another gate has put in force. The ledger keeps its text. */
  async #follow({ contract, mode }: InForce): Promise<void> {
    const { ledger, onFollow } = this.#options;
    const policySet = await recompileContracts(ledger.rows, contract);
    if (policySet === undefined) throw new Error(`the contract ${contract} that is in force cannot be compiled again`);
    this.#policy = activePolicy(policySet, mode as Mode);
    onFollow?.(this.#policy);
  }
}

/** Returns the ledger's rows so far, to be read again. The policy in force is compiled already. */
export async function gateHistory(
  ledger: Pick<Ledger, "keyDigest" | "rows" | "signedSize">,
  { contract, policySet }: ActivePolicy,
): Promise<GateHistory> {
  const isInForce = (digest: string): boolean => digest === contract;
  const { rows } = ledger;
  return {
    ...rows,
    rows: await ledger.signedSize(),
    contractText: async (digest) => (isInForce(digest) ? policySet.text : rows.contractText(digest)),
    findCompiled: (digest) => (isInForce(digest) ? policySet : undefined),
    keyDigest: ledger.keyDigest,
  };
}

/** The refusal if the store kept nothing. */
export function unavailable({ why }: NotKept): Refusal {
  return refuse("ledger-unavailable", notKept[why]);
}

const notKept: Readonly<Record<NotKept["why"], string>> = {
  "disk-full": "the ledger has no room for a receipt, so nothing is answered; free space on its disk",
  unreachable: "the ledger's database cannot be reached, so nothing was decided; ask again in a moment",
  forbidden:
    "the role of the ledger's database may not erase: run `svc-gate migrate --role ROLE` as the schema's owner",
  "not-committed": "the ledger's database did not keep the receipt, so nothing is answered; ask again in a moment",
};
