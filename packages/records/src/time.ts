const moment = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3})?(?:Z|[+-][0-9]{2}:[0-9]{2})$/;
const pause = /^(?:[0-9]{1,9}(?:ms|s|m|h|d))+$/;

const msIn: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds since the epoch for an RFC 3339 text; undefined if it is not one. */
export function momentOf(text: string): number | undefined {
  if (!moment.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Milliseconds of a duration such as `90s` or `1h30m`; undefined if it is not one. */
export function pauseOf(text: string): number | undefined {
  if (!pause.test(text)) return undefined;
  let ms = 0;
  for (const [, count, unit = ""] of text.matchAll(/([0-9]+)(ms|s|m|h|d)/g)) ms += Number(count) * (msIn[unit] ?? 0);
  return Number.isSafeInteger(ms) ? ms : undefined;
}
