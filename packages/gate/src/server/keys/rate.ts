import type { Rate } from "../settings/rate.ts";
import type { ValidKey } from "./known-keys.ts";

/** The rest of a key's rate after one request was charged. */
export interface ChargeResult {
  readonly rate: Rate;
  /** False if nothing was left for this request. */
  readonly ok: boolean;
  readonly left: number;
  /** Seconds until another request is accepted, and until the bucket is full. Both are rounded up. */
  readonly nextSeconds: number;
  readonly fullSeconds: number;
}

export interface RatesOptions {
  /** The rate of a key that has no rate of its own; undefined means no limit. */
  readonly fallback: (tenant: string | null) => Rate | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
}

/** One token in the unit of a bucket's level. Each microsecond adds `perSecond` units, so nothing is rounded. */
const token = 1_000_000;

interface Bucket {
  rate: Rate;
  level: number;
  /** Microseconds. */
  at: number;
}

/**
 * The number of buckets at which full buckets are removed, because a full bucket limits nothing. This repeats at each
 * doubling.
 */
const sweepAt = 1024;

/**
 * A token bucket for each key that has a rate. It contains `burst` requests and fills by `perSecond`. A request is charged
 * once, whatever its result is.
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

  get size(): number {
    return this.#buckets.size;
  }

  /** Charges one request to a key; undefined if the key has no rate. */
  charge({ id, tenant, rate }: Pick<ValidKey, "id" | "rate" | "tenant">): ChargeResult | undefined {
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

/** Fills a bucket. A changed rate applies immediately; the old level stays, up to the new burst. */
function fill(bucket: Bucket, rate: Rate, at: number): void {
  const room = rate.burst * token - bucket.level;
  const elapsed = at - bucket.at;
  // Division, because the product could be too large for an exact number.
  bucket.level = elapsed >= room / rate.perSecond ? rate.burst * token : bucket.level + elapsed * rate.perSecond;
  bucket.rate = rate;
  bucket.at = at;
}

function secondsUntil(level: number, bucket: Bucket): number {
  return Math.max(0, Math.ceil((level - bucket.level) / bucket.rate.perSecond / token));
}

/**
 * Returns the rate and its rest as header fields (draft-ietf-httpapi-ratelimit-headers-11): `q` requests in any `w`
 * seconds, `r` left now, and `t` seconds until all are available again.
 */
export function rateFields({ rate, left, fullSeconds }: ChargeResult): readonly (readonly [string, string])[] {
  const { perSecond, burst } = rate;
  return [
    ["ratelimit-policy", `"key";q=${burst};w=${Math.ceil(burst / perSecond)}`],
    ["ratelimit", `"key";r=${left};t=${fullSeconds}`],
  ];
}
