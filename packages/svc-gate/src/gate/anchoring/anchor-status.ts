import type { Logger } from "pino";
import type { Head } from "./head.ts";
import type { ObservedHead } from "../../ledger/mod.ts";

/** How far one anchor vouches for a ledger. */
export interface Vouched {
  /** Who: `witness w1`, `file sink`. */
  readonly by: string;
  readonly seq: number;
  /** When it said so, in milliseconds. */
  readonly at: number;
}

export interface AnchorStatusOptions {
  readonly by: string;
  /** Where it is, for the log. */
  readonly place: string;
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

  /** Has it observed another history than this ledger's? */
  get isDiverged(): boolean {
    return this.#state === "diverged";
  }

  /** The last head that it has, as far as is known. */
  get vouched(): { readonly size: number; readonly root: Buffer; readonly at: number } | undefined {
    return this.#vouched;
  }

  /** Milliseconds for which there have been rows that it has not got; 0 where there are none. */
  get behindMs(): number {
    return this.#behindSince === undefined ? 0 : performance.now() - this.#behindSince;
  }

  has({ size, root }: Head): boolean {
    return this.#vouched?.size === size && this.#vouched.root.equals(root);
  }

  /** There is a newer head. */
  follow(): void {
    this.#behindSince ??= performance.now();
  }

  /** It has a head. @param latest the number of rows there are now */
  reached({ size, root }: Pick<Head, "root" | "size">, at: number, latest: number): void {
    if (size >= (this.#vouched?.size ?? 0)) this.#vouched = { size, root, at };
    this.#behindSince = size >= latest ? undefined : performance.now();
    this.#become("good", () => this.#say("info", `the ${this.by} takes checkpoints again`));
  }

  /** It could not be asked, or said nothing that helps. */
  failed(problem: string): void {
    this.#options.onFailure(this.by);
    if (!this.isDiverged)
      this.#become("failing", () => this.#say("warn", `the ${this.by} does not take checkpoints: ${problem}`));
  }

  /** It has observed another history. @param isStated an operator has stated the loss: it can never cosign this ledger again */
  diverged({ proof, seq }: ObservedHead, isStated = false): void {
    if (isStated)
      return this.#become("diverged", () =>
        this.#say("warn", `the ${this.by} has seen row ${seq}, which is stated lost: it takes this ledger no more`),
      );
    const shown = proof !== undefined ? "under this ledger's own key" : "and does not show it";
    return this.#become("diverged", () =>
      this.#say(
        "error",
        `the ${this.by} has seen another history through row ${seq}, ${shown}: see docs/guides/anchors.md`,
      ),
    );
  }

  #become(state: "good" | "failing" | "diverged", say: () => void): void {
    if (this.#state === state) return;
    this.#state = state;
    say();
  }

  #say(level: "info" | "warn" | "error", sentence: string): void {
    const { tenant, place, log, by } = this.#options;
    log[level]({ tenant, anchor: by, place }, sentence);
  }
}
