import {
  consult,
  decide,
  type Consultation,
  type Decision,
  type Lookup,
  type Move,
  type Prepared,
} from "../contract/mod.ts";
import {
  NotKept,
  type Batch,
  type CounterLookup,
  type CounterMove,
  type Durable,
  type Ledger,
  type Receipt,
} from "../ledger/mod.ts";
import { bad, good, limits, refuse, type Mode, type Refusal, type Result } from "../wire/mod.ts";
import { answered } from "./answer.ts";
import { countedOf, outcomeOf } from "./outcome.ts";
import type { Clock } from "./clock.ts";

/** A call before one contract, with what it asks of the ledger. */
interface Asked {
  readonly consultation: Consultation;
  readonly lookups: readonly CounterLookup[];
}

interface AskedCall {
  readonly force: Asked;
  readonly candidate: Asked | undefined;
}

/** What a call may cost the ledger: counters asked, and moved. */
function eventsOf({ consultation, lookups }: Asked): number {
  return lookups.length + consultation.prepared.moves.length;
}

/** What a decided and recorded call comes back as. */
export interface Recorded {
  readonly decision: Decision;
  readonly receipt: Durable<Receipt>;
}

/** A call to be decided. */
export interface Submission {
  readonly prepared: Prepared;
  /** The same call before the candidate, where there is one. */
  readonly candidate: Prepared | undefined;
  /** The size of its body: what it holds of memory while it waits. */
  readonly bytes: number;
}

interface Waiting extends Submission {
  readonly settle: (result: Result<Recorded, Refusal>) => void;
}

export interface SequencerOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly mode: Mode;
  /** SHA-256 in hex of the body of GET /rules. */
  readonly contract: string;
  /** The digest under which the ledger keeps a counter, by the counter's identity. */
  readonly counterDigests: ReadonlyMap<string, string>;
  /** Called for a decision in which something threw that is no evaluation error. */
  readonly onDefect: (decision: Decision) => void;
}

/**
 * Decides the calls of one ledger one after another, in batches: all that arrived while the batch before was being
 * committed are decided together and share one flush. It owns the queue and the ledger's turn.
 *
 * A failure of the ledger is a fault: `failed` rejects, nothing more is answered.
 */
export class Sequencer {
  readonly #options: SequencerOptions;
  /** Rejects with the fault that ended the sequencer; never resolves. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => undefined;
  #queue: Waiting[] = [];
  #queuedBytes = 0;
  #running = false;
  #stopping = false;
  #idle: (() => void)[] = [];

  constructor(options: SequencerOptions) {
    this.#options = options;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => undefined);
  }

  /** Has a call decided and recorded. Refuses before anything is decided when the queue is full or the gate stops. */
  submit(submission: Submission): Promise<Result<Recorded, Refusal>> {
    const { bytes } = submission;
    if (this.#stopping) return Promise.resolve(bad(refuse("stopping", "the gate is stopping; ask again in a moment")));
    if (this.#queue.length >= limits.queueCallsMax || this.#queuedBytes + bytes > limits.queueBytesMax) {
      return Promise.resolve(
        bad(
          refuse("queue-full", `${this.#queue.length} calls are waiting; nothing was decided, ask again in a moment`),
        ),
      );
    }
    return new Promise((settle) => {
      this.#queue.push({ ...submission, settle });
      this.#queuedBytes += bytes;
      if (this.#running) return;
      this.#running = true;
      setImmediate(() => this.#run().catch(this.#fail));
    });
  }

  /** Takes no more calls, and resolves when those that wait are answered. */
  async drain(): Promise<void> {
    this.#stopping = true;
    if (this.#running) await Promise.race([this.failed, new Promise<void>((resolve) => this.#idle.push(resolve))]);
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) await this.#decideNext();
    this.#running = false;
    for (const idle of this.#idle.splice(0)) idle();
  }

  #take(calls: number): readonly Waiting[] {
    const taken = this.#queue.splice(0, calls);
    for (const { bytes } of taken) this.#queuedBytes -= bytes;
    return taken;
  }

  /** The calls that wait longest, as many as share a batch, each with what it asks. */
  #askNext(at: number): readonly AskedCall[] {
    const asked: AskedCall[] = [];
    let events = 0;
    for (const { prepared, candidate } of this.#queue.slice(0, limits.batchCallsMax)) {
      const next = {
        force: this.#ask(consult(prepared, at)),
        candidate: candidate && this.#ask(consult(candidate, at)),
      };
      events += eventsOf(next.force) + (next.candidate === undefined ? 0 : eventsOf(next.candidate));
      if (asked.length > 0 && events > limits.batchEventsMax) break;
      asked.push(next);
    }
    return asked;
  }

  async #decideNext(): Promise<void> {
    const { ledger, clock, mode, contract } = this.#options;
    const time = clock.read(ledger.head.at);
    if (!time.ok) {
      const refusal = refuse("clock-unreliable", `${time.problem}: no check is decided until it is right`);
      return refuseAll(this.#take(limits.batchCallsMax), refusal);
    }
    const at = time.value;
    const asked = this.#askNext(at);
    const calls = this.#take(asked.length);
    const batch = await ledger.begin(
      asked.flatMap(({ force, candidate }) => (candidate ? [...force.lookups, ...candidate.lookups] : force.lookups)),
    );
    const decisions = asked.map(({ force, candidate }) => {
      const decision = this.#decide(force, batch);
      const other = candidate && this.#decide(candidate, batch);
      const answer = answered(decision, mode);
      const { request, caller, plan } = force.consultation.prepared;
      const outcome = { verdict: decision.verdict, answered: answer };
      const moves = countedOf(force.consultation.prepared, candidate?.consultation.prepared, outcome);
      batch.append(
        {
          at,
          keyName: caller.keyName,
          mode,
          toolName: request.toolName,
          routed: plan !== undefined,
          sessionId: request.sessionId,
          inputText: request.inputText,
          platformText: request.platformText,
          verdict: decision.verdict,
          answered: answer,
          reason: decision.reason,
          rule: decision.rule,
          contract,
          outcome: outcomeOf(decision, other),
        },
        moves.length === 0 ? noMoves : moves.map((move) => this.#move(move)),
      );
      return decision;
    });
    try {
      const receipts = await batch.commit();
      for (const [place, { settle }] of calls.entries()) {
        settle(good({ decision: decisions[place] as Decision, receipt: receipts[place] as Durable<Receipt> }));
      }
    } catch (error) {
      if (!(error instanceof NotKept)) throw error;
      refuseAll(
        calls,
        refuse(
          "ledger-unavailable",
          "the ledger has no room for a receipt, so nothing is answered; free space on its disk",
        ),
      );
    }
  }

  #ask(consultation: Consultation): Asked {
    return { consultation, lookups: consultation.lookups.map((lookup) => this.#lookup(lookup)) };
  }

  #decide({ consultation, lookups }: Asked, batch: Batch): Decision {
    const decision = decide(
      consultation,
      lookups.map((lookup) => batch.value(lookup)),
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
    const digest = this.#options.counterDigests.get(identity);
    if (digest === undefined) throw new Error(`the ledger keeps no counter ${name}`);
    return digest;
  }
}

const noMoves: readonly CounterMove[] = [];

function refuseAll(calls: readonly Waiting[], refusal: Refusal): void {
  for (const { settle } of calls) settle(bad(refusal));
}
