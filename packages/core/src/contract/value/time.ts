import { divide, EvaluationError, fromBigint, type Exact } from "./rational.ts";

const nanosecondsIn: ReadonlyMap<string, bigint> = new Map([
  ["h", 3_600_000_000_000n],
  ["m", 60_000_000_000n],
  ["s", 1_000_000_000n],
  ["ms", 1_000_000n],
  ["us", 1000n],
  ["ns", 1n],
]);

/** A duration in seconds, as Go and CEL write it (`10m`, `1h30m`, `-1.5s`). @throws {EvaluationError} */
export function parseDuration(text: string): Exact {
  const whole = /^([+-]?)((?:[0-9]{1,15}(?:\.[0-9]{1,9})?(?:h|ms|us|ns|m|s))+|0)$/.exec(text);
  if (whole === null) throw new EvaluationError(`"${text.slice(0, 40)}" is not a duration such as "10m" or "1h30m"`);
  let nanoseconds = 0n;
  for (const [, count = "", fraction = "", unit = ""] of (whole[2] ?? "").matchAll(
    /([0-9]{1,15})(?:\.([0-9]{1,9}))?([a-z]+)/g,
  )) {
    nanoseconds += (BigInt(count + fraction.padEnd(9, "0")) * (nanosecondsIn.get(unit) ?? 0n)) / 1_000_000_000n;
  }
  return divide(fromBigint(whole[1] === "-" ? -nanoseconds : nanoseconds), 1_000_000_000);
}

/** A time in seconds since the epoch, from RFC 3339 with an offset. @throws {EvaluationError} */
export function parseTimestamp(text: string): Exact {
  const shape =
    /^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})$/;
  try {
    if (!shape.test(text) || text.slice(17, 19) === "60") throw new RangeError("shape");
    return divide(fromBigint(Temporal.Instant.from(text).epochNanoseconds), 1_000_000_000);
  } catch {
    throw new EvaluationError(`"${text.slice(0, 40)}" is not a time such as "2026-01-31T12:00:00Z"`);
  }
}

export const calendarUnits = ["hour", "day", "week", "month", "year"] as const;
export type CalendarUnit = (typeof calendarUnits)[number];

export const weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const;
export type Weekday = (typeof weekdays)[number];

export interface Calendar {
  readonly unit: CalendarUnit;
  /** An IANA name, such as `Europe/Berlin`. */
  readonly timezone: string;
  readonly weekStarts: Weekday;
}

/** The first millisecond of the calendar period that contains `now` (milliseconds since the epoch). */
export function calendarStart({ unit, timezone, weekStarts }: Calendar, now: number): number {
  const local = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone);
  if (unit === "hour") return local.round({ smallestUnit: "hour", roundingMode: "floor" }).epochMilliseconds;
  const day = local.startOfDay();
  if (unit === "day") return day.epochMilliseconds;
  const date = day.toPlainDate();
  const first =
    unit === "week"
      ? date.subtract({ days: (date.dayOfWeek - 1 - weekdays.indexOf(weekStarts) + 7) % 7 })
      : date.with(unit === "month" ? { day: 1 } : { month: 1, day: 1 });
  return first.toZonedDateTime(timezone).epochMilliseconds;
}

/** Does this runtime know the time zone? */
export function isTimezone(name: string): boolean {
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name);
    return /^[A-Za-z]/.test(name);
  } catch {
    return false;
  }
}
