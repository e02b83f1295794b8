import type { ContractInForce } from "../contract/mod.ts";
import {
  NotKept,
  type Change,
  type Durable,
  type Erasure,
  type InForce,
  type Ledger,
  type Receipt,
  type Scrubbed,
  type Tile,
  type Turn,
} from "../ledger/mod.ts";
import { bad, good, type Canonical, type CheckRequest, type Mode, type Refusal, type Result } from "../wire/mod.ts";
import { holdAgainst, type AnchoredCheck, type Anchors } from "./anchors.ts";
import { answerBody, answered } from "./answer.ts";
import type { Clock } from "./clock.ts";
import { keptContracts } from "./contracts.ts";
import { alignCounters, foldAhead, type Folded, type Progress } from "./counters.ts";
import { Eraser, type Erased } from "./erasure/eraser.ts";
import type { EraseRequest } from "./erasure/request.ts";
import { Retention, type RetentionOptions } from "./erasure/retention.ts";
import { prepareCall, Sequencer, unavailable, type SequencerOptions } from "./sequencer.ts";
import { signerAct } from "./signer-act.ts";
import { agrees, standingOf, type Standing } from "./standing.ts";
import { beginCourse, type AnsweredCheck, type Course } from "./telemetry/watch.ts";

export interface GateOptions extends Pick<SequencerOptions, "budget" | "onDefect" | "watch"> {
  readonly force: ContractInForce;
  readonly mode: Mode;
  readonly ledger: Ledger;
  /** Who anchors the ledger outside. */
  readonly anchors?: Anchors | undefined;
  readonly clock: Clock;
  /** On a ledger that gates share: put contract and mode in force though others are, as an act of this start. */
  readonly acceptChange?: boolean;
  /** Evidence is erased by its age. */
  readonly retention?: Omit<RetentionOptions, "eraser" | "ledger"> | undefined;
  /** Called when another gate on the same ledger has put something else in force, and this one has taken it up. */
  readonly onFollow?: (standing: Standing) => void;
}

/** Who asks, and what came over the wire beside the request itself. */
export interface Asking {
  readonly keyName: string;
  /** The size of the body. */
  readonly bytes: number;
  /** SHA-256 of the body received, in hex. */
  readonly digest: string;
  /** When the check began; now, where it is not given. */
  readonly course?: Course;
  /** Called when the answer is made. */
  readonly onAnswer?: ((check: AnsweredCheck, course: Course) => void) | undefined;
}

/** A person's act on a gate: who, what in one word, what exactly, and in one sentence. */
export interface Act {
  readonly by: string;
  readonly act: string;
  readonly body: Canonical;
  readonly reason: string;
  /** What it erases, of rows before its own; the body says the same. */
  readonly erases?: Erasure | undefined;
}

/** What a reload came to. */
export interface Reloaded {
  /** False when that very contract and mode were in force already: no row was written. */
  readonly changed: boolean;
  readonly before: InForce;
  readonly now: InForce;
  /** Counters that begin to be kept. */
  readonly folded: readonly Folded[];
  readonly receipt: Receipt | undefined;
}

/**
 * Opens a gate over a ledger: counters are brought in line before anything is decided.
 *
 * @returns the gate and what was folded, or why nothing can be decided now
 */
export async function openGate(
  options: GateOptions,
): Promise<Result<{ readonly gate: Gate; readonly folded: readonly Folded[] }, Refusal>> {
  const gate = new Gate(options);
  const begun = await gate.begin(options.acceptChange === true);
  if (!begun.ok) return begun;
  gate.retain();
  return good({ gate, folded: begun.value });
}

/** One gate: what is in force, and a ledger. It answers the question, and shows what it wrote. */
export class Gate {
  readonly #options: GateOptions;
  readonly #ledger: Ledger;
  readonly #sequencer: Sequencer;
  readonly #eraser: Eraser;
  readonly #retention: Retention | undefined;
  #standing: Standing;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#ledger = options.ledger;
    this.#standing = standingOf(options.force, options.mode);
    this.#sequencer = new Sequencer({
      ...options,
      standing: () => this.#standing,
      follow: (inForce) => this.#follow(inForce),
    });
    const { ledger, retention } = options;
    this.#eraser = new Eraser({
      ledger,
      enact: (actOf) => this.enact(actOf),
      scrub: (rewrite) => this.#scrub(rewrite),
    });
    this.#retention = retention && new Retention({ ...retention, ledger, eraser: this.#eraser });
    this.#sequencer.failed.catch(() => this.#endErasing());
  }

  /** What it decides by now. */
  get standing(): Standing {
    return this.#standing;
  }

  /** Rejects when the gate must answer nothing more. */
  get failed(): Promise<never> {
    return this.#sequencer.failed;
  }

  /** Is nothing waiting, and nothing being decided? */
  get isIdle(): boolean {
    return this.#sequencer.isIdle;
  }

  /**
   * May this call run?
   *
   * @returns the body of the answer, made after the receipt is on disk, or a refusal. A fault never settles it.
   */
  async check(request: CheckRequest, asking: Asking): Promise<Result<string, Refusal>> {
    const { keyName, bytes, digest, course = beginCourse(), onAnswer } = asking;
    const { sessionId, toolName } = request;
    const caller = { keyName, sessionId };
    const prepared = prepareCall(this.#standing, request, caller);
    course.prepare = performance.now();
    const recorded = await this.#sequencer.submit({ request, caller, prepared, bytes, course });
    if (!recorded.ok) return recorded;
    const { decision, mode, receipt, routed } = recorded.value;
    const answer = answerBody(decision, receipt, mode, digest);
    course.answer = performance.now();
    const { verdict, rule } = decision;
    const check = {
      verdict,
      answered: answered(decision, mode),
      mode,
      toolName,
      routed,
      rule,
      seq: receipt.seq,
      sessionId,
    };
    this.#options.watch?.answered(check, course);
    onAnswer?.(check, course);
    return good(answer);
  }

  /**
   * Puts a contract and a mode in force, between two batches, with a row that says who did it. Counters keep their
   * history: a definition that is new is folded from the receipts first, beside the checks that go on.
   */
  reload(
    next: { readonly force: ContractInForce; readonly mode: Mode },
    by: string,
  ): Promise<Result<Reloaded, Refusal>> {
    return this.#put(standingOf(next.force, next.mode), by);
  }

  /** Appends a row for a person's act that changes nothing of what is in force. `admit` sees the turn first. */
  async enact(actOf: (turn: Turn) => Promise<Result<Act, Refusal>>): Promise<Result<Durable<Receipt>, Refusal>> {
    let found: Result<Durable<Receipt>, Refusal> | undefined;
    const done = await this.#sequencer.exclusively(async (turn, at) => {
      const act = await actOf(turn);
      if (!act.ok) {
        found = act;
        return turn.abort();
      }
      const { contract, mode } = this.#standing;
      turn.change({ ...act.value, at, contract, mode });
      const [receipt] = await turn.commit();
      found = good(receipt as Durable<Receipt>);
    });
    return done.ok ? (found as NonNullable<typeof found>) : done;
  }

  /** Erases parts of receipts, between batches; see docs/erasure.md. */
  erase(request: EraseRequest, by: string): Promise<Result<Erased, Refusal>> {
    return this.#eraser.erase(request, by);
  }

  /** Erases evidence by its age from now on, if it is to. */
  retain(): void {
    this.#retention?.start();
  }

  async #scrub(rewrite: boolean): Promise<Scrubbed> {
    let left: Scrubbed = "later";
    await this.#sequencer.exclusively(async (turn) => {
      await turn.abort();
      left = await this.#ledger.scrub(rewrite);
    }, true);
    return left;
  }

  async #endErasing(): Promise<void> {
    this.#eraser.close();
    await this.#retention?.stop();
  }

  /** Who anchors the ledger outside; undefined where nobody does. */
  get anchors(): Anchors | undefined {
    return this.#options.anchors;
  }

  /** The head that was signed last: a C2SP checkpoint. */
  checkpoint(): Promise<string> {
    return this.#ledger.checkpoint();
  }

  /** A tile of the tree, or a bundle of its leaves; undefined where the signed head has none. */
  tile(tile: Tile): Promise<Buffer | undefined> {
    return this.#ledger.tile(tile);
  }

  /** What people did since a row, oldest first. */
  changes(after: number): Promise<readonly Change[]> {
    return this.#ledger.changes(after);
  }

  /**
   * Brings ledger and gate in line at a start. A shared ledger goes on under what is in force there, so that a replica
   * that comes up with older files changes nothing for the others.
   */
  async begin(acceptChange: boolean): Promise<Result<readonly Folded[], Refusal>> {
    const own = this.#standing;
    let isFollowing = false;
    const look = (turn: Turn): Promise<void> => {
      isFollowing = turn.inForce !== undefined;
      return turn.abort();
    };
    const looked = await this.#sequencer.exclusively(look, true);
    if (!looked.ok) return looked;
    const recorded = await this.#recordSigner();
    if (!recorded.ok) return recorded;
    if (isFollowing && !acceptChange) return good([]);
    const put = await this.#put(own, "start", true);
    return put.ok ? good(put.value.folded) : put;
  }

  /** The key that signs heads is another since this start: the row that says so is under both signatures. */
  async #recordSigner(): Promise<Result<void, Refusal>> {
    const change = this.#ledger.signerChange;
    if (change === undefined) return good(undefined);
    const { to } = change;
    const prepared = await this.#prepare(this.#standing); // The row names a contract, whose text must be there before it.
    if (!prepared.ok) return prepared;
    return this.#sequencer.exclusively(async (turn, at) => {
      if (turn.signer === to) return turn.abort();
      const { contract, mode } = this.#standing;
      turn.change({ ...signerAct(change, "start"), at, contract, mode });
      await turn.commit(undefined, to);
    }, true);
  }

  async #put(next: Standing, by: string, anyClock = false): Promise<Result<Reloaded, Refusal>> {
    const ledger = this.#ledger;
    const prepared = await this.#prepare(next);
    if (!prepared.ok) return prepared;
    const ahead = prepared.value;
    let reloaded: Reloaded | undefined;
    const put = async (turn: Turn, at: number): Promise<void> => {
      const before = turn.inForce ?? this.#standing;
      const changed = !agrees(before, next);
      const folded = await alignCounters(next.force, ledger, turn, ahead);
      if (changed) {
        const body = { before: shownInForce(before), now: shownInForce(next) };
        turn.change({ at, by, act: "reload", body, reason: reloadReason(before, next, by), ...next });
      }
      const [receipt] = await turn.commit(next);
      this.#standing = next;
      reloaded = { changed, before, now: next, folded, receipt };
    };
    const done = await this.#sequencer.exclusively(put, anyClock);
    return done.ok ? good(reloaded as Reloaded) : done;
  }

  /** What needs no turn, beside the checks that go on. A database that is away is no fault, here as in a turn. */
  async #prepare({ force }: Standing): Promise<Result<ReadonlyMap<string, Progress>, Refusal>> {
    try {
      await this.#ledger.keepContract(force.text);
      return good(await foldAhead(force, this.#ledger));
    } catch (error) {
      if (error instanceof NotKept) return bad(unavailable(error));
      throw error;
    }
  }

  /** Takes up what another gate has put in force: its text is in the ledger, under the digest that the ledger names. */
  async #follow(inForce: InForce): Promise<void> {
    const { contract, mode } = inForce;
    const force = await keptContracts(this.#ledger, contract);
    if (force === undefined) throw new Error(`the contract ${contract} that is in force cannot be made again`);
    this.#standing = standingOf(force, mode as Mode);
    this.#options.onFollow?.(this.#standing);
  }

  /** Why a check of this key would be refused now, from what its headers say; undefined where it can be tried. */
  refusalFor(keyName: string, bytes: number): Refusal | undefined {
    return this.#sequencer.refusalFor(keyName, bytes);
  }

  /** Can a check be answered now: is there room for a receipt, and is the clock right? */
  async isServing(): Promise<boolean> {
    const { isShared, head } = this.#ledger;
    return (isShared || this.#options.clock.read(head.at).ok) && (await this.#ledger.hasRoom());
  }

  /** Why a check that comes now would be refused, in a few words; undefined where it would be answered. */
  async unready(): Promise<string | undefined> {
    const refusal = this.#sequencer.refusalFor("", 0);
    if (refusal?.code === "stopping") return "the gate is stopping";
    if (refusal !== undefined) return "the queue is full";
    if (this.#sequencer.isSuperseded) return "a later gate serves this ledger";
    const time = this.#options.clock.read(this.#ledger.head.at);
    if (!time.ok) return time.problem;
    return (await this.#ledger.hasRoom()) ? undefined : "the ledger cannot take a receipt";
  }

  /** What waits for its turn: calls, and their bodies together. */
  get queued(): { readonly calls: number; readonly bytes: number } {
    return this.#sequencer.queued;
  }

  /** The number of the ledger's last row. */
  get rows(): number {
    return this.#ledger.head.seq;
  }

  /** The text of what is or was in force, by its SHA-256 in hex. */
  async rules(digest: string): Promise<string | undefined> {
    const { contract, force } = this.#standing;
    return digest === contract ? force.text : this.#ledger.contractText(digest);
  }

  receipts(query: Parameters<Ledger["receipts"]>[0]): ReturnType<Ledger["receipts"]> {
    return this.#ledger.receipts(query);
  }

  /**
   * Walks the chain and holds it against all who anchor it. One walk at a time: who asks while one is under way gets the
   * result of the next.
   */
  verify(): Promise<AnchoredCheck> {
    this.#nextWalk ??= this.#walk.then(() => {
      this.#nextWalk = undefined;
      const walk = this.#ledger.verify().then((check) => holdAgainst(check, this.#options.anchors));
      this.#walk = walk.catch(() => undefined);
      return walk;
    });
    return this.#nextWalk;
  }
  #walk: Promise<unknown> = Promise.resolve();
  #nextWalk: Promise<AnchoredCheck> | undefined;

  /** Takes no more checks and answers those that wait. */
  async drain(): Promise<void> {
    const drained = this.#sequencer.drain();
    await this.#endErasing();
    await drained;
  }
}

function shownInForce({ contract, mode }: InForce): Canonical {
  return { contract: `sha256:${contract}`, mode };
}

function reloadReason(before: InForce, now: InForce, by: string): string {
  const parts = [
    before.mode === now.mode ? "" : `mode ${before.mode} to ${now.mode}`,
    before.contract === now.contract ? "" : `contract ${before.contract.slice(0, 12)} to ${now.contract.slice(0, 12)}`,
  ];
  return `Svc: ${parts.filter(Boolean).join(", ")}, put in force by ${by}`;
}
