import type { Ledger } from "../../ledger/mod.ts";
import type { Receipt } from "../../../../core/src/record/entry/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { AdminEvent, AdminEvents } from "../policy/admin-event.ts";
import { KnownKeys, isSame, type KeyStanding } from "./known-keys.ts";
import { groupsEvent } from "./oidc-groups.ts";
import type { KeyRecord } from "./record.ts";

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

const usesEveryMs = 60_000;

/** Keeps the keys in memory equal to the administrative events in the root's ledger, the only store of keys. */
export class KeyRing {
  /** The keys after the rows that this process has read. */
  readonly known: KnownKeys;
  readonly isTenant: (id: string) => boolean;
  readonly now: () => number;
  readonly #gate: AdminEvents;
  readonly #ledger: KeyRingOptions["ledger"];
  readonly #timer: NodeJS.Timeout;
  /** How many changes by this process may be on disk and not folded yet. */
  #appending = 0;

  private constructor({ firstKey, gate, isTenant, ledger, now = Date.now }: KeyRingOptions) {
    this.#gate = gate;
    this.#ledger = ledger;
    this.isTenant = isTenant;
    this.now = now;
    this.known = new KnownKeys(firstKey, now);
    this.#timer = setInterval(() => void this.keepUses(), usesEveryMs).unref();
  }

  static async open(options: KeyRingOptions): Promise<KeyRing> {
    const ring = new KeyRing(options);
    await ring.refresh();
    return ring;
  }

  /** Returns all keys, or the keys of one tenant, sorted by name. */
  async list(tenant?: string): Promise<readonly KeyStanding[]> {
    const noted = await this.#ledger.keyNotes.uses();
    return [...this.known.standings]
      .filter(([, { record }]) => tenant === undefined || record.tenant === tenant)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { record, created, lastUsed }]) => {
        const used = Math.max(lastUsed ?? 0, noted.get(id) ?? 0);
        return { record, created, lastUsed: used === 0 ? null : used };
      });
  }

  /** Folds the changes since the last call, by this gate or by another gate on the same ledger. */
  async refresh(): Promise<void> {
    const { rows } = this.#ledger;
    const { last, lastRow } = this.known;
    const found = await rows.changes(Math.max(0, lastRow - 1));
    const [again] = found;
    if (last === undefined || (again !== undefined && isSame(last, again))) {
      for (const change of found) this.known.fold(change);
      return;
    }
    const all = await rows.changes(0);
    // A shorter history may come from a standby that is behind. Following it would make revoked keys valid again.
    if (all.every((change) => this.known.hasFolded(change))) return;
    // The last folded row is not in the ledger: only a lost server had it. It never took effect, so fold again.
    this.known.forget();
    for (const change of all) this.known.fold(change);
  }

  /** Folds the changes that are not folded yet. A ledger that only this process writes has none between its own changes. */
  async catchUp(): Promise<void> {
    if (this.#ledger.isShared || this.#appending > 0) await this.refresh();
  }

  /** Records a change, which takes effect immediately. `decide` sees all earlier changes, of any gate. */
  async append(decide: Decide): Promise<Result<Receipt, Refusal>> {
    this.#appending += 1;
    try {
      const done = await this.#gate.appendAdminEvent(async (transaction) => {
        if (transaction.store.changed !== this.known.lastRow) await this.refresh();
        return decide();
      });
      if (done.ok) await this.refresh();
      return done;
    } finally {
      this.#appending -= 1;
    }
  }

  /**
   * Records the groups that a provider of OpenID Connect states for the person of a key, if they differ.
   *
   * @param groups without the prefix that they get
   */
  async stateGroups(of: Pick<KeyRecord, "name" | "tenant">, groups: readonly string[]): Promise<Result<void, Refusal>> {
    await this.catchUp();
    const event = (): AdminEvent | undefined => {
      const record = this.known.findState(of)?.record;
      return record && groupsEvent(record, groups);
    };
    if (event() === undefined) return good(undefined);
    const done = await this.append(() => {
      const still = event();
      return still === undefined ? bad(statedElsewhere) : good(still);
    });
    return done.ok || done.problem === statedElsewhere ? good(undefined) : done;
  }

  /** Records when keys were used, if any was used since the last call. A failure is ignored. */
  async keepUses(): Promise<void> {
    const uses = this.known.takeUses();
    if (uses.size > 0) await this.#ledger.keyNotes.keepUses(uses).catch(() => undefined);
  }

  /** Call this before the ledger is closed. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.keepUses();
  }
}

type Decide = () => Promise<Result<AdminEvent, Refusal>> | Result<AdminEvent, Refusal>;

/** Another sign-in has recorded the same groups meanwhile. */
const statedElsewhere = refuse("conflict", "the key has these groups already");
