import {
  consult,
  count,
  decide,
  prepare,
  type Caller,
  type Consultation,
  type Decision,
  type Lookup,
  type Move,
  type Prepared,
} from "../../contract/mod.ts";
import {
  NotKept,
  type CounterLookup,
  type CounterMove,
  type InForce,
  type Ledger,
  type Turn,
} from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../ledger/entry/mod.ts";
import { bad, good, limits, refuse, type CheckRequest, type Mode, type Refusal, type Result } from "../../wire/mod.ts";
import { answered } from "./answer.ts";
import type { Clock } from "./clock.ts";
import { Budget, Line, type Batch } from "../admission/line.ts";
import { outcomeOf } from "./outcome.ts";
import { RefusedInputs, type KeptCall, type RefusedCall } from "./refused-inputs.ts";
import { sensitiveOf } from "./sensitive.ts";
import { agrees, isLater, type Standing } from "./standing.ts";
import type { Course, Watch } from "../telemetry/watch.ts";

/** A call as what is in force sees it, before any counter is read. */
export interface PreparedCall {
  readonly standing: Standing;
  readonly force: Prepared;
}

export function prepareCall(standing: Standing, request: CheckRequest, caller: Caller): PreparedCall {
  return { standing, force: prepare(standing.force, request, caller) };
}

/** A call before what is in force, with what it asks of the ledger. */
interface Asked {
  readonly consultation: Consultation;
  readonly lookups: readonly CounterLookup[];
}

/** What a call may cost the ledger: counters asked, and moved. */
function eventsOf({ consultation, lookups }: Asked): number {
  return lookups.length + consultation.prepared.moves.length;
}

/** What a decided and recorded call comes back as. */
export interface Recorded {
  readonly decision: Decision;
  readonly mode: Mode;
  /** Did a contract route the tool? */
  readonly routed: boolean;
  readonly receipt: Durable<Receipt>;
}

/** A call to be decided. */
export interface Submission {
  readonly request: CheckRequest;
  readonly caller: Caller;
  readonly prepared: PreparedCall;
  /** The size of its body: what it holds of memory while it waits. */
  readonly bytes: number;
  readonly course: Course;
}

interface Waiting extends Submission {
  readonly settle: (result: Result<Recorded, Refusal>) => void;
}

/** Work that has the ledger to itself; it ends the turn. */
type Exclusive = (turn: Turn, at: number) => Promise<void>;

interface WaitingWork {
  readonly work: Exclusive;
  readonly anyClock: boolean;
  readonly settle: (result: Result<void, Refusal>) => void;
  readonly reject: (fault: unknown) => void;
}

export interface SequencerOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** What decides now. */
  readonly standing: () => Standing;
  /** Takes up what another gate on the same ledger has put in force. Called outside a turn; what it throws is a fault. */
  readonly follow: (inForce: InForce) => Promise<void>;
  /** Called for a decision in which something threw that is no evaluation error. */
  readonly onDefect: (decision: Decision) => void;
  readonly watch?: Watch | undefined;
  /** What the bodies of waiting calls may hold, shared with the other ledgers of the process; one of its own by default. */
  readonly budget?: Budget | undefined;
  /** What the ledger keeps of a call that was refused before any rule was evaluated; by default the limits of a new process. */
  readonly keepRefused?: ((call: RefusedCall) => KeptCall) | undefined;
}

/**
 * Decides the calls of one ledger one after another, in batches: all that arrived while the batch before was being
 * committed are decided together and share one flush. It owns the line of waiting calls and the ledger's turn.
 *
 * A failure of the ledger is a fault: `failed` rejects, nothing more is answered.
 */
export class Sequencer {
  readonly #options: SequencerOptions;
  /** Rejects with the fault that ended the sequencer; never resolves. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => undefined;
  readonly #line: Line<Waiting>;
  readonly #keepRefused: (call: RefusedCall) => KeptCall;
  #works: WaitingWork[] = [];
  #running = false;
  #hasFailed = false;
  #stopping = false;
  #isSuperseded = false;
  #idle: (() => void)[] = [];

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.#line = new Line(options.budget ?? new Budget());
    const refused = new RefusedInputs();
    this.#keepRefused = options.keepRefused ?? ((call) => refused.kept(call));
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch((fault: unknown) => this.#abandon(fault));
  }

  /** Has a call decided and recorded. Refuses before anything is decided when there is no room in the line or the gate stops. */
  submit(submission: Submission): Promise<Result<Recorded, Refusal>> {
    const refusal = this.refusalFor(submission.caller.keyName, submission.bytes);
    if (refusal !== undefined) return Promise.resolve(bad(refusal));
    return new Promise((settle) => {
      this.#line.push({ ...submission, settle });
      this.#wake();
    });
  }

  /**
   * Has work done between two batches. A work that throws anything but `NotKept` is a fault.
   *
   * @throws the fault that ended the sequencer: who has work done must not wait for ever, as callers of checks do
   * @param anyClock a clock that cannot be trusted is no matter to it
   */
  exclusively(work: Exclusive, anyClock = false): Promise<Result<void, Refusal>> {
    if (this.#stopping) return Promise.resolve(bad(stopping));
    if (this.#hasFailed) return this.failed;
    return new Promise((settle, reject) => {
      this.#works.push({ work, anyClock, settle, reject });
      this.#wake();
    });
  }

  /** Why a key's call of that many bytes cannot wait for its turn now; undefined where it can. */
  refusalFor(keyName: string, bytes: number): Refusal | undefined {
    if (this.#stopping) return stopping;
    if (this.#line.hasRoom(keyName, bytes)) return undefined;
    return refuse("queue-full", `${this.#line.waiting} calls are waiting; nothing was decided, ask again in a moment`);
  }

  /** What waits for its turn: calls, and their bodies together. */
  get queued(): { readonly calls: number; readonly bytes: number } {
    return { calls: this.#line.waiting, bytes: this.#line.bytes };
  }

  /** A later gate had the ledger when this one asked last. */
  get isSuperseded(): boolean {
    return this.#isSuperseded;
  }

  /** Is nothing waiting, and nothing being decided? */
  get isIdle(): boolean {
    return !this.#running;
  }

  /** Takes no more calls, and resolves when those that wait are answered. */
  async drain(): Promise<void> {
    this.#stopping = true;
    if (this.#running) await Promise.race([this.failed, new Promise<void>((resolve) => this.#idle.push(resolve))]);
  }

  #wake(): void {
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => this.#run().catch(this.#fail));
  }

  async #run(): Promise<void> {
    while (this.#works.length + this.#line.waiting > 0) {
      const [next] = this.#works;
      if (next === undefined) await this.#decideNext();
      else {
        const done = await this.#inTurn(next.work, next.anyClock);
        this.#works.shift();
        next.settle(done);
      }
    }
    this.#running = false;
    for (const idle of this.#idle.splice(0)) idle();
  }

  #abandon(fault: unknown): void {
    this.#hasFailed = true;
    this.#line.abandon();
    for (const { reject } of this.#works.splice(0)) reject(fault);
  }

  async #decideNext(): Promise<void> {
    const taken: Batch<Waiting>[] = [];
    const done = await this.#inTurn((turn, at) => {
      const { batch, asked } = this.#takeNext(at);
      taken.push(batch);
      return this.#decideAll(turn, at, batch.calls, asked);
    });
    const [batch = this.#line.take(limits.batchCallsMax)] = taken;
    this.#line.settled(batch);
    if (done.ok) return;
    for (const { settle } of batch.calls) settle(done);
  }

  /** A turn in which the clock is right and what decides is what is in force on the ledger. */
  async #inTurn(work: Exclusive, anyClock = false): Promise<Result<void, Refusal>> {
    const { ledger, clock, standing, follow } = this.#options;
    let turn: Turn | undefined;
    try {
      for (;;) {
        turn = await ledger.begin();
        const time = clock.read(turn.head.at, turn.sharedTime);
        const { inForce } = turn;
        const isBehind = inForce !== undefined && !agrees(inForce, standing());
        const isSuperseded = inForce !== undefined && isLater(inForce.engine);
        this.#isSuperseded = isSuperseded;
        if ((time.ok || anyClock) && !isBehind && !isSuperseded) {
          await work(turn, time.ok ? time.value : turn.head.at);
          return good(undefined);
        }
        await turn.abort();
        if (!time.ok && !anyClock)
          return bad(refuse("clock-unreliable", `${time.problem}: no check is decided until it is right`));
        if (isSuperseded) {
          const sentence = `a later gate (${inForce.engine}) serves this ledger, so this one decides nothing more`;
          return bad(refuse("superseded", sentence));
        }
        if (inForce !== undefined) await follow(inForce);
      }
    } catch (error) {
      if (!(error instanceof NotKept)) throw error;
      await turn?.abort();
      return bad(unavailable(error));
    }
  }

  /** The next calls, as many as share a batch, each with what it asks. */
  #takeNext(at: number): { readonly batch: Batch<Waiting>; readonly asked: readonly Asked[] } {
    const standing = this.#options.standing();
    const asked: Asked[] = [];
    let events = 0;
    const batch = this.#line.take(limits.batchCallsMax, ({ prepared, request, caller }) => {
      const current = prepared.standing === standing ? prepared : prepareCall(standing, request, caller);
      const next = this.#ask(consult(current.force, at));
      events += eventsOf(next);
      if (asked.length > 0 && events > limits.batchEventsMax) return false;
      asked.push(next);
      return true;
    });
    return { batch, asked };
  }

  async #decideAll(turn: Turn, at: number, calls: readonly Waiting[], asked: readonly Asked[]): Promise<void> {
    const begun = performance.now();
    const { mode, contract, force: inForce } = this.#options.standing();
    await turn.look(asked.flatMap(({ lookups }) => lookups));
    const decisions = asked.map((each) => {
      const decision = this.#decide(each, turn);
      const answer = answered(decision, mode);
      const { prepared } = each.consultation;
      const { request, caller, plan, early } = prepared;
      const moves = count(prepared, { verdict: decision.verdict, answered: answer });
      const whole = {
        at,
        keyName: caller.keyName,
        inputText: request.inputText,
        sensitive: sensitiveOf(inForce, request, plan !== undefined),
      };
      const { inputText, sensitive } = early === undefined ? whole : this.#keepRefused(whole);
      turn.append(
        {
          at,
          keyName: caller.keyName,
          mode,
          toolName: request.toolName,
          routed: plan !== undefined,
          sessionId: request.sessionId,
          inputText,
          platformText: request.platformText,
          sensitive,
          verdict: decision.verdict,
          answered: answer,
          reason: decision.reason,
          rule: decision.rule,
          contract,
          outcome: outcomeOf(decision),
        },
        moves.length === 0 ? noMoves : moves.map((move) => this.#move(move)),
      );
      return decision;
    });
    const decided = performance.now();
    const receipts = await turn.commit(this.#takenOver(turn));
    const committed = performance.now();
    this.#options.watch?.flushed(calls.length, committed - decided);
    for (const [place, { settle, course }] of calls.entries()) {
      course.queue = begun;
      course.decide = decided;
      course.commit = committed;
      const routed = asked[place]?.consultation.prepared.plan !== undefined;
      const receipt = receipts[place] as Durable<Receipt>;
      settle(good({ decision: decisions[place] as Decision, mode, routed, receipt }));
    }
  }

  /** On a ledger that an earlier engine served, this one's first rows say that it serves it now. */
  #takenOver({ inForce }: Turn): InForce | undefined {
    const { engine } = this.#options.standing();
    return inForce === undefined || inForce.engine === engine ? undefined : { ...inForce, engine };
  }

  #ask(consultation: Consultation): Asked {
    return { consultation, lookups: consultation.lookups.map((lookup) => this.#lookup(lookup)) };
  }

  #decide({ consultation, lookups }: Asked, turn: Turn): Decision {
    const decision = decide(
      consultation,
      lookups.map((lookup) => turn.value(lookup)),
    );
    if (decision.defect !== undefined) this.#options.onDefect(decision);
    return decision;
  }

  #lookup({ counter, key, after }: Lookup): CounterLookup {
    return { counter: this.#digest(counter), key, after };
  }

  #move({ counter, key, amount }: Move): CounterMove {
    return { counter: this.#digest(counter), key, amount };
  }

  #digest({ identity, name }: Move["counter"]): string {
    const digest = this.#options.standing().counterDigests.get(identity);
    if (digest === undefined) throw new Error(`the ledger keeps no counter ${name}`);
    return digest;
  }
}

const stopping = refuse("stopping", "the gate is stopping; ask again in a moment");

/** What a caller is told of whom nothing was kept. */
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

const noMoves: readonly CounterMove[] = [];
