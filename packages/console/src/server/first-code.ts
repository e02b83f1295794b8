import { randomInt, timingSafeEqual } from "node:crypto";

/** No letters or digits that look alike. */
const letters = "ABCDEFGHJKMNPQRSTVWXYZ23456789";
const length = 8;
const validMs = 600_000;
const triesMax = 5;
/** Whoever has a key of a program must not fill the terminal with codes. */
const showEveryMs = 60_000;

/**
 * The one-time code of the first sign-in. The terminal of the gate shows it, so only a person who sees the terminal can
 * sign in. It is good once and for ten minutes, and five wrong codes end it. The next one then comes a minute after it.
 */
export class FirstCode {
  readonly #show: (sentence: string) => void;
  readonly #now: () => number;
  #code = "";
  #until = 0;
  #shown = -Infinity;
  #tries = 0;

  constructor(show: (sentence: string) => void, now: () => number = Date.now) {
    this.#show = show;
    this.#now = now;
  }

  /** Shows a code, unless the last one is still good, or wrong codes have just ended it. */
  show(): void {
    const now = this.#now();
    if (this.#isGood() || (this.#tries >= triesMax && now < this.#shown + showEveryMs)) return;
    this.#code = Array.from({ length }, () => letters.charAt(randomInt(letters.length))).join("");
    this.#shown = now;
    this.#until = now + validMs;
    this.#tries = 0;
    this.#show(`a code to sign in to the console: ${this.#code} (good once, for ten minutes)`);
  }

  /** Returns true if the code is the one that was shown. It is then used up. */
  redeem(code: string): boolean {
    if (!this.#isGood()) return false;
    this.#tries += 1;
    const given = Buffer.from(code.trim().toUpperCase());
    const isRight = given.length === length && timingSafeEqual(given, Buffer.from(this.#code));
    if (isRight) [this.#until, this.#tries] = [0, 0];
    return isRight;
  }

  #isGood(): boolean {
    return this.#now() < this.#until && this.#tries < triesMax;
  }
}
