/** Who holds something: a key of the root, whose tenant is null, or of a tenant. */
export interface Holder {
  readonly id: string;
  readonly tenant: string | null;
}

interface OfTenant<Item> {
  /** By the id of a key; each key's items from the oldest. */
  readonly keys: Map<string, Set<Item>>;
  /** The number of items of all keys. */
  held: number;
}

/** What keys hold of something scarce, such as connections. Adding, counting and deleting take constant time. */
export class Holdings<Item> {
  readonly #holders = new Map<Item, Holder>();
  readonly #tenants = new Map<string | null, OfTenant<Item>>();

  get size(): number {
    return this.#holders.size;
  }

  /** The number of items of one key. */
  of({ tenant, id }: Holder): number {
    return this.#tenants.get(tenant)?.keys.get(id)?.size ?? 0;
  }

  /** The number of items of all keys of one tenant. */
  ofTenant(tenant: string | null): number {
    return this.#tenants.get(tenant)?.held ?? 0;
  }

  /** The number of keys that hold something. */
  get holders(): number {
    return [...this.#tenants.values()].reduce((sum, { keys }) => sum + keys.size, 0);
  }

  /** All items. */
  get all(): readonly Item[] {
    return [...this.#holders.keys()];
  }

  /** The oldest item of each key. */
  get oldest(): readonly Item[] {
    return [...this.#tenants.values()].flatMap(({ keys }) =>
      [...keys.values()].flatMap((items) => [...items.values().take(1)]),
    );
  }

  /** @param item one that nobody holds */
  add(item: Item, holder: Holder): void {
    const { tenant, id } = holder;
    const of = this.#tenants.getOrInsertComputed(tenant, () => ({ keys: new Map<string, Set<Item>>(), held: 0 }));
    of.keys.getOrInsertComputed(id, () => new Set<Item>()).add(item);
    of.held += 1;
    this.#holders.set(item, holder);
  }

  delete(item: Item): void {
    const holder = this.#holders.get(item);
    if (holder === undefined) return;
    this.#holders.delete(item);
    const of = this.#tenants.get(holder.tenant);
    const items = of?.keys.get(holder.id);
    if (of === undefined || items === undefined) return;
    items.delete(item);
    of.held -= 1;
    if (items.size === 0) of.keys.delete(holder.id);
    if (of.held === 0) this.#tenants.delete(holder.tenant);
  }

  /**
   * Returns the items of each key that holds more than its share of `max`, the greatest holder first. Tenants have equal
   * shares, and so have the keys of one tenant. If one does not use its share, the others have it. If more than `max` items are
   * held, some key holds more than its share.
   */
  pastShare(max: number): readonly (readonly Item[])[] {
    const past: Item[][] = [];
    const tenants = [...this.#tenants.values()].map(({ keys, held }) => ({ keys: [...keys.values()], held }));
    const ofTenant = shareOf(
      tenants.map(({ held }) => held),
      max,
    );
    for (const { keys, held } of tenants) {
      if (held <= ofTenant) continue;
      const ofKey = shareOf(
        keys.map(({ size }) => size),
        ofTenant,
      );
      for (const items of keys) if (items.size > ofKey) past.push([...items]);
    }
    return past.toSorted((a, b) => b.length - a.length);
  }
}

/** Returns how much each holder may hold, so that all together hold `max` and nobody could have more without harm to one with less. */
function shareOf(held: readonly number[], max: number): number {
  let [left, holders] = [max, held.length];
  for (const size of held.toSorted((a, b) => a - b)) {
    if (size * holders > left) return left / holders;
    left -= size;
    holders -= 1;
  }
  return Infinity;
}
