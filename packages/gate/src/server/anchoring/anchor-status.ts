import type { Logger } from "pino";
import type { Head } from "./head.ts";
import type { ObservedHead } from "../../ledger/mod.ts";

/** How far one anchor vouches for a ledger. */
export interface VouchedRow {
  /** The anchor's name: `witness w1`, `file sink`. */
  readonly by: string;
  readonly seq: number;
  /** The time of the anchor's last head, in milliseconds. */
  readonly at: number;
}

export interface AnchorStatusOptions {
  readonly by: string;
  /** The anchor's address, for the log. */
  readonly address: string;
  /** For the log; null is the root. */
  readonly tenant: string | null;
  readonly log: Logger;
  readonly onFailure: (by: string) => void;
}

/** The status of one anchor of one ledger. Changes go to the log; metrics read it. */
export class AnchorStatus {
  readonly #options: AnchorStatusOptions;
  #state: "good" | "failing" | "diverged" = "good";
  #vouched: { readonly size: number; readonly root: Buffer; readonly at: number } | undefined;
  #behindSince: number | undefined;

  constructor(options: AnchorStatusOptions) {
    this.#options = options;
  }

  get by(): string {
    return this.#options.by;
  }

  /** True if the anchor has observed a history that is not this ledger's. */
  get isDiverged(): boolean {
    return this.#state === "diverged";
  }

  /** The last head that the anchor is known to have. */
  get vouched(): { readonly size: number; readonly root: Buffer; readonly at: number } | undefined {
    return this.#vouched;
  }

  /** The time for which the anchor has lacked rows, in milliseconds; 0 if it has all rows. */
  get behindMs(): number {
    return this.#behindSince === undefined ? 0 : performance.now() - this.#behindSince;
  }

  has({ size, root }: Head): boolean {
    return this.#vouched?.size === size && this.#vouched.root.equals(root);
  }

  /** Notes that a newer head exists. */
  follow(): void {
    this.#behindSince ??= performance.now();
  }

  /**
   * Notes that the anchor has a head.
   *
   * @param latest the number of rows now
   */
  recordHead({ size, root }: Pick<Head, "root" | "size">, at: number, latest: number): void {
    if (size >= (this.#vouched?.size ?? 0)) this.#vouched = { size, root, at };
    this.#behindSince = size >= latest ? undefined : performance.now();
    this.#become("good", "info", `the ${this.by} accepts checkpoints again`);
  }

  /** Notes that the anchor could not be reached, or gave no useful answer. */
  recordFailure(problem: string): void {
    this.#options.onFailure(this.by);
    if (!this.isDiverged) this.#become("failing", "warn", `the ${this.by} does not accept checkpoints: ${problem}`);
  }

  /**
   * Notes that the anchor has observed another history.
   *
   * @param isStated an operator has stated the loss, so the anchor can never cosign this ledger again
   */
  recordDivergence({ proof, seq }: ObservedHead, isStated = false): void {
    if (isStated) {
      const lost = `row ${seq}, which an operator stated lost: it can no longer vouch for this ledger`;
      return this.#become("diverged", "warn", `the ${this.by} has seen ${lost}`);
    }
    const shown = proof !== undefined ? "signed by this ledger's own key" : "without proof";
    const other = `another history through row ${seq}, ${shown}: see docs/guides/anchors.md`;
    return this.#become("diverged", "error", `the ${this.by} has seen ${other}`);
  }

  /** Logs a change of the state. */
  #become(state: "good" | "failing" | "diverged", level: "info" | "warn" | "error", sentence: string): void {
    if (this.#state === state) return;
    this.#state = state;
    const { tenant, address, log, by } = this.#options;
    log[level]({ tenant, anchor: by, place: address }, sentence);
  }
}
