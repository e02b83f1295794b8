import type { HistoryReader, KeptCounter } from "../store/store.ts";
import type { HashReader } from "../tree/tiles.ts";

/** A ledger that is read from outside, even while a gate serves it. */
export interface LedgerHistory extends Omit<HistoryReader, "hashes"> {
  readonly name: string;
  /** The number of its last row when it was opened; 0 if there is none. */
  readonly rows: number;
  /** Returns the digest of a counter's key, as it is in effects. */
  keyDigest(key: string): string;
  /** The counters at the time of opening. They contain no events of rows after `rows`. */
  readonly kept: readonly KeptCounter[];
  /** The verifier key on record for its heads; undefined before the first. */
  readonly signer: string | undefined;
  /** The note about the first key; undefined if there is none, and in a database. */
  readonly firstKey?: string | undefined;
  /** The stored signed checkpoints, at most a second old: the latest, then the latest that witnesses have cosigned. */
  readonly checkpoints: readonly string[];
  readonly hashes: HashReader;
  close(): Promise<void>;
}
