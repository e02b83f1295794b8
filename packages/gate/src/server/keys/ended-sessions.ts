import { hash } from "node:crypto";
import { quote } from "../../../../core/src/wire/mod.ts";
import type { RecordedChange } from "../../ledger/mod.ts";
import type { AdminEvent } from "../policy/admin-event.ts";

/** The act of a row that ends sessions of the console. */
export const sessionsEnd = "sessions.end";

/** The parts of a session by which a row can end it. */
export interface EndableSession {
  /** 128 random bits in hex; the row has only their digest. */
  readonly nonce: string;
  /** The last row about keys that the gate knew at the sign-in. */
  readonly row: number;
  /** Milliseconds since the epoch. */
  readonly issued: number;
}

interface SessionEndBody {
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
  const body: SessionEndBody = { key: id, session: session === null ? null : nonceDigest(session) };
  const text = session === null ? "ended all its sessions" : "signed out";
  return { by: id, act: sessionsEnd, body: { ...body }, reason: `Svc: the key ${quote(name)} ${text}` };
}

/** A row that ends sessions. `at` is in milliseconds since the epoch. */
type EndingRow = Pick<RecordedChange, "at" | "body" | "seq">;

/** The sessions that rows have ended, as far as they could still be open. */
export class EndedSessions {
  readonly #single = new Map<string, number>();
  readonly #all = new Map<string, EndingRow>();

  add(row: EndingRow, now: number): void {
    for (const [each, when] of this.#single) if (when + longestMs < now) this.#single.delete(each);
    if (row.at + longestMs < now) return;
    const { key, session } = JSON.parse(row.body) as SessionEndBody;
    if (session === null) this.#all.set(key, row);
    else this.#single.set(session, row.at);
  }

  /** The clocks of two replicas differ, so rows say what was earlier. After a restore with loss only times can say it. */
  has({ id }: { readonly id: string }, session: EndableSession): boolean {
    const all = this.#all.get(id);
    const isEarlier = all !== undefined && (session.row < all.seq || session.issued <= all.at);
    return isEarlier || this.#single.has(nonceDigest(session));
  }

  clear(): void {
    this.#single.clear();
    this.#all.clear();
  }
}

function nonceDigest({ nonce }: EndableSession): string {
  return hash("sha256", nonce, "hex");
}
