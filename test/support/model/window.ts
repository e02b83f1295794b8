import type { CalendarUnit, Window } from "./language.ts";
import { add, divide, fromInteger, fromText, multiply, type Fraction } from "./number.ts";

const secondsIn: Readonly<Record<string, Fraction>> = {
  h: fromInteger(3600),
  m: fromInteger(60),
  s: fromInteger(1),
  ms: { n: 1n, d: 1000n },
};

/** Reads "1h30m" as seconds. */
export function durationSeconds(text: string): Fraction {
  const negative = text.startsWith("-");
  let total = fromInteger(0);
  for (const [, count = "0", unit = "s"] of text.matchAll(/([0-9.]+)(h|ms|m|s)/g)) {
    total = add(total, multiply(fromText(count), secondsIn[unit] ?? fromInteger(0)));
  }
  return negative ? { n: -total.n, d: total.d } : total;
}

/** Reads "2026-01-31T12:00:00Z" as seconds since the epoch. */
export function momentSeconds(text: string): Fraction {
  return divide(fromInteger(new Date(text).getTime()), fromInteger(1000));
}

/** Returns whether an event of that time is in the window that ends now. */
export function lies(time: number, window: Window | undefined, now: number): boolean {
  if (time > now) return false;
  if (window === undefined) return true;
  if ("rolling" in window) {
    const length = multiply(durationSeconds(window.rolling), fromInteger(1000));
    return BigInt(time) * length.d > BigInt(now) * length.d - length.n;
  }
  return time >= periodStart(window, now);
}

const quarterHour = 15 * 60_000;
const weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/** Tries each quarter of an hour until one is in the period: every present-day offset is a multiple of it. */
function periodStart(window: Extract<Window, { unit: CalendarUnit }>, now: number): number {
  const timezone = window.timezone ?? "UTC";
  const local = clockIn(timezone, now);
  if (window.unit === "hour") {
    let start = Math.floor(now / quarterHour) * quarterHour;
    while (sameHour(clockIn(timezone, start - quarterHour), local)) start -= quarterHour;
    return start;
  }
  const first = firstDate(window.unit, local, weekdays.indexOf(window.weekStarts ?? "monday"));
  const farthest = 16 * 3_600_000;
  for (let start = first - farthest; ; start += quarterHour) {
    if (dateOf(clockIn(timezone, start)) >= first) return start;
  }
}

interface Clock {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly offset: string;
}

function sameHour(a: Clock, b: Clock): boolean {
  return dateOf(a) === dateOf(b) && a.hour === b.hour && a.offset === b.offset;
}

/** Returns the UTC time at which a date starts. */
function dateOf({ year, month, day }: Clock): number {
  return Date.UTC(year, month - 1, day);
}

function firstDate(unit: CalendarUnit, local: Clock, weekStarts: number): number {
  if (unit === "year") return Date.UTC(local.year, 0, 1);
  if (unit === "month") return Date.UTC(local.year, local.month - 1, 1);
  let date = dateOf(local);
  if (unit === "week") while (new Date(date).getUTCDay() !== weekStarts) date -= 86_400_000;
  return date;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function clockIn(timezone: string, time: number): Clock {
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat("en-US", {
      timeZone: timezone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      timeZoneName: "longOffset",
    });
  formats.set(timezone, format);
  const parts = format.formatToParts(time);
  const part = (type: string): string => parts.find((each) => each.type === type)?.value ?? "";
  return {
    year: Number(part("year")),
    month: Number(part("month")),
    day: Number(part("day")),
    hour: Number(part("hour")),
    offset: part("timeZoneName"),
  };
}
