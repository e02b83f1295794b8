import { Dice } from "../campaign/random.ts";

/** Random choices that depend on a seed alone. */
export class Chance extends Dice {
  /** Returns a whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number {
    return from + Math.floor(this.roll() * (to - from + 1));
  }

  often(share: number): boolean {
    return this.roll() < share;
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
    let left = this.roll() * ways.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of ways) {
      left -= weight;
      if (left < 0) return make();
    }
    return this.pick(ways)[1]();
  }
}
