/** A file that stores checkpoints. The same one serves all ledgers of a gate. */
export interface Sink {
  /** Such as `file sink`. */
  readonly by: string;
  /** The path, for the log. */
  readonly address: string;
  /**
   * Stores a checkpoint.
   *
   * @param tenant null is the root
   */
  readonly write: (tenant: string | null, note: string) => Promise<void>;
  /** Returns the last stored checkpoint of this origin; undefined if there is none. */
  readonly read: (tenant: string | null, origin: string) => Promise<StoredCheckpoint | undefined>;
}

export interface StoredCheckpoint {
  readonly note: string;
  /** When it was stored, in milliseconds. */
  readonly at: number;
}
