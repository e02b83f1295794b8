import type { Change, Ledger } from "../../../ledger/mod.ts";
import type { Receipt } from "../../../ledger/entry/mod.ts";
import { good, type Refusal, type Result } from "../../../wire/mod.ts";
import type { Acts } from "../act.ts";
import { digestOf } from "./digest.ts";
import { firstKeyName } from "./first-key.ts";
import { operatorName } from "./operator-name.ts";
import { keyId, readRecord, recordBody, type KeyRecord, type Rate, type Scope } from "./record.ts";
import { makeKey } from "./token.ts";
import { toolMatcher } from "./tool-patterns.ts";

/** A key that is good now. One object for as long as nothing of the key changes. */
export interface Key {
  /** Its name over all tenants: `ci`, or `acme/ci` of a tenant's. */
  readonly id: string;
  /** What a receipt names. */
  readonly name: string;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly owner: string | null;
  readonly scopes: ReadonlySet<Scope>;
  /** May it ask about a tool of this name? */
  readonly allowsTool: (name: string) => boolean;
  readonly rate: Rate | null;
}

/** One key as it stands, for who looks after keys: everything but digests. */
export interface KeyStanding {
  readonly record: KeyRecord;
  /** Milliseconds since the epoch; null of the first key, which no row made. */
  readonly created: number | null;
  /** Milliseconds since the epoch; null where it never was used, or not since uses were noted. */
  readonly lastUsed: number | null;
}

/** What is about to be recorded of a key. */
export interface KeyAct {
  readonly act: "keys.create" | "keys.rotate" | "keys.revoke";
  readonly record: KeyRecord;
  /** One sentence for a person. */
  readonly reason: string;
}

export interface KeyRingOptions {
  /** The root's gate: keys of all tenants are rows of its ledger. */
  readonly gate: Acts;
  readonly ledger: Pick<Ledger, "keepUses" | "uses">;
  /** SHA-256 in hex of the first key; undefined where there is none. */
  readonly firstKey: string | undefined;
  readonly isTenant: (id: string) => boolean;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

interface Held {
  readonly record: KeyRecord;
  readonly key: Key;
  readonly created: number | null;
  lastUsed: number | null;
  /** The last use that the ledger was told of. */
  notedUse: number | null;
}

/** What one digest is good for. */
interface Good {
  readonly held: Held;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const usesEveryMs = 60_000;

/**
 * The keys: a fold over what people did to them, as the root's ledger has it. Nothing else keeps keys.
 *
 * A key that comes in is hashed and its digest looked up. How long the look-up takes can tell something about digests at
 * most, and who wanted to use that would have to choose a digest's first bits: that is to invert SHA-256.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  readonly #now: () => number;
  readonly #held = new Map<string, Held>();
  readonly #digests = new Map<string, Good>();
  readonly #timer: NodeJS.Timeout;
  /** The last row that was folded, and all of them. */
  #last: Change | undefined;
  readonly #folded = new Map<number, Change>();

  private constructor(options: KeyRingOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    if (options.firstKey !== undefined) this.#hold(firstRecord, null);
    this.#timer = setInterval(() => void this.keepUses(), usesEveryMs).unref();
  }

  static async open(options: KeyRingOptions): Promise<KeyRing> {
    const ring = new KeyRing(options);
    await ring.refresh();
    return ring;
  }

  /** The key that an Authorization header carries; undefined for none, a wrong, expired or revoked one, another scheme. */
  find(authorization: string | undefined): Key | undefined {
    const text = /^bearer +([^ ]+) *$/i.exec(authorization ?? "")?.[1];
    if (text === undefined) return undefined;
    const found = this.#digests.get(digestOf(text));
    const now = this.#now();
    if (found === undefined || now >= found.until) return undefined;
    found.held.lastUsed = now;
    return found.held.key;
  }

  /** Is a key that was found before surely good still? One with an end or an overlap must be looked up again. */
  isUnchanged(key: Key): boolean {
    const held = this.#held.get(key.id);
    return held?.key === key && held.record.expires === null && held.record.previous === null;
  }

  /** Is there no key that is not revoked? Then nobody can ask. */
  get isEmpty(): boolean {
    return this.#held.values().every(({ record }) => record.revoked);
  }

  /** The keys that a row of the ledger made or changed, revoked ones too. */
  get recorded(): readonly KeyRecord[] {
    return [...this.#held.values()].map(({ record }) => record).filter((record) => record !== firstRecord);
  }

  /** How many keys may be used now. */
  get live(): number {
    const now = this.#now();
    return [...this.#held.values()].filter(
      ({ record: { revoked, expires } }) => !revoked && now < (expires ?? Infinity),
    ).length;
  }

  /** Has a row taken the place of the first key? What the configuration or the data folder says of it then holds no more. */
  get isFirstKeyReplaced(): boolean {
    return this.#options.firstKey !== undefined && this.#held.get(firstKeyName)?.record !== firstRecord;
  }

  isTenant(id: string): boolean {
    return this.#options.isTenant(id);
  }

  now(): number {
    return this.#now();
  }

  /** A key as the rows folded so far leave it, a revoked one too; its use as this process saw it. */
  standing(of: Pick<KeyRecord, "name" | "tenant">): KeyStanding | undefined {
    return this.#held.get(keyId(of));
  }

  /** All keys, or one tenant's, by name. */
  async list(tenant?: string): Promise<readonly KeyStanding[]> {
    const noted = await this.#options.ledger.uses();
    return [...this.#held]
      .filter(([, { record }]) => tenant === undefined || record.tenant === tenant)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { record, created, lastUsed }]) => {
        const used = Math.max(lastUsed ?? 0, noted.get(id) ?? 0);
        return { record, created, lastUsed: used === 0 ? null : used };
      });
  }

  /** Takes up what was done to keys since the last time, by this gate or by another on the same ledger. */
  async refresh(): Promise<void> {
    const { gate } = this.#options;
    const last = this.#last;
    const found = await gate.changes(Math.max(0, this.#changed - 1));
    const [again] = found;
    if (last === undefined || (again !== undefined && isSame(last, again))) {
      for (const change of found) this.#fold(change);
      return;
    }
    const all = await gate.changes(0);
    // A history that is only shorter may be a standby's, which is behind: to go back to it would give revoked keys back.
    if (all.every((change) => isSame(this.#folded.get(change.seq), change))) return;
    // The row that was folded last was a server's alone, and is lost with it: what it said never held.
    this.#forget();
    for (const change of all) this.#fold(change);
  }

  /** The last row that was folded; 0 before the first. */
  get #changed(): number {
    return this.#last?.seq ?? 0;
  }

  /** As it was before any row, but for the operator, who is in none. */
  #forget(): void {
    const { firstKey } = this.#options;
    for (const [digest, { held }] of this.#digests) if (held.record !== operatorRecord) this.#digests.delete(digest);
    this.#held.clear();
    this.#last = undefined;
    this.#folded.clear();
    if (firstKey !== undefined) this.#hold(firstRecord, null);
  }

  /**
   * Records an act, and it holds. `decide` sees all that was done before it, whichever gate did it.
   *
   * @param by the name of the key that does it
   */
  async enact(
    by: string,
    decide: () => Promise<Result<KeyAct, Refusal>> | Result<KeyAct, Refusal>,
  ): Promise<Result<Receipt, Refusal>> {
    const done = await this.#options.gate.enact(async (transaction) => {
      if (transaction.changed !== this.#changed) await this.refresh();
      const decided = await decide();
      if (!decided.ok) return decided;
      const { act, record, reason } = decided.value;
      return good({ by, act, body: recordBody(record), reason });
    });
    if (done.ok) await this.refresh();
    return done;
  }

  /** Makes a key for whoever can read this gate's own files. It is no row, and ends with the process. */
  makeOperatorKey(): string {
    const key = makeKey();
    const held = { record: operatorRecord, key: operatorKey, created: null, lastUsed: null, notedUse: null };
    this.#digests.set(digestOf(key), { held, until: Infinity });
    return key;
  }

  /** Notes when keys were used, if any was since the last time. Best effort: nothing fails with it. */
  async keepUses(): Promise<void> {
    const uses = new Map<string, number>();
    for (const [id, held] of this.#held) {
      if (held.lastUsed !== null && held.lastUsed !== held.notedUse) uses.set(id, held.lastUsed);
      held.notedUse = held.lastUsed;
    }
    if (uses.size > 0) await this.#options.ledger.keepUses(uses).catch(() => undefined);
  }

  /** Before the ledger is closed. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.keepUses();
  }

  #fold(change: Change): void {
    const { seq, at, act, body } = change;
    if (seq <= this.#changed) return;
    if (act.startsWith("keys.")) this.#hold(readRecord(body), at);
    this.#last = change;
    this.#folded.set(seq, change);
  }

  #hold(record: KeyRecord, at: number | null): void {
    const id = keyId(record);
    const before = this.#held.get(id);
    for (const digest of before === undefined ? [] : this.#digestsOf(before.record)) this.#digests.delete(digest);
    const held: Held = {
      record,
      key: keyOf(record),
      created: before === undefined ? at : before.created,
      lastUsed: before?.lastUsed ?? null,
      notedUse: before?.notedUse ?? null,
    };
    this.#held.set(id, held);
    if (record.revoked) return;
    const until = record.expires ?? Infinity;
    const [current, previous] = this.#digestsOf(record);
    if (previous !== undefined) {
      this.#digests.set(previous, { held, until: Math.min(until, record.previous?.until ?? until) });
    }
    if (current !== undefined) this.#digests.set(current, { held, until });
  }

  /** The digest that holds, and the one before it. */
  #digestsOf({ digest, previous }: KeyRecord): readonly string[] {
    const known = previous === null ? [digest] : [digest, previous.digest];
    return known.map((each) => each ?? this.#options.firstKey ?? "");
  }
}

/** Are they one row, read twice? Another one at its place has another time or says something else. */
function isSame(one: Change | undefined, other: Change): boolean {
  return one?.seq === other.seq && one.at === other.at && one.act === other.act && one.body === other.body;
}

/** The first key of a data folder. */
export const firstRecord: KeyRecord = {
  name: firstKeyName,
  tenant: null,
  owner: null,
  digest: null,
  previous: null,
  expires: null,
  scopes: ["check", "rules", "receipts"],
  tools: null,
  rate: null,
  revoked: false,
};

const operatorRecord: KeyRecord = { ...firstRecord, name: operatorName, scopes: ["admin"] };

/** Who acts through a gate's own files. */
export const operatorKey: Key = keyOf(operatorRecord);

function keyOf(record: KeyRecord): Key {
  return {
    id: keyId(record),
    name: record.name,
    tenant: record.tenant,
    owner: record.owner,
    scopes: new Set(record.scopes),
    allowsTool: toolMatcher(record.tools),
    rate: record.rate,
  };
}
