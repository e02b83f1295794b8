/** Reads a moment: `at` of a receipt, in milliseconds since the epoch, or any text that `dayOrMoment` reads. */
export function readMoment(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : dayOrMoment(text);
}

/**
 * Reads a moment of RFC 3339, or a day, which starts at midnight UTC.
 *
 * @returns milliseconds since the epoch; undefined for any other text, and for a day or an hour that does not exist
 */
export function dayOrMoment(text: string): number | undefined {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  try {
    return Temporal.Instant.from(isDay ? `${text}T00:00:00Z` : text).epochMilliseconds;
  } catch {
    return undefined;
  }
}

const units: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a length of time such as `24h` or `7d`, in milliseconds; undefined for any other text. */
export function lengthMs(text: string): number | undefined {
  const [, count, unit] = /^(0|[1-9][0-9]{0,5})([smhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (units[unit ?? ""] ?? 0);
}
