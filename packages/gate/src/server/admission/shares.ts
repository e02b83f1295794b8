/** The owner of something: a key of the root, whose tenant is null, or of a tenant. */
export interface KeyOwner {
  readonly id: string;
  readonly tenant: string | null;
}

interface OfTenant<Item> {
  /** By the id of a key; each key's items from the oldest. */
  readonly keys: Map<string, Set<Item>>;
  /** The number of items of all keys. */
  count: number;
}

/** How much keys have of something scarce, such as connections. Adding, counting and deleting take constant time. */
export class Shares<Item> {
  readonly #owners = new Map<Item, KeyOwner>();
  readonly #tenants = new Map<string | null, OfTenant<Item>>();

  get size(): number {
    return this.#owners.size;
  }

  of({ tenant, id }: KeyOwner): number {
    return this.#tenants.get(tenant)?.keys.get(id)?.size ?? 0;
  }

  /** The number of items of all keys of one tenant. */
  ofTenant(tenant: string | null): number {
    return this.#tenants.get(tenant)?.count ?? 0;
  }

  /** The number of keys that have something. */
  get owners(): number {
    return [...this.#tenants.values()].reduce((sum, { keys }) => sum + keys.size, 0);
  }

  get all(): readonly Item[] {
    return [...this.#owners.keys()];
  }

  get oldest(): readonly Item[] {
    return [...this.#tenants.values()].flatMap(({ keys }) =>
      [...keys.values()].flatMap((items) => [...items.values().take(1)]),
    );
  }

  /** @param item one that nobody has */
  add(item: Item, owner: KeyOwner): void {
    const { tenant, id } = owner;
    const of = this.#tenants.getOrInsertComputed(tenant, () => ({ keys: new Map<string, Set<Item>>(), count: 0 }));
    of.keys.getOrInsertComputed(id, () => new Set<Item>()).add(item);
    of.count += 1;
    this.#owners.set(item, owner);
  }

  delete(item: Item): void {
    const owner = this.#owners.get(item);
    if (owner === undefined) return;
    this.#owners.delete(item);
    const of = this.#tenants.get(owner.tenant);
    const items = of?.keys.get(owner.id);
    if (of === undefined || items === undefined) return;
    items.delete(item);
    of.count -= 1;
    if (items.size === 0) of.keys.delete(owner.id);
    if (of.count === 0) this.#tenants.delete(owner.tenant);
  }

  /**
   * Returns the items of each key that has more than its share of `max`, the greatest owner first. Tenants have equal
   * shares, and so have the keys of one tenant. If one does not use its share, the others have it. If more than `max` items are
   * in use, some key has more than its share.
   */
  pastShare(max: number): readonly (readonly Item[])[] {
    const past: Item[][] = [];
    const tenants = [...this.#tenants.values()].map(({ keys, count }) => ({ keys: [...keys.values()], count }));
    const ofTenant = shareOf(
      tenants.map(({ count }) => count),
      max,
    );
    for (const { keys, count } of tenants) {
      if (count <= ofTenant) continue;
      const ofKey = shareOf(
        keys.map(({ size }) => size),
        ofTenant,
      );
      for (const items of keys) if (items.size > ofKey) past.push([...items]);
    }
    return past.toSorted((a, b) => b.length - a.length);
  }
}

/** Returns how much each owner may have, so that all together have `max` and nobody could have more without harm to one with less. */
function shareOf(sizes: readonly number[], max: number): number {
  let [left, owners] = [max, sizes.length];
  for (const size of sizes.toSorted((a, b) => a - b)) {
    if (size * owners > left) return left / owners;
    left -= size;
    owners -= 1;
  }
  return Infinity;
}
