import { bad, good, type Result } from "../../wire/mod.ts";
import type { Rate } from "../admin/keys/record.ts";
import type { Key } from "../admin/keys/ring.ts";

/** What is left to a key after one request was charged. */
export interface Charged {
  readonly rate: Rate;
  /** False: there was nothing left for this one. */
  readonly ok: boolean;
  readonly left: number;
  /** Seconds until one more is let in, and until the bucket is full: whole, rounded up. */
  readonly nextSeconds: number;
  readonly fullSeconds: number;
}

export interface RatesOptions {
  /** What holds for a key that has no rate of its own; undefined is none. */
  readonly fallback: (tenant: string | null) => Rate | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** One token, in the unit in which a bucket is kept: each microsecond adds `perSecond` of them, so nothing is rounded. */
const token = 1_000_000;

interface Bucket {
  rate: Rate;
  level: number;
  /** Microseconds. */
  at: number;
}

/** Buckets that are full are as good as none: they go when there are so many, and again at each doubling. */
const sweepAt = 1024;

/**
 * A token bucket for each key that has a rate: it holds `burst` requests and fills by `perSecond`. A request is charged
 * once, whatever becomes of it.
 */
export class Rates {
  readonly #fallback: RatesOptions["fallback"];
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();
  #sweepAt = sweepAt;

  constructor({ fallback, now = () => performance.now() }: RatesOptions) {
    this.#fallback = fallback;
    this.#now = now;
  }

  /** Buckets that are kept now. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Charges one request to a key; undefined where the key has no rate. */
  charge({ id, tenant, rate }: Pick<Key, "id" | "rate" | "tenant">): Charged | undefined {
    const its = rate ?? this.#fallback(tenant);
    if (its === undefined) return undefined;
    const bucket = this.#bucket(id, its);
    const ok = bucket.level >= token;
    if (ok) bucket.level -= token;
    return {
      rate: its,
      ok,
      left: Math.floor(bucket.level / token),
      nextSeconds: Math.max(1, secondsUntil(token, bucket)),
      fullSeconds: secondsUntil(its.burst * token, bucket),
    };
  }

  #bucket(id: string, rate: Rate): Bucket {
    const at = Math.floor(this.#now() * 1000);
    const known = this.#buckets.get(id);
    if (known !== undefined) {
      fill(known, rate, at);
      return known;
    }
    if (this.#buckets.size >= this.#sweepAt) this.#sweep(at);
    const bucket = { rate, level: rate.burst * token, at };
    this.#buckets.set(id, bucket);
    return bucket;
  }

  #sweep(at: number): void {
    for (const [id, bucket] of this.#buckets) {
      fill(bucket, bucket.rate, at);
      if (bucket.level === bucket.rate.burst * token) this.#buckets.delete(id);
    }
    this.#sweepAt = Math.max(sweepAt, this.#buckets.size * 2);
  }
}

/** A rate that was changed holds from now on; what was left stays, as far as the new burst has room. */
function fill(bucket: Bucket, rate: Rate, at: number): void {
  const room = rate.burst * token - bucket.level;
  const elapsed = at - bucket.at;
  // Compared by division: the product could be beyond what a number holds exactly.
  bucket.level = elapsed >= room / rate.perSecond ? rate.burst * token : bucket.level + elapsed * rate.perSecond;
  bucket.rate = rate;
  bucket.at = at;
}

function secondsUntil(level: number, bucket: Bucket): number {
  return Math.max(0, Math.ceil((level - bucket.level) / bucket.rate.perSecond / token));
}

/** No gate on one machine does more; below it the arithmetic of buckets is exact. */
const perSecondMax = 1_000_000;

/** Reads `200/s` or `200/s burst 400`, or as a key's rate is written, `200/s:400`; without a burst it is a second's worth. */
export function parseRate(text: string): Result<Rate, string> {
  const [, perSecond, burst = perSecond] =
    /^ *([1-9][0-9]{0,6})\/s(?:(?::| +burst +)([1-9][0-9]{0,6}))? *$/.exec(text) ?? [];
  const rate = { perSecond: Number(perSecond), burst: Number(burst) };
  if (rate.perSecond <= perSecondMax && rate.burst <= perSecondMax) return good(rate);
  return bad(`"${text}" is no rate; write it as 200/s or 200/s burst 400, up to ${perSecondMax}`);
}

/**
 * The rate and what is left of it as header fields (draft-ietf-httpapi-ratelimit-headers-11): `q` requests in any `w`
 * seconds, `r` left now, and `t` seconds until all of them are there again.
 */
export function rateFields({ rate, left, fullSeconds }: Charged): readonly (readonly [string, string])[] {
  const { perSecond, burst } = rate;
  return [
    ["ratelimit-policy", `"key";q=${burst};w=${Math.ceil(burst / perSecond)}`],
    ["ratelimit", `"key";r=${left};t=${fullSeconds}`],
  ];
}
