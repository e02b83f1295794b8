/** A histogram: the number of values at or below each bound, and their sum. Adding a value takes a few nanoseconds. */
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
    let index = 0;
    while (index < bounds.length && value > (bounds[index] as number)) index += 1;
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#sum += value;
  }

  get sum(): number {
    return this.#sum;
  }

  /** The number of values at or below each bound, and last of all values. */
  get below(): readonly number[] {
    let below = 0;
    return Array.from(this.#counts, (count) => (below += count));
  }
}
