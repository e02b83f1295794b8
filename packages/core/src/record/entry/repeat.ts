/**
 * The answer of a check whose caller drew a `call_id`, so that an exact repeat of the check gets it again. It contains no
 * value of the call: what the rule says is read from the check's row.
 */
export interface RecordedAnswer {
  /** The row of the check. */
  readonly row: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** A keyed digest of the request's body, in hex. */
  readonly bodyDigest: string;
  /** The answer's reason, with a placeholder for the row's reason. */
  readonly reason: string;
  /** The answer's member `approval`, as JSON; null if it has none. */
  readonly approval: string | null;
}

/** A recorded answer as a store keeps it. */
export interface StoredRepeat {
  /** A keyed digest of the key's name and the `call_id`, in hex. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** A keyed checksum of the other columns, and the answer as JSON. */
  readonly record: string;
}

/** @param digest makes keyed digests in hex */
export function repeatId(key: string, callId: string, digest: (text: string) => string): string {
  return digest(`svc-gate/call/1\n${JSON.stringify([key, callId])}`);
}

export function storedRepeat(id: string, answer: RecordedAnswer, digest: (text: string) => string): StoredRepeat {
  const { at } = answer;
  const text = JSON.stringify(answer);
  return { id, at, record: checksumOf(id, at, text, digest) + text };
}

/** Reads a recorded answer; undefined if it is not as it was written. */
export function readRepeat(
  { id, at, record }: StoredRepeat,
  digest: (text: string) => string,
): RecordedAnswer | undefined {
  const text = record.slice(checksumLength);
  return checksumOf(id, at, text, digest) + text === record ? (JSON.parse(text) as RecordedAnswer) : undefined;
}

const checksumLength = 64;

function checksumOf(id: string, at: number, text: string, digest: (text: string) => string): string {
  return digest(`svc-gate/repeat/1\n${JSON.stringify([id, at])}\n${text}`);
}
