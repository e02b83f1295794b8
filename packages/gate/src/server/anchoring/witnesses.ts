import type { Logger } from "pino";
import type { Divergence } from "../../ledger/mod.ts";
import type { Cosignatures } from "./cosignatures.ts";
import type { DeliveryPace } from "./head-publisher.ts";
import { readHead, type AnchoredLog, type Head } from "./head.ts";
import { isStatedLost } from "./observed.ts";
import type { Witness, WitnessPolicy } from "./policy.ts";
import { AnchorStatus } from "./anchor-status.ts";
import { urlText } from "./url.ts";
import { askWitness, type WitnessAnswer } from "./witness.ts";

export interface WitnessesOptions {
  readonly ledger: AnchoredLog;
  readonly policy: WitnessPolicy;
  readonly cosignatures: Cosignatures;
  readonly tenant: string | null;
  readonly log: Logger;
  /** The number of rows now. */
  readonly latest: () => number;
  readonly onFailure: (by: string) => void;
  readonly pace: DeliveryPace;
}

interface WitnessState {
  readonly witness: Witness;
  readonly status: AnchorStatus;
  /** The last size that the witness is known to have cosigned. */
  from: number;
  /** An unreachable witness gets no request before this time, by the monotonic clock. */
  notBefore: number;
  failures: number;
}

const askMs = 5000;

/** The witnesses of one ledger. They get requests at the same time, so that a quorum cosigns the same head. */
export class Witnesses {
  readonly #options: WitnessesOptions;
  readonly #askers: readonly WitnessState[];

  constructor(options: WitnessesOptions) {
    this.#options = options;
    const { policy } = options;
    this.#askers = policy.witnesses.flatMap((witness) => {
      const { name, url } = witness;
      if (url === undefined) return [];
      const status = new AnchorStatus({ ...options, by: `witness ${name}`, address: urlText(url) });
      return [{ witness, status, from: 0, notBefore: 0, failures: 0 }];
    });
  }

  get statuses(): readonly AnchorStatus[] {
    return this.#askers.map(({ status }) => status);
  }

  /**
   * Asks each reachable witness to cosign the current head.
   *
   * @returns milliseconds after which to ask an unreachable witness again
   */
  async ask(signal: AbortSignal): Promise<number | undefined> {
    const head = await readHead(this.#options.ledger);
    if (head.size === 0) return undefined;
    const now = performance.now();
    const due = this.#askers.filter(({ status, notBefore }) => notBefore <= now && !status.has(head));
    await Promise.all(due.map((asker) => this.#askOne(asker, head, signal)));
    const away = this.#askers.filter(({ failures }) => failures > 0).map(({ notBefore }) => notBefore);
    return away.length === 0 ? undefined : Math.max(0, Math.min(...away) - performance.now());
  }

  /**
   * Asks all witnesses before the gate serves.
   *
   * @returns heads that they have seen and that are not in the ledger
   */
  async askAtStart(signal: AbortSignal): Promise<readonly Divergence[]> {
    const head = await readHead(this.#options.ledger);
    const diverged = await Promise.all(
      this.#askers.map(async (asker): Promise<readonly Divergence[]> => {
        const answer = await this.#askOne(asker, head, signal);
        if (answer.kind !== "diverged") return [];
        return (await isStatedLost(this.#options.ledger, answer.divergence.head)) ? [] : [answer.divergence];
      }),
    );
    return diverged.flat();
  }

  async #askOne(asker: WitnessState, head: Head, signal: AbortSignal): Promise<WitnessAnswer> {
    const { ledger, policy } = this.#options;
    const { witness, from } = asker;
    try {
      const answer = await askWitness(witness, { log: ledger, policy, head, from, timeoutMs: askMs, signal });
      await this.#note(asker, answer);
      return answer;
    } catch (error) {
      // For example, the database cannot be reached, so nothing can be proven to the witness.
      const answer: WitnessAnswer = { kind: "failed", problem: (error as Error).message };
      await this.#note(asker, answer);
      return answer;
    }
  }

  async #note(asker: WitnessState, answer: WitnessAnswer): Promise<void> {
    const { ledger, latest, cosignatures } = this.#options;
    const { status, witness } = asker;
    if (answer.kind === "cosigned") {
      const { head } = answer;
      Object.assign(asker, { from: head.size, failures: 0, notBefore: 0 });
      const own = answer.cosignatures.find(({ key }) => key === witness.key.text);
      status.recordHead(head, own?.at ?? 0, latest());
      return cosignatures.add(head, answer.cosignatures);
    }
    const { retryMs, retryMaxMs } = this.#options.pace;
    asker.notBefore = performance.now() + Math.min(retryMaxMs, retryMs * 2 ** asker.failures);
    asker.failures += 1;
    if (answer.kind === "failed") return status.recordFailure(answer.problem);
    status.recordDivergence(answer.divergence.head, await isStatedLost(ledger, answer.divergence.head));
    return undefined;
  }
}
