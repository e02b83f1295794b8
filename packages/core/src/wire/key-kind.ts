/**
 * The kind of a key that is not an ordinary one. An agent can read the key of its own host, so such a key is worth
 * little: most facts that it states do not count.
 */
export type KeyKind = "host";

/** Reads a kind; undefined for any other value. */
export function keyKindOf(value: unknown): KeyKind | undefined {
  return value === "host" ? value : undefined;
}
