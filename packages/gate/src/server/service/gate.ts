import type { MakeAdminEvent, AdminEvents } from "../policy/admin-event.ts";
import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import { NotKept } from "../../ledger/errors.ts";
import type { InForce, Ledger, Scrubbed } from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import {
  bad,
  good,
  type CheckRequest,
  type KeyKind,
  type Mode,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { compareWithAnchors, type AnchoredCheck, type AnchorReading, type Anchors } from "../anchoring/mod.ts";
import type { Approval, Stop } from "../../../../core/src/approvals/mod.ts";
import { nobody } from "../approvals/deciders.ts";
import { ApprovalDesk } from "../approvals/desk.ts";
import { askEveryMs } from "../approvals/waits.ts";
import { GrantDesk } from "../approvals/grant-desk.ts";
import { EventFeed } from "../events/feed.ts";
import type { Senders } from "../notify/notifier.ts";
import { OutcomeDesk } from "../outcomes/desk.ts";
import { answerBody } from "../core/answer.ts";
import { alignCounters, foldAhead, freshLoss, type FoldedCounter, type Progress } from "./counters.ts";
import { Eraser } from "../erasure/eraser.ts";
import { Retention, type RetentionOptions } from "../erasure/retention.ts";
import { pinReading, pinTrails } from "../anchoring/pin-standing.ts";
import { completeStops } from "../policy/stops.ts";
import { exclusiveBy, unavailable, type TimedTransaction } from "../policy/active-ledger.ts";
import type { Turns } from "../admission/turns.ts";
import type { Admission } from "../admission/batcher.ts";
import { Sequencer, type SequencerOptions } from "../core/sequencer.ts";
import { signerEvent } from "../policy/signer-event.ts";
import { activePolicy, agrees, type ActivePolicy } from "../policy/active-policy.ts";
import { inForceJson, reloadReason, weakerRefusal } from "../policy/reload-row.ts";
import { beginTimings, type AnsweredCheck, type CheckTimings } from "../telemetry/observer.ts";

export interface GateOptions extends SequencerOptions {
  readonly policySet: PolicySet;
  /** The mode that this start sets; undefined keeps the ledger's last mode, else observe. */
  readonly mode: Mode | undefined;
  /** The setting that names the mode, for the row and for messages. */
  readonly modeSetting?: string | undefined;
  /** The tenant, for messages; null is the root. */
  readonly tenant?: string | null;
  /** The ledger's anchors. */
  readonly anchors?: Anchors | undefined;
  /** On a shared ledger: puts this start's contract in force even if another contract is. */
  readonly acceptChange?: boolean;
  /** On a shared ledger: this start may weaken the mode for all gates. */
  readonly acceptWeakerMode?: boolean | undefined;
  /** On a shared ledger: keeps a stricter mode in force and does not refuse this start. */
  readonly keepsStricterMode?: boolean | undefined;
  /** Makes what sends the ledger's events to endpoints. */
  readonly senders?: ((events: EventFeed) => Senders) | undefined;
  /** The settings for erasing evidence by its age. */
  readonly retention?: Omit<RetentionOptions, "eraser" | "ledger"> | undefined;
}

/** Facts about a check that are not in its request. */
export interface RequestContext {
  readonly keyName: string;
  readonly keyKind?: KeyKind | undefined;
  /** See `Caller`. */
  readonly unreadFor?: string | undefined;
  /** The size of the body. */
  readonly bytes: number;
  /** SHA-256 of the body received, in hex. */
  readonly digest: string;
  /** By default they begin now. */
  readonly timings?: CheckTimings;
  /** Says whether the key covers a tool, by the tool's own name. By default it covers all. */
  readonly allowsTool?: ((tool: string) => boolean) | undefined;
  /** Called when the answer is ready. */
  readonly onAnswer?: ((check: AnsweredCheck, timings: CheckTimings) => void) | undefined;
}

/** The result of a reload. */
export interface Reloaded {
  /** False if the contract and the mode were already in force; then no row was written. */
  readonly changed: boolean;
  readonly before: InForce;
  readonly now: InForce;
  /** The counters that start. */
  readonly folded: readonly FoldedCounter[];
  readonly receipt: Receipt | undefined;
}

/** The policy to put in force. */
interface WantedPolicy {
  /** Undefined keeps the contract. */
  readonly policySet: PolicySet | undefined;
  /** Undefined keeps the mode. */
  readonly mode: Mode | undefined;
  /** The setting that names the mode; undefined if a person asked for it. */
  readonly setting?: string | undefined;
  /** On a shared ledger: it may weaken the mode for all gates. */
  readonly mayWeaken: boolean;
  /** If two gates create a ledger at the same time, the second uses the contract of the first. */
  readonly yields?: boolean;
}

/**
 * Opens a gate over a ledger, and updates the counters before any decision.
 *
 * @returns the gate and the folded counters, or why nothing can be decided now
 */
export async function openGate(
  options: GateOptions,
): Promise<Result<{ readonly gate: Gate; readonly folded: readonly FoldedCounter[] }, Refusal>> {
  const gate = new Gate(options);
  const begun = await gate.begin();
  return begun.ok ? good({ gate, folded: begun.value?.folded ?? [] }) : begun;
}

/** One gate: a policy and a ledger. It decides checks and reads its receipts. */
export class Gate implements AdminEvents {
  readonly #options: GateOptions;
  readonly #sequencer: Sequencer;
  readonly #retention: Retention | undefined;
  /** For readers: only the gate itself adds to its ledger. */
  readonly ledger: Omit<Ledger, "begin" | "keepContract" | "keepCounter" | "scrub">;
  /** The ledger's anchors; undefined if there are none. */
  readonly anchors: Anchors | undefined;
  /** The calls that wait for a verdict, and which more may. */
  readonly admission: Admission;
  /** Rejects if a fault ends the gate; it then answers nothing more. */
  readonly failed: Promise<never>;
  /** Erases parts of receipts, between batches; see docs/guides/erasure.md. */
  readonly eraser: Eraser;
  /** Where persons decide this ledger's calls, and calls like them. */
  readonly approvals: ApprovalDesk;
  readonly grants: GrantDesk;
  /** What the ledger's rows say to those who listen. */
  readonly events: EventFeed;
  /** Sends the events to endpoints; undefined if there are none. */
  readonly senders: Senders | undefined;
  /** Where the outcomes of this ledger's calls are reported. */
  readonly outcomes: OutcomeDesk;

  constructor(options: GateOptions) {
    this.#options = options;
    const { ledger, retention } = options;
    this.ledger = ledger;
    this.anchors = options.anchors;
    const mode = ledger.modeAtOpen ?? options.mode ?? "observe";
    const onApprovals: GateOptions["onApprovals"] = (changed) => {
      this.approvals.changed(changed);
      options.onApprovals?.(changed);
    };
    this.#sequencer = new Sequencer({ ...options, onApprovals }, activePolicy(options.policySet, mode));
    const { batcher } = this.#sequencer;
    this.admission = batcher;
    this.failed = batcher.failed;
    const policy = (): ActivePolicy => this.policy;
    const exclusive = exclusiveBy((work) => batcher.exclusive(work));
    const deciders = options.deciders ?? nobody;
    const onChange = options.observer && ((approval: Approval) => options.observer?.approvalChanged(approval));
    this.approvals = new ApprovalDesk({ ledger, policy, exclusive, deciders, onChange });
    this.grants = new GrantDesk({ ledger, policy, exclusive, deciders });
    this.outcomes = new OutcomeDesk({ ledger, policy, exclusive });
    this.events = new EventFeed({ ledger, endDue: () => this.approvals.endDue(), askEveryMs });
    this.senders = options.senders?.(this.events);
    this.eraser = new Eraser({
      ledger,
      appendAdminEvent: async (makeEvent) => {
        const appended = await this.appendAdminEvent(makeEvent);
        await this.approvals.waits.look(); // The erasure has ended the approvals of its rows.
        return appended;
      },
      scrub: (rewrite) => this.#scrub(rewrite),
    });
    this.#retention = retention && new Retention({ ...retention, ledger, eraser: this.eraser });
    this.failed.catch(() => this.#endErasing());
  }

  /** The policy that decides now. */
  get policy(): ActivePolicy {
    return this.#sequencer.active.policy;
  }

  /** True if nothing is waiting, nothing is being decided, and no event is on its way. */
  get isIdle(): boolean {
    return this.#sequencer.batcher.isIdle && this.senders?.isBusy !== true;
  }

  /**
   * Decides a call.
   *
   * @returns the body of the answer, made after the receipt is on disk, or a refusal. It never settles after a fault.
   */
  async check(request: CheckRequest, context: RequestContext): Promise<Result<string, Refusal>> {
    const { keyName, keyKind, unreadFor, digest, timings = beginTimings(), onAnswer } = context;
    const { sessionId } = request;
    const caller = { keyName, keyKind, sessionId, unreadFor };
    const decided = await this.#sequencer.submit({ request, caller, context, timings });
    if (!decided.ok) return decided;
    if ("body" in decided.value) return good(decided.value.body);
    const { decision, answered, mode, receipt, tool, judgement, stop } = decided.value;
    const body = answerBody(decided.value, digest);
    timings.answer = performance.now();
    const { verdict, rule } = decision;
    const toolName = tool ?? request.toolName;
    const routed = tool !== null;
    const check = { verdict, answered, mode, toolName, routed, rule, seq: receipt.seq, sessionId };
    this.#options.observer?.answered(check, timings);
    const how = stop === undefined ? judgement?.how : "stopped";
    if (how !== undefined) this.#options.observer?.asked(how);
    onAnswer?.(check, timings);
    return good(body);
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
  ): Promise<Result<Reloaded, Refusal>> {
    return this.#put({ ...wanted, mayWeaken: wanted.setting === undefined }, by);
  }

  /** Appends a row for an administrative event that does not change the policy. It is urgent: it may be a stop. */
  async appendAdminEvent(makeEvent: MakeAdminEvent): Promise<Result<Durable<Receipt>, Refusal>> {
    let found: Result<Durable<Receipt>, Refusal> | undefined;
    const record = async ({ transaction, at }: TimedTransaction): Promise<void> => {
      const act = await makeEvent(transaction, at);
      if (!act.ok) {
        found = act;
        return transaction.abort();
      }
      const { contract, mode } = this.policy;
      const events = [...(act.value.first ?? []), act.value];
      const changed = events.flatMap((event) => transaction.change({ ...event, at, contract, mode }));
      found = good((await transaction.commit()).at(-1) as Durable<Receipt>);
      this.approvals.changed(changed);
    };
    const done = await this.#sequencer.batcher.exclusive(record, { isUrgent: true });
    return done.ok ? (found as NonNullable<typeof found>) : done;
  }

  /** The stops in force, including those of the root. */
  async stops(): Promise<Result<readonly Stop[], Refusal>> {
    const followed = this.#options.rootStops === undefined ? good(undefined) : await this.passHead();
    return followed.ok ? good((await this.ledger.standing.now()).stops.active) : followed;
  }

  /** Waits until every batch that began before has ended. The next one follows the root's stops. */
  passHead(anyClock = false): Promise<Result<void, Refusal>> {
    return this.#sequencer.batcher.exclusive(({ transaction }) => transaction.abort(), { anyClock });
  }

  async #scrub(rewrite: boolean): Promise<Scrubbed> {
    let left: Scrubbed = "later";
    const scrub = async ({ transaction }: TimedTransaction): Promise<void> => {
      await transaction.abort();
      left = await this.#options.ledger.scrub(rewrite);
    };
    await this.#sequencer.batcher.exclusive(scrub, { anyClock: true });
    return left;
  }

  async #endErasing(): Promise<void> {
    this.approvals.waits.close();
    this.eraser.close();
    await this.senders?.end();
    this.events.close();
    await this.#retention?.stop();
  }

  /**
   * Makes the gate follow its ledger before the first check. On a shared ledger the contract in force stays, so a
   * replica with older files changes nothing for the others. A mode that this start sets applies to all gates, but it
   * weakens a shared ledger only if the operator accepts that.
   *
   * @returns the policy that was put in force; undefined if nothing changed
   */
  async begin(): Promise<Result<Reloaded | undefined, Refusal>> {
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
    const isNothing = own === undefined && (told ?? this.policy.mode) === this.policy.mode;
    const wanted = { policySet: own, mode: told, setting, mayWeaken, yields };
    const put = isNothing ? good(undefined) : await this.#put(wanted, "start", true);
    if (put.ok) for (const work of [this.#retention, this.senders]) work?.start();
    return put;
  }

  get #inForceHere(): { readonly mode: Mode; readonly tenant: string | null } {
    return { mode: this.policy.mode, tenant: this.#options.tenant ?? null };
  }

  /** Records that another key signs heads since this start. Both keys sign the head with this row. */
  async #recordSigner(): Promise<Result<void, Refusal>> {
    const change = this.ledger.signerChange;
    if (change === undefined) return good(undefined);
    const { to } = change;
    const prepared = await this.#prepare(this.policy.policySet); // The row names a contract, so the contract's text is stored first.
    if (!prepared.ok) return prepared;
    const sign = async ({ transaction, at }: TimedTransaction): Promise<void> => {
      if (transaction.store.signer === to) return transaction.abort();
      const { contract, mode } = this.policy;
      transaction.change({ ...signerEvent(change, "start"), at, contract, mode });
      await transaction.commit(undefined, to);
    };
    return this.#sequencer.batcher.exclusive(sign, { anyClock: true });
  }

  /**
   * Puts a policy in force. A contract or mode that is not given stays as it is in the transaction, because another
   * gate may have changed it.
   */
  async #put(wanted: WantedPolicy, by: string, anyClock = false): Promise<Result<Reloaded, Refusal>> {
    const { ledger } = this.#options;
    const prepared = await this.#prepare(wanted.policySet ?? this.policy.policySet);
    if (!prepared.ok) return prepared;
    const ahead = prepared.value;
    let outcome: Result<Reloaded, Refusal> | undefined;
    const ended: Approval[] = [];
    const put = async ({ transaction, at }: TimedTransaction): Promise<void> => {
      const before = transaction.store.inForce ?? this.policy;
      const own = wanted.yields === true && transaction.store.inForce !== undefined ? undefined : wanted.policySet;
      const next = activePolicy(own ?? this.policy.policySet, wanted.mode ?? this.policy.mode);
      const weaker = weakerRefusal(transaction.store, wanted, this.#inForceHere, by);
      if (weaker !== undefined) {
        outcome = bad(weaker);
        return transaction.abort();
      }
      const lostThrough = await freshLoss(ledger, transaction);
      const folded = await alignCounters(next.policySet, ledger, transaction, { ahead, lostThrough });
      const changed = !agrees(before, next);
      if (changed) {
        ended.push(...(await completeStops(transaction, at, this.policy, next.policySet)));
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
      this.approvals.changed(ended);
      outcome = good({ changed, before, now: next, folded, receipt });
    };
    const done = await this.#sequencer.batcher.exclusive(put, { anyClock });
    return done.ok ? (outcome as NonNullable<typeof outcome>) : done;
  }

  /**
   * Does the work that needs no transaction, while checks go on. An unreachable database is a refusal, as in a
   * transaction.
   */
  async #prepare(policySet: PolicySet): Promise<Result<ReadonlyMap<string, Progress>, Refusal>> {
    try {
      await this.#options.ledger.keepContract(policySet.text);
      return good(await foldAhead(policySet, this.#options.ledger));
    } catch (error) {
      if (error instanceof NotKept) return bad(unavailable(error));
      throw error;
    }
  }

  /** Returns true if a check can be answered now: there is space for a receipt, and the clock is right. */
  async isServing(): Promise<boolean> {
    const { isShared, head } = this.ledger;
    return (isShared || this.#options.clock.read(head.at).ok) && (await this.ledger.hasRoom());
  }

  /**
   * Returns why no check should be sent here now, in a few words; undefined if a check would be answered and its
   * receipt stored. If only the pin is behind, checks are still answered, and the caller may choose another gate.
   */
  async unready(): Promise<string | undefined> {
    const refusal = this.admission.refusalFor("", 0);
    if (refusal?.code === "stopping") return "the gate is stopping";
    if (refusal !== undefined) return "the queue is full";
    if (this.#sequencer.active.isSuperseded) return "a later version of the gate serves this ledger";
    const time = this.#options.clock.read(this.ledger.head.at);
    if (!time.ok) return time.problem;
    return (await this.ledger.hasRoom()) ? pinTrails(this.ledger.pin?.reading) : "the ledger cannot take a receipt";
  }

  /** The state of each anchor of the ledger, for metrics: the head pin first. */
  get anchorReadings(): readonly AnchorReading[] {
    const { head, pin } = this.ledger;
    return [...(pin === undefined ? [] : [pinReading(pin.reading, head.seq)]), ...(this.anchors?.readings ?? [])];
  }

  /**
   * Verifies the chain and compares it with all anchors. One verification runs at a time; calls that come meanwhile get
   * the result of the next.
   *
   * @param turns the walk takes each slice in one of these; by default it does not pause
   */
  verify(turns?: Turns): Promise<AnchoredCheck> {
    this.#nextWalk ??= this.#walk.then(() => {
      this.#nextWalk = undefined;
      const walk = this.ledger
        .verify(turns && ((slice) => turns.run(slice)))
        .then((check) => compareWithAnchors(check, this.anchors));
      this.#walk = walk.catch(() => undefined);
      return walk;
    });
    return this.#nextWalk;
  }
  #walk: Promise<unknown> = Promise.resolve();
  #nextWalk: Promise<AnchoredCheck> | undefined;

  /** Takes no more checks, and answers the checks that wait. */
  async drain(): Promise<void> {
    const drained = this.#sequencer.batcher.drain();
    await this.#endErasing();
    await drained;
  }
}
