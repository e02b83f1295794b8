/** A file that is given checkpoints to keep. The same one serves all ledgers of a gate. */
export interface Sink {
  /** Such as `file sink`. */
  readonly by: string;
  /** Where it is, for the log. */
  readonly place: string;
  /** Gives it a checkpoint. @param tenant null is the root */
  readonly write: (tenant: string | null, note: string) => Promise<void>;
  /** The last checkpoint of this origin that it was given; undefined where it has none. */
  readonly read: (tenant: string | null, origin: string) => Promise<Kept | undefined>;
}

/** A checkpoint that a sink keeps. */
export interface Kept {
  readonly note: string;
  /** When it was given that, in milliseconds. */
  readonly at: number;
}
