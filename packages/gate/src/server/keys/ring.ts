import type { Change, Ledger } from "../../ledger/mod.ts";
import type { Receipt } from "../../../../core/src/record/entry/mod.ts";
import { bad, good, quote, refuse, type KeyKind, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { AdminEvent, AdminEvents } from "../policy/admin-event.ts";
import { digestOf } from "./digest.ts";
import { firstKeyName } from "./first-key.ts";
import { operatorName } from "../policy/reserved-names.ts";
import { keyId, readRecord, recordBody, type KeyRecord, type Scope } from "./record.ts";
import type { Rate } from "../settings/rate.ts";
import { makeKey } from "./token.ts";
import type { Asker, Voter } from "../../../../core/src/approvals/mod.ts";
import { endOfSessions, EndedSessions, sessionsEnd, type EndableSession } from "./ended-sessions.ts";
import { groupsEvent, keysGroups, readStated, withOidcGroups } from "./oidc-groups.ts";
import { toolMatcher } from "../policy/tool-patterns.ts";

/** A valid key. The object stays the same until the key changes. */
export interface Key {
  /** A name that is unique over all tenants: `ci`, or `acme/ci` for a key of a tenant. */
  readonly id: string;
  /** The name on receipts. */
  readonly name: string;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly owner: string | null;
  readonly scopes: ReadonlySet<Scope>;
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

/** A change of a key, before it is recorded. */
export interface KeyEvent {
  readonly act: "keys.create" | "keys.rotate" | "keys.revoke" | "keys.update";
  readonly record: KeyRecord;
  /** One sentence for a person. */
  readonly reason: string;
}

export interface KeyRingOptions {
  /** The root's gate: keys of all tenants are rows of its ledger. */
  readonly gate: AdminEvents;
  readonly ledger: Pick<Ledger, "isShared" | "keyNotes" | "rows">;
  /** SHA-256 in hex of the first key; undefined if there is none. */
  readonly firstKey: string | undefined;
  readonly isTenant: (id: string) => boolean;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

interface KeyEntry {
  readonly record: KeyRecord;
  readonly key: Key;
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
  readonly held: KeyEntry;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const usesEveryMs = 60_000;
const dayMs = 86_400_000;

/**
 * The keys in memory: a fold over the administrative events in the root's ledger, the only store of keys.
 *
 * A key in a request is hashed, and its digest is looked up. The time of the look-up can reveal something only about
 * digests. To use that, an attacker would have to choose the first bits of a digest, which means to invert SHA-256.
 */
export class KeyRing {
  readonly #options: KeyRingOptions;
  readonly #now: () => number;
  readonly #held = new Map<string, KeyEntry>();
  readonly #digests = new Map<string, ValidDigest>();
  readonly #persons = new Set<string>();
  readonly #ended = new EndedSessions();
  readonly #timer: NodeJS.Timeout;
  /** The last row that was folded. `#folded` has all of them. */
  #last: Change | undefined;
  readonly #folded = new Map<number, Change>();
  /** How many changes by this process may be on disk and not folded yet. */
  #appending = 0;

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

  /**
   * Returns the key in an Authorization header; undefined if there is none, it is wrong, expired or revoked, or the
   * scheme differs.
   */
  find(authorization: string | undefined): Key | undefined {
    const text = /^bearer +([^ ]+) *$/i.exec(authorization ?? "")?.[1];
    return text === undefined ? undefined : this.findDigest(digestOf(text));
  }

  /** Returns the key with a digest, SHA-256 in hex; undefined as `find` does. */
  findDigest(digest: string): Key | undefined {
    const found = this.#digests.get(digest);
    const now = this.#now();
    if (found === undefined || now >= found.until) return undefined;
    found.held.lastUsed = now;
    return found.held.key;
  }

  /**
   * Returns true if a key that was found before is certainly still valid. A key with an end or an overlap must be
   * looked up again.
   */
  isUnchanged(key: Key): boolean {
    const held = this.#held.get(key.id);
    return held?.key === key && held.record.expires === null && held.record.previous === null;
  }

  /** The last row that was folded; 0 before the first. */
  get lastRow(): number {
    return this.#last?.seq ?? 0;
  }

  /** Returns true if a key can decide calls now. */
  get hasApprover(): boolean {
    const now = this.#now();
    return this.#held.values().some(({ record }) => this.voter(record, now) !== undefined);
  }

  /** Returns true if a row has ended a session of the console. */
  isSessionEnded(key: Key, session: EndableSession): boolean {
    return this.#ended.has(key, session);
  }

  /** Ends a session of a key, or with null each session that the key has opened so far. */
  endSessions(key: Key, session: EndableSession | null): Promise<Result<Receipt, Refusal>> {
    return this.#append(async () => good(endOfSessions(key, session)));
  }

  /**
   * Records the groups that a provider of OpenID Connect states for the person of a key, if they differ.
   *
   * @param groups without the prefix that they get
   */
  async stateGroups(of: Pick<KeyRecord, "name" | "tenant">, groups: readonly string[]): Promise<Result<void, Refusal>> {
    await this.catchUp();
    const event = (): AdminEvent | undefined => {
      const record = this.#held.get(keyId(of))?.record;
      return record && groupsEvent(record, groups);
    };
    if (event() === undefined) return good(undefined);
    const done = await this.#append(async (transaction) => {
      if (transaction.store.changed !== this.lastRow) await this.refresh();
      const still = event();
      return still === undefined ? bad(statedElsewhere) : good(still);
    });
    return done.ok || done.problem === statedElsewhere ? good(undefined) : done;
  }

  /** Returns true if every key is revoked, so that nobody can send requests. */
  get isEmpty(): boolean {
    return this.#held.values().every(({ record }) => record.revoked);
  }

  /** The keys that a row of the ledger created or changed, including revoked keys. */
  get recorded(): readonly KeyRecord[] {
    return [...this.#held.values()].map(({ record }) => record).filter((record) => record !== firstRecord);
  }

  /** The number of keys that are valid now. */
  get live(): number {
    const now = this.#now();
    return [...this.#held.values()].filter(
      ({ record: { revoked, expires } }) => !revoked && now < (expires ?? Infinity),
    ).length;
  }

  /**
   * Returns true if a row has replaced the first key. Then the key in the configuration or the data folder is not used.
   */
  get isFirstKeyReplaced(): boolean {
    return this.#options.firstKey !== undefined && this.#held.get(firstKeyName)?.record !== firstRecord;
  }

  isTenant(id: string): boolean {
    return this.#options.isTenant(id);
  }

  now(): number {
    return this.#now();
  }

  /**
   * The state of a key after the rows that were folded so far, even if revoked. `lastUsed` is the last use in this
   * process.
   */
  standing(of: Pick<KeyRecord, "name" | "tenant">): KeyStanding | undefined {
    return this.#held.get(keyId(of));
  }

  /** The persons that a row has added, sorted. */
  get persons(): readonly string[] {
    return [...this.#persons].toSorted();
  }

  /** As whose voice a key asked for a call at a time. The operator, and any other key without a person, is none. */
  asker(of: Pick<KeyRecord, "name" | "tenant">, at: number): Asker {
    const held = this.#held.get(keyId(of));
    const past = held?.changes.filter((change) => change.at <= at) ?? [];
    const { person } = past.at(-1) ?? held?.changes[0] ?? held?.record ?? {};
    return { person, makers: makersOf(past, at).filter((maker) => this.#persons.has(maker)) };
  }

  /**
   * What is known now of a key that decides calls; undefined if it may not decide.
   *
   * @param at milliseconds since the epoch
   */
  voter(of: Pick<KeyRecord, "name" | "tenant">, at: number): Voter | undefined {
    const held = this.#held.get(keyId(of));
    if (held === undefined) return undefined;
    const { person, groups = [], revoked, expires, scopes } = held.record;
    // A key from before this rule may have both halves. Then it asks, and decides nothing.
    const isApart = !scopes.includes("check") && !scopes.includes("admin");
    const isActive = !revoked && at < (expires ?? Infinity) && scopes.includes("approve") && isApart;
    if (!isActive || person === undefined || !this.#persons.has(person)) return undefined;
    return { person, groups, makers: makersOf(held.changes, at) };
  }

  /** The voices of a key at the time when it makes or changes another key. */
  #voicesOf(id: string, at: number): readonly string[] {
    const held = this.#held.get(id);
    return [held?.record.person ?? `key ${id}`, ...makersOf(held?.changes ?? [], at)];
  }

  /** Returns all keys, or the keys of one tenant, sorted by name. */
  async list(tenant?: string): Promise<readonly KeyStanding[]> {
    const noted = await this.#options.ledger.keyNotes.uses();
    return [...this.#held]
      .filter(([, { record }]) => tenant === undefined || record.tenant === tenant)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { record, created, lastUsed }]) => {
        const used = Math.max(lastUsed ?? 0, noted.get(id) ?? 0);
        return { record, created, lastUsed: used === 0 ? null : used };
      });
  }

  /** Folds the changes since the last call, by this gate or by another gate on the same ledger. */
  async refresh(): Promise<void> {
    const { rows } = this.#options.ledger;
    const last = this.#last;
    const found = await rows.changes(Math.max(0, this.lastRow - 1));
    const [again] = found;
    if (last === undefined || (again !== undefined && isSame(last, again))) {
      for (const change of found) this.#fold(change);
      return;
    }
    const all = await rows.changes(0);
    // A shorter history may come from a standby that is behind. Following it would make revoked keys valid again.
    if (all.every((change) => isSame(this.#folded.get(change.seq), change))) return;
    // The last folded row is not in the ledger: only a lost server had it. It never took effect, so fold again.
    this.#forget();
    for (const change of all) this.#fold(change);
  }

  /** Folds the changes that are not folded yet. A ledger that only this process writes has none between its own changes. */
  async catchUp(): Promise<void> {
    if (this.#options.ledger.isShared || this.#appending > 0) await this.refresh();
  }

  /** Appends a row, and folds it. */
  async #append(makeEvent: Parameters<AdminEvents["appendAdminEvent"]>[0]): Promise<Result<Receipt, Refusal>> {
    this.#appending += 1;
    try {
      const done = await this.#options.gate.appendAdminEvent(makeEvent);
      if (done.ok) await this.refresh();
      return done;
    } finally {
      this.#appending -= 1;
    }
  }

  /** Resets to the state before any row, except for the operator's key, which no row records. */
  #forget(): void {
    const { firstKey } = this.#options;
    for (const [digest, { held }] of this.#digests) if (held.record !== operatorRecord) this.#digests.delete(digest);
    this.#held.clear();
    this.#persons.clear();
    this.#ended.clear();
    this.#last = undefined;
    this.#folded.clear();
    if (firstKey !== undefined) this.#hold(firstRecord, null);
  }

  /**
   * Records a change, which takes effect immediately. `decide` sees all earlier changes, of any gate.
   *
   * @param by the name of the key that makes the change
   */
  async appendAdminEvent(
    by: string,
    decide: () => Promise<Result<KeyEvent, Refusal>> | Result<KeyEvent, Refusal>,
  ): Promise<Result<Receipt, Refusal>> {
    return this.#append(async (transaction) => {
      if (transaction.store.changed !== this.lastRow) await this.refresh();
      const decided = await decide();
      if (!decided.ok) return decided;
      const { act, record, reason } = decided.value;
      return good({ by, act, body: recordBody(record), reason });
    });
  }

  /** Records a person who may decide calls. A person who is on the list already is a conflict. */
  async appendPerson(by: string, name: string): Promise<Result<Receipt, Refusal>> {
    return this.#append(async (transaction) => {
      if (transaction.store.changed !== this.lastRow) await this.refresh();
      if (this.#persons.has(name)) return bad(refuse("conflict", `the person ${quote(name)} is on the list already`));
      return good({ by, act: "persons.add", body: { name }, reason: `Svc: ${by} added the person ${name}` });
    });
  }

  /** Makes a key for anyone who can read this gate's own files. No row records it, and it ends with the process. */
  makeOperatorKey(): string {
    const key = makeKey();
    const fresh = { created: null, changes: [], lastUsed: null, notedUse: null };
    const held = { record: operatorRecord, key: operatorKey, ...fresh };
    this.#digests.set(digestOf(key), { held, until: Infinity });
    return key;
  }

  /** Records when keys were used, if any was used since the last call. A failure is ignored. */
  async keepUses(): Promise<void> {
    const uses = new Map<string, number>();
    for (const [id, held] of this.#held) {
      if (held.lastUsed !== null && held.lastUsed !== held.notedUse) uses.set(id, held.lastUsed);
      held.notedUse = held.lastUsed;
    }
    if (uses.size > 0) await this.#options.ledger.keyNotes.keepUses(uses).catch(() => undefined);
  }

  /** Call this before the ledger is closed. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.keepUses();
  }

  #fold(change: Change): void {
    const { seq, at, act, body } = change;
    if (seq <= this.lastRow) return;
    if (act === keysGroups) this.#holdGroups(readStated(body));
    else if (act.startsWith("keys.")) this.#hold(readRecord(body), at, change.by);
    if (act === sessionsEnd) this.#ended.add(change, this.#now());
    if (act === "persons.add") this.#persons.add((JSON.parse(body) as { readonly name: string }).name);
    this.#last = change;
    this.#folded.set(seq, change);
  }

  /** The key does not become young again: a sign-in is not an administrator's act. */
  #holdGroups(stated: ReturnType<typeof readStated>): void {
    const known = this.#held.get(keyId(stated))?.record;
    if (known?.person !== undefined) this.#hold(withOidcGroups(known, stated), null);
  }

  #hold(record: KeyRecord, at: number | null, by?: string): void {
    const id = keyId(record);
    const known = this.#held.get(id);
    for (const digest of known === undefined ? [] : this.#digestsOf(known.record)) this.#digests.delete(digest);
    const held: KeyEntry = {
      record,
      key: keyOf(record),
      created: known === undefined ? at : known.created,
      changes: [...(known?.changes ?? []), ...this.#changesOf(record, at, by)],
      lastUsed: known?.lastUsed ?? null,
      notedUse: known?.notedUse ?? null,
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

  #changesOf({ person, revoked }: KeyRecord, at: number | null, by: string | undefined): readonly KeyChange[] {
    if (at === null || by === undefined) return [];
    return [{ at, person, makers: revoked ? [] : this.#voicesOf(by, at) }];
  }

  /** The current digest, and the previous one if there is one. */
  #digestsOf({ digest, previous }: KeyRecord): readonly string[] {
    const known = previous === null ? [digest] : [digest, previous.digest];
    return known.map((each) => each ?? this.#options.firstKey ?? "");
  }
}

/** The voices of everyone who changed a key within a day before a time. */
function makersOf(changes: readonly KeyChange[], at: number): readonly string[] {
  return [...new Set(changes.flatMap((change) => (at < change.at + dayMs ? change.makers : [])))];
}

/** Another sign-in has recorded the same groups meanwhile. */
const statedElsewhere = refuse("conflict", "the key has these groups already");

/**
 * Returns true if both are the same row, read twice. A different row with the same number has another time or content.
 */
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
  scopes: ["check", "rules", "receipts", "outcome"],
  tools: null,
  rate: null,
  revoked: false,
};

const operatorRecord: KeyRecord = { ...firstRecord, name: operatorName, scopes: ["admin"] };

/** The key of an operator who works on the gate's own files. */
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
    person: record.person,
    groups: record.groups ?? [],
    kind: record.kind,
  };
}
