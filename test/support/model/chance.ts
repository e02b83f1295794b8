/** Random numbers that depend on a seed alone (mulberry32). */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** Returns a whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  often(share: number): boolean {
    return this.next() < share;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.whole(0, items.length - 1)];
    if (item === undefined && items.length === 0) throw new Error("nothing to pick from");
    return item as Item;
  }

  /** Returns some of the items, in their order. */
  some<Item>(items: readonly Item[], share: number): readonly Item[] {
    return items.filter(() => this.often(share));
  }

  many<Item>(from: number, to: number, make: (index: number) => Item): readonly Item[] {
    return Array.from({ length: this.whole(from, to) }, (_, index) => make(index));
  }

  /** Returns one of the ways, each as likely as its weight says. */
  way<Made>(ways: readonly (readonly [weight: number, make: () => Made])[]): Made {
    let left = this.next() * ways.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of ways) {
      left -= weight;
      if (left < 0) return make();
    }
    return this.pick(ways)[1]();
  }
}
