import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import { NotKept } from "../../ledger/errors.ts";
import type { InForce, Ledger } from "../../ledger/mod.ts";
import type { Receipt } from "../../../../core/src/record/entry/mod.ts";
import type { Approval } from "../../../../core/src/approvals/mod.ts";
import { bad, good, type Mode, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { Sequencer } from "../core/sequencer.ts";
import { unavailable, type TimedTransaction } from "../policy/active-ledger.ts";
import { activePolicy, agrees, type ActivePolicy } from "../policy/active-policy.ts";
import { inForceJson, reloadReason, weakerRefusal } from "../policy/reload-row.ts";
import { signerEvent } from "../policy/signer-event.ts";
import { completeStops } from "../policy/stops.ts";
import { alignCounters, foldAhead, freshLoss, type FoldedCounter, type FoldProgress } from "./counters.ts";

/** What a start wants to put in force. */
export interface PolicyOptions {
  readonly ledger: Ledger;
  readonly policySet: PolicySet;
  /** The mode that this start sets; undefined keeps the ledger's last mode, else observe. */
  readonly mode: Mode | undefined;
  /** The setting that names the mode, for the row and for messages. */
  readonly modeSetting?: string | undefined;
  /** The tenant, for messages; null is the root. */
  readonly tenant?: string | null;
  /** On a shared ledger: puts this start's contract in force even if another contract is. */
  readonly acceptChange?: boolean;
  /** On a shared ledger: this start may weaken the mode for all gates. */
  readonly acceptWeakerMode?: boolean | undefined;
  /** On a shared ledger: keeps a stricter mode in force and does not refuse this start. */
  readonly keepsStricterMode?: boolean | undefined;
}

export interface ReloadResult {
  /** False if the contract and the mode were already in force; then no row was written. */
  readonly changed: boolean;
  readonly before: InForce;
  readonly now: InForce;
  readonly folded: readonly FoldedCounter[];
  readonly receipt: Receipt | undefined;
}

/** The policy to put in force. */
interface WantedPolicy {
  /** Undefined keeps the contract. */
  readonly policySet: PolicySet | undefined;
  /** Undefined keeps the mode. */
  readonly mode: Mode | undefined;
  /** The setting that names the mode; undefined if a person requested it. */
  readonly setting?: string | undefined;
  /** On a shared ledger: it may weaken the mode for all gates. */
  readonly mayWeaken: boolean;
  /** If two gates create a ledger at the same time, the second uses the contract of the first. */
  readonly yields?: boolean;
}

/** Puts contracts and modes in force on one ledger, with rows that say so. */
export class PolicyChanges {
  readonly #options: PolicyOptions;
  readonly #sequencer: Sequencer;
  readonly #onApprovals: (changed: readonly Approval[]) => void;

  /** @param onApprovals called with the approvals that a change has ended, or whose votes it has ended */
  constructor(options: PolicyOptions, sequencer: Sequencer, onApprovals: (changed: readonly Approval[]) => void) {
    this.#options = options;
    this.#sequencer = sequencer;
    this.#onApprovals = onApprovals;
  }

  /**
   * Puts a contract and a mode in force between two batches, with a row that records who did it. Counters keep their
   * history: a new counter is first folded from the receipts, while checks go on.
   *
   * @param wanted `setting` names the file or variable that sets the mode. On a shared ledger a setting never weakens
   *   the mode
   */
  reload(
    wanted: { readonly policySet: PolicySet; readonly mode: Mode | undefined; readonly setting?: string | undefined },
    by: string,
  ): Promise<Result<ReloadResult, Refusal>> {
    return this.#putInForce({ ...wanted, mayWeaken: wanted.setting === undefined }, by);
  }

  /**
   * Makes the gate follow its ledger before the first check. On a shared ledger the contract in force stays, so a
   * replica with older files changes nothing for the others. A mode that this start sets applies to all gates, but it
   * weakens a shared ledger only if the operator accepts that.
   *
   * @returns the policy that was put in force; undefined if nothing changed
   */
  async start(): Promise<Result<ReloadResult | undefined, Refusal>> {
    const { policySet, mode, modeSetting: setting, acceptChange, acceptWeakerMode, keepsStricterMode } = this.#options;
    const mayWeaken = acceptWeakerMode === true;
    let isFollowing = false;
    let weaker: Refusal | undefined;
    const look = ({ transaction }: TimedTransaction): Promise<void> => {
      isFollowing = transaction.store.inForce !== undefined;
      weaker = weakerRefusal(transaction.store, { mode, setting, mayWeaken }, this.#inForceHere, "start");
      return transaction.abort();
    };
    const looked = await this.#sequencer.batcher.exclusive(look, { anyClock: true });
    if (!looked.ok) return looked;
    // This check comes before any row. The row of a rotated key would stop gates that do not have that key.
    if (weaker !== undefined && keepsStricterMode !== true) return bad(weaker);
    const told = weaker === undefined ? mode : undefined;
    const recorded = await this.#recordSigner();
    if (!recorded.ok) return recorded;
    const yields = acceptChange !== true;
    const own = isFollowing && yields ? undefined : policySet;
    const isNothing = own === undefined && (told ?? this.#policy.mode) === this.#policy.mode;
    const wanted = { policySet: own, mode: told, setting, mayWeaken, yields };
    return isNothing ? good(undefined) : this.#putInForce(wanted, "start", true);
  }

  get #policy(): ActivePolicy {
    return this.#sequencer.active.policy;
  }

  get #inForceHere(): { readonly mode: Mode; readonly tenant: string | null } {
    return { mode: this.#policy.mode, tenant: this.#options.tenant ?? null };
  }

  /** Records that another key signs heads since this start. Both keys sign the head with this row. */
  async #recordSigner(): Promise<Result<void, Refusal>> {
    const change = this.#options.ledger.signerChange;
    if (change === undefined) return good(undefined);
    const { to } = change;
    const prepared = await this.#prepare(this.#policy.policySet); // The row names a contract, so the contract's text is stored first.
    if (!prepared.ok) return prepared;
    const sign = async ({ transaction, at }: TimedTransaction): Promise<void> => {
      if (transaction.store.signer === to) return transaction.abort();
      const { contract, mode } = this.#policy;
      transaction.change({ ...signerEvent(change, "start"), at, contract, mode });
      await transaction.commit(undefined, to);
    };
    return this.#sequencer.batcher.exclusive(sign, { anyClock: true });
  }

  /**
   * Puts a policy in force. A contract or mode that is not given stays as it is in the transaction, because another
   * gate may have changed it.
   */
  async #putInForce(wanted: WantedPolicy, by: string, anyClock = false): Promise<Result<ReloadResult, Refusal>> {
    const { ledger } = this.#options;
    const prepared = await this.#prepare(wanted.policySet ?? this.#policy.policySet);
    if (!prepared.ok) return prepared;
    const ahead = prepared.value;
    let outcome: Result<ReloadResult, Refusal> | undefined;
    const ended: Approval[] = [];
    const commitPolicy = async ({ transaction, at }: TimedTransaction): Promise<void> => {
      const before = transaction.store.inForce ?? this.#policy;
      const own = wanted.yields === true && transaction.store.inForce !== undefined ? undefined : wanted.policySet;
      const next = activePolicy(own ?? this.#policy.policySet, wanted.mode ?? this.#policy.mode);
      const weaker = weakerRefusal(transaction.store, wanted, this.#inForceHere, by);
      if (weaker !== undefined) {
        outcome = bad(weaker);
        return transaction.abort();
      }
      const lostThrough = await freshLoss(ledger, transaction);
      const folded = await alignCounters(next.policySet, ledger, transaction, { ahead, lostThrough });
      const changed = !agrees(before, next);
      if (changed) {
        ended.push(...(await completeStops(transaction, at, this.#policy, next.policySet)));
        const now = inForceJson(next);
        const body = { before: inForceJson(before), now, ...(wanted.setting && { setting: wanted.setting }) };
        transaction.change({
          at,
          by,
          act: "reload",
          body,
          reason: reloadReason(before, next, by, wanted.setting),
          ...next,
        });
      }
      const receipt = (await transaction.commit(next)).at(-1);
      this.#sequencer.active.activate(next);
      this.#onApprovals(ended);
      outcome = good({ changed, before, now: next, folded, receipt });
    };
    const done = await this.#sequencer.batcher.exclusive(commitPolicy, { anyClock });
    return done.ok ? (outcome as NonNullable<typeof outcome>) : done;
  }

  /**
   * Does the work that needs no transaction, while checks go on. An unreachable database is a refusal, as in a
   * transaction.
   */
  async #prepare(policySet: PolicySet): Promise<Result<ReadonlyMap<string, FoldProgress>, Refusal>> {
    try {
      await this.#options.ledger.keepContract(policySet.text);
      return good(await foldAhead(policySet, this.#options.ledger));
    } catch (error) {
      if (error instanceof NotKept) return bad(unavailable(error));
      throw error;
    }
  }
}
