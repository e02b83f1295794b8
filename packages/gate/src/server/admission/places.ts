import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { Shares, type KeyOwner } from "./shares.ts";

export interface PlacesOptions {
  /** The most places of one key, and of all keys. */
  readonly ofKeyMax: number;
  readonly max: number;
  /** Makes the sentence of a refusal from the numbers of taken places: those of the key, and all. */
  readonly refusal: (ofKey: number, all: number) => string;
}

interface TakenPlace {
  /** Asks its request to end; undefined if it cannot. */
  readonly leave: (() => void) | undefined;
}

/**
 * Counts requests that stay open, so that no key and no crowd of keys takes too many. If all places are taken, a key that
 * has less than its share gets one from a key that has more.
 */
export class Places {
  readonly #options: PlacesOptions;
  readonly #places = new Shares<TakenPlace>();

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#places.size;
  }

  /**
   * Takes a place for a key.
   *
   * @param leave ends the request early, without harm; its place is free at once
   * @returns a function that gives the place back
   */
  enter(key: KeyOwner, leave?: () => void): Result<() => void, Refusal> {
    const places = this.#places;
    const { ofKeyMax, max, refusal } = this.#options;
    const [ofKey, all] = [places.of(key), places.size];
    const full = bad(refuse("too-many-waiting", refusal(ofKey, all)));
    if (ofKey >= ofKeyMax) return full;
    const place: TakenPlace = { leave };
    places.add(place, key);
    if (all >= max) {
      const [greatest = []] = places.pastShare(max);
      const oldest = greatest.includes(place) ? undefined : greatest[0];
      if (oldest?.leave === undefined) {
        places.delete(place);
        return full;
      }
      places.delete(oldest);
      oldest.leave();
    }
    return good(() => places.delete(place));
  }
}
