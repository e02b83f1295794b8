import { hash } from "node:crypto";
import { quote } from "../../../wire/mod.ts";
import type { AdminEvent } from "../admin-event.ts";

/** The act of a row that ends sessions of the console. */
export const sessionsEnd = "sessions.end";

/** The parts of a session by which a row can end it. */
export interface EndableSession {
  /** 128 random bits in hex; the row has only their digest. */
  readonly nonce: string;
  /** Milliseconds since the epoch. */
  readonly issued: number;
}

/** The body of such a row. */
interface Ending {
  /** The key's name that is unique over all tenants. */
  readonly key: string;
  /** SHA-256 in hex of the nonce; null ends each session that the key opened before the row. */
  readonly session: string | null;
}

/** No session is longer, so older endings are forgotten. */
const longestMs = 12 * 3_600_000;

/** The row that ends a session of a key, or with null each of them. */
export function endOfSessions(
  { id, name }: { readonly id: string; readonly name: string },
  session: EndableSession | null,
): AdminEvent {
  const body: Ending = { key: id, session: session === null ? null : nonceDigest(session) };
  const text = session === null ? "ended all its sessions" : "signed out";
  return { by: id, act: sessionsEnd, body: { ...body }, reason: `Svc: the key ${quote(name)} ${text}` };
}

/** The sessions that rows have ended, as far as they could still be open. */
export class EndedSessions {
  readonly #single = new Map<string, number>();
  readonly #all = new Map<string, number>();

  /** @param at the time of the row, in milliseconds since the epoch */
  add(at: number, text: string, now: number): void {
    for (const [each, when] of this.#single) if (when + longestMs < now) this.#single.delete(each);
    if (at + longestMs < now) return;
    const { key, session } = JSON.parse(text) as Ending;
    if (session === null) this.#all.set(key, at);
    else this.#single.set(session, at);
  }

  has({ id }: { readonly id: string }, session: EndableSession): boolean {
    return session.issued <= (this.#all.get(id) ?? -1) || this.#single.has(nonceDigest(session));
  }

  clear(): void {
    this.#single.clear();
    this.#all.clear();
  }
}

function nonceDigest({ nonce }: EndableSession): string {
  return hash("sha256", nonce, "hex");
}
