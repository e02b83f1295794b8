import { hash } from "node:crypto";
import { prepare, type ContractInForce } from "../contract/mod.ts";
import type { Ledger, LedgerCheck } from "../ledger/mod.ts";
import { good, type CheckRequest, type Mode, type Refusal, type Result } from "../wire/mod.ts";
import { answerBody } from "./answer.ts";
import type { Clock } from "./clock.ts";
import { Sequencer, type SequencerOptions } from "./sequencer.ts";

export interface GateOptions extends Omit<SequencerOptions, "contract"> {
  readonly force: ContractInForce;
}

/** Who asks, and what came over the wire beside the request itself. */
export interface Asking {
  readonly keyName: string;
  /** The size of the body. */
  readonly bytes: number;
  /** SHA-256 of the body received, in hex. */
  readonly digest: string;
}

/** One gate: a contract in force, a mode, a ledger. It answers the question, and shows what it wrote. */
export class Gate {
  readonly mode: Mode;
  /** The body of GET /rules, and its SHA-256 in hex: what `contract` on each receipt names. */
  readonly contractText: string;
  readonly contractDigest: string;
  readonly #force: ContractInForce;
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #sequencer: Sequencer;

  constructor(options: GateOptions) {
    this.mode = options.mode;
    this.contractText = options.force.text;
    this.contractDigest = hash("sha256", options.force.text, "hex");
    this.#force = options.force;
    this.#ledger = options.ledger;
    this.#clock = options.clock;
    this.#sequencer = new Sequencer({ ...options, contract: this.contractDigest });
  }

  /** Is a candidate decided beside the contract in force? */
  get hasCandidate(): boolean {
    return this.#force.candidate !== undefined;
  }

  /** Rejects when the gate must answer nothing more. */
  get failed(): Promise<never> {
    return this.#sequencer.failed;
  }

  /**
   * May this call run?
   *
   * @returns the body of the answer, made after the receipt is on disk, or a refusal. A fault never settles it.
   */
  async check(request: CheckRequest, asking: Asking): Promise<Result<string, Refusal>> {
    const caller = { keyName: asking.keyName, sessionId: request.sessionId };
    const { candidate } = this.#force;
    const recorded = await this.#sequencer.submit({
      prepared: prepare(this.#force, request, caller),
      candidate: candidate && prepare(candidate, request, caller),
      bytes: asking.bytes,
    });
    if (!recorded.ok) return recorded;
    const { decision, receipt } = recorded.value;
    return good(answerBody(decision, receipt, this.mode, asking.digest));
  }

  /** Can a check be answered now: is there room for a receipt, and is the clock right? */
  async isServing(): Promise<boolean> {
    return this.#clock.read(this.#ledger.head.at).ok && (await this.#ledger.hasRoom());
  }

  /** The text of what is or was in force, by its SHA-256 in hex. */
  async rules(digest: string): Promise<string | undefined> {
    return digest === this.contractDigest ? this.contractText : this.#ledger.contractText(digest);
  }

  receipts(query: Parameters<Ledger["receipts"]>[0]): ReturnType<Ledger["receipts"]> {
    return this.#ledger.receipts(query);
  }

  /** One walk at a time: who asks while one is under way gets the result of the next. */
  verify(): Promise<LedgerCheck> {
    this.#nextWalk ??= this.#walk.then(() => {
      this.#nextWalk = undefined;
      const walk = this.#ledger.verify();
      this.#walk = walk.catch(() => undefined);
      return walk;
    });
    return this.#nextWalk;
  }
  #walk: Promise<unknown> = Promise.resolve();
  #nextWalk: Promise<LedgerCheck> | undefined;

  /** Takes no more checks and answers those that wait. */
  drain(): Promise<void> {
    return this.#sequencer.drain();
  }
}
