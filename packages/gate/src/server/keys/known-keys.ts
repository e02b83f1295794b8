import type { RecordedChange } from "../../ledger/mod.ts";
import type { Asker, Voter } from "../../../../core/src/approvals/mod.ts";
import type { KeyKind } from "../../../../core/src/wire/mod.ts";
import { operatorName } from "../policy/reserved-names.ts";
import { toolMatcher } from "../policy/tool-patterns.ts";
import type { Rate } from "../settings/rate.ts";
import { digestOf } from "./digest.ts";
import { EndedSessions, sessionsEnd, type EndableSession } from "./ended-sessions.ts";
import { firstKeyName } from "./first-key.ts";
import { keysGroups, readStated, withOidcGroups } from "./oidc-groups.ts";
import { keyId, readRecord, type KeyRecord, type KeyScope } from "./record.ts";
import { makeKey } from "./token.ts";

/** A valid key. The object stays the same until the key changes. */
export interface ValidKey {
  /** A name that is unique over all tenants: `ci`, or `acme/ci` for a key of a tenant. */
  readonly id: string;
  /** The name on receipts. */
  readonly name: string;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly owner: string | null;
  readonly scopes: ReadonlySet<KeyScope>;
  /** Returns true if the key may ask about this tool. */
  readonly allowsTool: (name: string) => boolean;
  readonly rate: Rate | null;
  /** The person who uses the key; undefined for a key of a program. */
  readonly person: string | undefined;
  readonly groups: readonly string[];
  /** Undefined for an ordinary key. */
  readonly kind: KeyKind | undefined;
}

/** The state of a key for administrators, without digests. */
export interface KeyStanding {
  readonly record: KeyRecord;
  /** Milliseconds since the epoch; null for the first key, which no row created. */
  readonly created: number | null;
  /** Milliseconds since the epoch; null if no use is recorded. */
  readonly lastUsed: number | null;
}

interface KeyEntry {
  readonly record: KeyRecord;
  readonly key: ValidKey;
  readonly created: number | null;
  /** The changes that rows made, in order. */
  readonly changes: readonly KeyChange[];
  lastUsed: number | null;
  /** The last use that was sent to the ledger. */
  notedUse: number | null;
}

/** A row that made, rotated, changed or revoked a key. */
interface KeyChange {
  readonly at: number;
  /** The person of the key from then on; undefined for the key of a program. */
  readonly person: string | undefined;
  /** As whose voices the key that made the change counted then; none for a revocation, after which nobody uses the key. */
  readonly makers: readonly string[];
}

/** A valid digest: its key, and when it ends. */
interface ValidDigest {
  readonly entry: KeyEntry;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const dayMs = 86_400_000;

/**
 * The keys after the rows that were folded so far. It reads and writes no ledger: `KeyRing` does.
 *
 * A key in a request is hashed, and its digest is looked up. The time of the look-up can reveal something only about
 * digests. To use that, an attacker would have to choose the first bits of a digest, which means to invert SHA-256.
 */
export class KnownKeys {
  readonly #firstKey: string | undefined;
  readonly #now: () => number;
  readonly #entries = new Map<string, KeyEntry>();
  readonly #digests = new Map<string, ValidDigest>();
  readonly #people = new Set<string>();
  readonly #ended = new EndedSessions();
  /** The last row that was folded. `#folded` has all of them. */
  #last: RecordedChange | undefined;
  readonly #folded = new Map<number, RecordedChange>();

  /**
   * @param firstKey SHA-256 in hex; undefined if there is none
   * @param now milliseconds since the epoch
   */
  constructor(firstKey: string | undefined, now: () => number) {
    this.#firstKey = firstKey;
    this.#now = now;
    if (firstKey !== undefined) this.#add(firstRecord, null);
  }

  /**
   * Returns the key in an Authorization header; undefined if there is none, it is wrong, expired or revoked, or the
   * scheme differs.
   */
  find(authorization: string | undefined): ValidKey | undefined {
    const text = /^bearer +([^ ]+) *$/i.exec(authorization ?? "")?.[1];
    return text === undefined ? undefined : this.findDigest(digestOf(text));
  }

  /** Returns the key with a digest, SHA-256 in hex; undefined as `find` does. */
  findDigest(digest: string): ValidKey | undefined {
    const found = this.#digests.get(digest);
    const now = this.#now();
    if (found === undefined || now >= found.until) return undefined;
    found.entry.lastUsed = now;
    return found.entry.key;
  }

  /**
   * Returns true if a key that was found before is certainly still valid. A key with an end or an overlap must be
   * looked up again.
   */
  isUnchanged(key: ValidKey): boolean {
    const entry = this.#entries.get(key.id);
    return entry?.key === key && entry.record.expires === null && entry.record.previous === null;
  }

  /** The last row that was folded; undefined before the first. */
  get last(): RecordedChange | undefined {
    return this.#last;
  }

  /** Its number; 0 before the first. */
  get lastRow(): number {
    return this.#last?.seq ?? 0;
  }

  /** Returns true if just this row was folded. */
  hasFolded(change: RecordedChange): boolean {
    return isSame(this.#folded.get(change.seq), change);
  }

  /** Returns true if a key can decide calls now. */
  get hasApprover(): boolean {
    const now = this.#now();
    return this.#entries.values().some(({ record }) => this.voter(record, now) !== undefined);
  }

  /** Returns true if a row has ended a session of the console. */
  isSessionEnded(key: ValidKey, session: EndableSession): boolean {
    return this.#ended.has(key, session);
  }

  /** Returns true if every key is revoked, so that nobody can send requests. */
  get isEmpty(): boolean {
    return this.#entries.values().every(({ record }) => record.revoked);
  }

  /** The keys that a row of the ledger created or changed, including revoked keys. */
  get recorded(): readonly KeyRecord[] {
    return [...this.#entries.values()].map(({ record }) => record).filter((record) => record !== firstRecord);
  }

  /** The number of keys that are valid now. */
  get live(): number {
    const now = this.#now();
    return [...this.#entries.values()].filter(
      ({ record: { revoked, expires } }) => !revoked && now < (expires ?? Infinity),
    ).length;
  }

  /**
   * Returns true if a row has replaced the first key. Then the key in the configuration or the data folder is not used.
   */
  get isFirstKeyReplaced(): boolean {
    return this.#firstKey !== undefined && this.#entries.get(firstKeyName)?.record !== firstRecord;
  }

  /**
   * The state of a key after the rows that were folded so far, even if revoked. `lastUsed` is the last use in this
   * process.
   */
  findState(of: Pick<KeyRecord, "name" | "tenant">): KeyStanding | undefined {
    return this.#entries.get(keyId(of));
  }

  /** The people that a row has added, sorted. */
  get people(): readonly string[] {
    return [...this.#people].toSorted();
  }

  /** As whose voice a key asked for a call at a time. The operator, and any other key without a person, is none. */
  asker(of: Pick<KeyRecord, "name" | "tenant">, at: number): Asker {
    const entry = this.#entries.get(keyId(of));
    const past = entry?.changes.filter((change) => change.at <= at) ?? [];
    const { person } = past.at(-1) ?? entry?.changes[0] ?? entry?.record ?? {};
    return { person, makers: makersOf(past, at).filter((maker) => this.#people.has(maker)) };
  }

  /**
   * What is known now of a key that decides calls; undefined if it may not decide.
   *
   * @param at milliseconds since the epoch
   */
  voter(of: Pick<KeyRecord, "name" | "tenant">, at: number): Voter | undefined {
    const entry = this.#entries.get(keyId(of));
    if (entry === undefined) return undefined;
    const { person, groups = [], revoked, expires, scopes } = entry.record;
    // A key from before this rule may have both halves. Then it asks, and decides nothing.
    const isApart = !scopes.includes("check") && !scopes.includes("admin");
    const isActive = !revoked && at < (expires ?? Infinity) && scopes.includes("approve") && isApart;
    if (!isActive || person === undefined || !this.#people.has(person)) return undefined;
    return { person, groups, makers: makersOf(entry.changes, at) };
  }

  /** The voices of a key at the time when it makes or changes another key. */
  #voicesOf(id: string, at: number): readonly string[] {
    const entry = this.#entries.get(id);
    return [entry?.record.person ?? `key ${id}`, ...makersOf(entry?.changes ?? [], at)];
  }

  /** The keys by their names that are unique over all tenants. */
  get standings(): ReadonlyMap<string, KeyStanding> {
    return this.#entries;
  }

  /** Resets to the state before any row, except for the operator's key, which no row records. */
  forget(): void {
    for (const [digest, { entry }] of this.#digests) if (entry.record !== operatorRecord) this.#digests.delete(digest);
    this.#entries.clear();
    this.#people.clear();
    this.#ended.clear();
    this.#last = undefined;
    this.#folded.clear();
    if (this.#firstKey !== undefined) this.#add(firstRecord, null);
  }

  /** Makes a key for anyone who can read this gate's own files. No row records it, and it ends with the process. */
  makeOperatorKey(): string {
    const key = makeKey();
    const fresh = { created: null, changes: [], lastUsed: null, notedUse: null };
    const entry = { record: operatorRecord, key: operatorKey, ...fresh };
    this.#digests.set(digestOf(key), { entry, until: Infinity });
    return key;
  }

  /** The last use of each key that was used since the last call, by the key's unique name. */
  takeUses(): ReadonlyMap<string, number> {
    const uses = new Map<string, number>();
    for (const [id, entry] of this.#entries) {
      if (entry.lastUsed !== null && entry.lastUsed !== entry.notedUse) uses.set(id, entry.lastUsed);
      entry.notedUse = entry.lastUsed;
    }
    return uses;
  }

  /** Folds the next row; an earlier one changes nothing. */
  fold(change: RecordedChange): void {
    const { seq, at, act, body } = change;
    if (seq <= this.lastRow) return;
    if (act === keysGroups) this.#setGroups(readStated(body));
    else if (act.startsWith("keys.")) this.#add(readRecord(body), at, change.by);
    if (act === sessionsEnd) this.#ended.add(change, this.#now());
    if (act === "persons.add") this.#people.add((JSON.parse(body) as { readonly name: string }).name);
    this.#last = change;
    this.#folded.set(seq, change);
  }

  /** The key does not become young again: a sign-in is not an administrator's act. */
  #setGroups(stated: ReturnType<typeof readStated>): void {
    const known = this.#entries.get(keyId(stated))?.record;
    if (known?.person !== undefined) this.#add(withOidcGroups(known, stated), null);
  }

  #add(record: KeyRecord, at: number | null, by?: string): void {
    const id = keyId(record);
    const known = this.#entries.get(id);
    for (const digest of known === undefined ? [] : this.#digestsOf(known.record)) this.#digests.delete(digest);
    const entry: KeyEntry = {
      record,
      key: keyOf(record),
      created: known === undefined ? at : known.created,
      changes: [...(known?.changes ?? []), ...this.#changesOf(record, at, by)],
      lastUsed: known?.lastUsed ?? null,
      notedUse: known?.notedUse ?? null,
    };
    this.#entries.set(id, entry);
    if (record.revoked) return;
    const until = record.expires ?? Infinity;
    const [current, previous] = this.#digestsOf(record);
    if (previous !== undefined) {
      this.#digests.set(previous, { entry, until: Math.min(until, record.previous?.until ?? until) });
    }
    if (current !== undefined) this.#digests.set(current, { entry, until });
  }

  #changesOf({ person, revoked }: KeyRecord, at: number | null, by: string | undefined): readonly KeyChange[] {
    if (at === null || by === undefined) return [];
    return [{ at, person, makers: revoked ? [] : this.#voicesOf(by, at) }];
  }

  /** The current digest, and the previous one if there is one. */
  #digestsOf({ digest, previous }: KeyRecord): readonly string[] {
    const known = previous === null ? [digest] : [digest, previous.digest];
    return known.map((each) => each ?? this.#firstKey ?? "");
  }
}

/** The voices of everyone who changed a key within a day before a time. */
function makersOf(changes: readonly KeyChange[], at: number): readonly string[] {
  return [...new Set(changes.flatMap((change) => (at < change.at + dayMs ? change.makers : [])))];
}

/**
 * Returns true if both are the same row, read twice. A different row with the same number has another time or content.
 */
export function isSame(one: RecordedChange | undefined, other: RecordedChange): boolean {
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
  scopes: ["check", "rules", "receipts", "outcome"],
  tools: null,
  rate: null,
  revoked: false,
};

const operatorRecord: KeyRecord = { ...firstRecord, name: operatorName, scopes: ["admin"] };

/** The key of an operator who works on the gate's own files. */
export const operatorKey: ValidKey = keyOf(operatorRecord);

function keyOf(record: KeyRecord): ValidKey {
  return {
    id: keyId(record),
    name: record.name,
    tenant: record.tenant,
    owner: record.owner,
    scopes: new Set(record.scopes),
    allowsTool: toolMatcher(record.tools),
    rate: record.rate,
    person: record.person,
    groups: record.groups ?? [],
    kind: record.kind,
  };
}
