import { bad, good, limits, refuse, type Refusal, type Result } from "../../wire/mod.ts";

/** Counts the open streams of a process, so that no key and no crowd of keys holds too many. */
export class Streams {
  readonly #byKey = new Map<string, number>();
  #open = 0;

  /** The number of open streams. */
  get open(): number {
    return this.#open;
  }

  /**
   * Takes a place for a stream of a key.
   *
   * @returns a function that gives the place back; call it once
   */
  enter(key: string): Result<() => void, Refusal> {
    const ofKey = this.#byKey.get(key) ?? 0;
    if (ofKey >= limits.streamsOfKeyMax || this.#open >= limits.streamsMax)
      return bad(
        refuse(
          "too-many-waiting",
          `${ofKey} streams of this key and ${this.#open} in all are open: close one, or ask again soon`,
        ),
      );
    this.#byKey.set(key, ofKey + 1);
    this.#open += 1;
    return good(() => {
      this.#open -= 1;
      const left = (this.#byKey.get(key) ?? 1) - 1;
      if (left === 0) this.#byKey.delete(key);
      else this.#byKey.set(key, left);
    });
  }
}
