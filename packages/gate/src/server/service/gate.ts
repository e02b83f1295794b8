import type { MakeAdminEvent, AdminEvents } from "../policy/admin-event.ts";
import type { Ledger, ScrubResult } from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import { good, type CheckRequest, type KeyKind, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { compareWithAnchors, type AnchoredCheck } from "../anchoring/check.ts";
import type { AnchorReading, Anchors } from "../anchoring/anchors.ts";
import type { Approval, Stop } from "../../../../core/src/approvals/mod.ts";
import { nobody } from "../approvals/deciders.ts";
import { ApprovalDesk } from "../approvals/desk.ts";
import { askEveryMs } from "../approvals/waits.ts";
import { GrantDesk } from "../approvals/grant-desk.ts";
import { EventFeed } from "../events/feed.ts";
import type { Senders } from "../notify/notifier.ts";
import { OutcomeDesk } from "../outcomes/desk.ts";
import { answerBody } from "../core/answer.ts";
import type { FoldedCounter } from "./counters.ts";
import { PolicyChanges, type PolicyOptions, type ReloadResult } from "./policy-changes.ts";
import { Eraser } from "../erasure/eraser.ts";
import { Retention, type RetentionOptions } from "../erasure/retention.ts";
import { pinReading, pinTrails } from "../anchoring/pin-standing.ts";
import { exclusiveBy, type TimedTransaction } from "../policy/active-ledger.ts";
import type { Turns } from "../admission/turns.ts";
import type { Admission } from "../admission/batcher.ts";
import { Sequencer, type SequencerOptions } from "../core/sequencer.ts";
import { activePolicy, type ActivePolicy } from "../policy/active-policy.ts";
import { startTimings, type AnsweredCheck, type CheckTimings } from "../telemetry/observer.ts";

export interface GateOptions extends Omit<SequencerOptions, "onApprovals">, PolicyOptions {
  /** The ledger's anchors. */
  readonly anchors?: Anchors | undefined;
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
  /** By default they start now. */
  readonly timings?: CheckTimings;
  /** Says whether the key covers a tool, by the tool's own name. By default it covers all. */
  readonly allowsTool?: ((tool: string) => boolean) | undefined;
  /** Called when the answer is ready. */
  readonly onAnswer?: ((check: AnsweredCheck, timings: CheckTimings) => void) | undefined;
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
  const started = await gate.start();
  return started.ok ? good({ gate, folded: started.value?.folded ?? [] }) : started;
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
  /** Puts contracts and modes in force. */
  readonly policies: PolicyChanges;
  /** Where people decide this ledger's calls, and calls like them. */
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
    const onApprovals = (changed: readonly Approval[]): void => this.approvals.announceChanges(changed);
    this.#sequencer = new Sequencer({ ...options, onApprovals }, activePolicy(options.policySet, mode));
    const { batcher } = this.#sequencer;
    this.admission = batcher;
    this.failed = batcher.failed;
    const policy = (): ActivePolicy => this.policy;
    const exclusive = exclusiveBy((work) => batcher.exclusive(work));
    const deciders = options.deciders ?? nobody;
    const onChange = options.observer && ((approval: Approval) => options.observer?.countApproval(approval));
    this.approvals = new ApprovalDesk({ ledger, policy, exclusive, deciders, onChange });
    this.policies = new PolicyChanges(options, this.#sequencer, onApprovals);
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
    const { keyName, keyKind, unreadFor, digest, timings = startTimings(), onAnswer } = context;
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
    this.#options.observer?.countAnswer(check, timings);
    const how = stop === undefined ? judgement?.how : "stopped";
    if (how !== undefined) this.#options.observer?.countJudgement(how);
    onAnswer?.(check, timings);
    return good(body);
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
      this.approvals.announceChanges(changed);
    };
    const done = await this.#sequencer.batcher.exclusive(record, { isUrgent: true });
    return done.ok ? (found as NonNullable<typeof found>) : done;
  }

  /** The stops in force, including those of the root. */
  async stops(): Promise<Result<readonly Stop[], Refusal>> {
    const followed = this.#options.rootStops === undefined ? good(undefined) : await this.passHead();
    return followed.ok ? good((await this.ledger.standing.now()).stops.active) : followed;
  }

  /** Waits until every batch that started before has ended. The next one follows the root's stops. */
  passHead(anyClock = false): Promise<Result<void, Refusal>> {
    return this.#sequencer.batcher.exclusive(({ transaction }) => transaction.abort(), { anyClock });
  }

  async #scrub(rewrite: boolean): Promise<ScrubResult> {
    let left: ScrubResult = "later";
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
   * Puts this start's policy in force, and starts what runs beside the checks.
   *
   * @returns the policy that was put in force; undefined if nothing changed
   */
  async start(): Promise<Result<ReloadResult | undefined, Refusal>> {
    const put = await this.policies.start();
    if (put.ok) for (const work of [this.#retention, this.senders]) work?.start();
    return put;
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
