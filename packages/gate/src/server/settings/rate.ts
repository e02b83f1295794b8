import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";

/** A rate limit: a bucket of `burst` requests that fills by `perSecond`. Both are whole numbers, at least 1. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** More than a gate on one machine can do. Up to this rate the arithmetic of buckets is exact. */
export const rateMax = 1_000_000;

/**
 * Reads `200/s`, `200/s burst 400`, or `200/s:400`, the form in a key's record. The default burst is one second's
 * requests.
 */
export function parseRate(text: string): Result<Rate, string> {
  const [, perSecond, burst = perSecond] =
    /^ *([1-9][0-9]{0,6})\/s(?:(?::| +burst +)([1-9][0-9]{0,6}))? *$/.exec(text) ?? [];
  const rate = { perSecond: Number(perSecond), burst: Number(burst) };
  if (rate.perSecond <= rateMax && rate.burst <= rateMax) return good(rate);
  return bad(`"${text}" is not a rate; write it as 200/s or 200/s burst 400, up to ${rateMax}`);
}
