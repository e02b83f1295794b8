import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { el } from "./elements.ts";
import { gateNow } from "./gate.ts";

const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const clockWithSeconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "narrow" });
const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;
const dayMs = 86_400_000;

const ticks = new Set<() => void>();
setInterval(() => ticks.forEach((tick) => tick()), 1000);

/** Ages over a minute are shown in minutes, so they need a new look only now and then. */
const minuteMs = 60_000;
const slowMs = 15_000;

/** The gate's time now, which ticks each second; far from a moment, each 15 seconds. */
function useNow(near?: number): number {
  const [now, setNow] = useState(gateNow);
  useEffect(() => {
    let last = gateNow();
    const tick = (): void => {
      const next = gateNow();
      if (near !== undefined && Math.abs(next - near) > minuteMs && next - last < slowMs) return;
      last = next;
      setNow(next);
    };
    ticks.add(tick);
    return () => {
      ticks.delete(tick);
    };
  }, [near]);
  return now;
}

/** A moment as an age, with the date and time as its title. */
export function Ago({ at }: { readonly at: number }): JSX.Element {
  const now = useNow(at);
  const { unit, count } = span(at - now);
  const text = count === 0 ? "now" : relative.format(count, unit);
  return el.time({ dateTime: new Date(at).toISOString(), title: absolute.format(at) }, text);
}

/** A moment with date and time. */
export function Moment({ at }: { readonly at: number }): JSX.Element {
  return el.time({ dateTime: new Date(at).toISOString() }, absolute.format(at));
}

/** A moment in short: the time of today, else with the day. */
export function momentText(at: number): string {
  return (Math.abs(at - Date.now()) < dayMs / 2 ? clock : dayAndClock).format(at);
}

/** A time with its seconds. */
export function secondText(at: number): string {
  return clockWithSeconds.format(at);
}

/** A day in short. */
export function dayText(at: number): string {
  return day.format(at);
}

interface CountdownProps {
  readonly until: number;
  /** When the time started to run, for the bar; undefined shows no bar. */
  readonly from?: number;
  readonly label: string;
}

/** The time that is left, which ticks. */
export function Countdown({ until, from, label }: CountdownProps): JSX.Element {
  const now = useNow();
  const left = Math.max(0, until - now);
  const share = from === undefined ? undefined : Math.min(1, left / Math.max(1, until - from));
  const text = left === 0 ? "time over" : lengthText(left);
  const isLate = share !== undefined && share < 0.2;
  return el.span(
    { class: isLate ? "countdown late" : "countdown", title: absolute.format(until) },
    el.span({ class: "left" }, text),
    left > 0 && el.span(` ${label}`),
    share !== undefined && el.progress({ max: 1, value: share, "aria-label": `${label}: ${text}` }),
  );
}

/** A length of time in its two largest units, such as `12m 05s`. */
export function lengthText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  if (days > 0) return `${days}d ${hours}h`;
  if (hours > 0) return `${hours}h ${String(minutes).padStart(2, "0")}m`;
  if (minutes > 0) return `${minutes}m ${String(seconds % 60).padStart(2, "0")}s`;
  return `${seconds}s`;
}

function span(ms: number): { readonly unit: "day" | "hour" | "minute" | "second"; readonly count: number } {
  for (const [unit, length] of units) if (Math.abs(ms) >= length) return { unit, count: Math.trunc(ms / length) };
  return { unit: "second", count: Math.min(0, Math.trunc(ms / 1000)) };
}
