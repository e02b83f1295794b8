/** How many values fell at or under each bound, and their sum: a histogram that costs a few nanoseconds to add to. */
export class Series {
  readonly bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds } = this;
    let place = 0;
    while (place < bounds.length && value > (bounds[place] as number)) place += 1;
    this.#counts[place] = (this.#counts[place] as number) + 1;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  /** For each bound, and last for all values, how many were at or under it. */
  get below(): readonly number[] {
    let below = 0;
    return Array.from(this.#counts, (count) => (below += count));
  }
}
