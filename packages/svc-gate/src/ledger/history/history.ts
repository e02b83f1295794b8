import type { HistoryReader, KeptCounter } from "../store/store.ts";
import type { HashReader } from "../tree/tiles.ts";

/** A ledger that is read from outside, whether a gate is serving it or not. */
export interface LedgerHistory extends Omit<HistoryReader, "hashes"> {
  readonly name: string;
  /** The number of its last row when it was opened; 0 when there is none. */
  readonly rows: number;
  /** The digest under which a counter's key stands in effects. */
  keyDigest(key: string): string;
  /** The counters that it kept when it was opened: nothing had been folded into them of a row past `rows`. */
  readonly kept: readonly KeptCounter[];
  /** The verifier key on record for its heads; undefined before the first. */
  readonly signer: string | undefined;
  /** What was noted of the first key; undefined where nothing was, and in a database. */
  readonly firstKey?: string | undefined;
  /** Signed checkpoints that were kept, a second old at most: the latest, then the latest that witnesses have cosigned. */
  readonly checkpoints: readonly string[];
  readonly hashes: HashReader;
  close(): Promise<void>;
}
