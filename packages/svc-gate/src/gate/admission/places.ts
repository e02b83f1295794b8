import { bad, good, refuse, type Refusal, type Result } from "../../wire/mod.ts";

export interface PlacesOptions {
  /** The most places of one key, and of all keys. */
  readonly ofKeyMax: number;
  readonly max: number;
  /** Makes the sentence of a refusal from the numbers of taken places: those of the key, and all. */
  readonly refusal: (ofKey: number, all: number) => string;
}

/** Counts requests that stay open, so that no key and no crowd of keys holds too many. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #byKey = new Map<string, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  /** The number of places that are taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a place for a key.
   *
   * @returns a function that gives the place back; call it once
   */
  enter(key: string): Result<() => void, Refusal> {
    const { ofKeyMax, max, refusal } = this.#options;
    const ofKey = this.#byKey.get(key) ?? 0;
    if (ofKey >= ofKeyMax || this.#taken >= max) return bad(refuse("too-many-waiting", refusal(ofKey, this.#taken)));
    this.#byKey.set(key, ofKey + 1);
    this.#taken += 1;
    return good(() => {
      this.#taken -= 1;
      const left = (this.#byKey.get(key) ?? 1) - 1;
      if (left === 0) this.#byKey.delete(key);
      else this.#byKey.set(key, left);
    });
  }
}
