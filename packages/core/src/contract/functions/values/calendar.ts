import type { PatternProblem } from "../../value/pattern.ts";
import { EvaluationError, floor } from "../../value/rational.ts";
import { isTimezone, weekdays } from "../../value/time.ts";
import { size, string } from "../../value/type.ts";
import { Timestamp, type Value } from "../../value/value.ts";
import type { ContractFunction } from "../../core/function.ts";

/** Calendar dates and clock times of a time zone. */
export const calendarFunctions: readonly ContractFunction[] = [
  {
    name: "day",
    style: "function",
    parameters: ["timestamp", "string"],
    result: string,
    doc: "The day of the week in a time zone: `monday` to `sunday`.",
    examples: [['day(timestamp("2026-01-31T23:30:00Z"), "Europe/Berlin")', '"sunday"']],
    checkLiteral: zoneProblem,
    cost: () => clockSteps,
    run: (args) => weekdays[localTime(args).dayOfWeek - 1] ?? "",
  },
  {
    name: "hour",
    style: "function",
    parameters: ["timestamp", "string"],
    result: size,
    doc: "The hour of the day in a time zone: 0 to 23.",
    examples: [['hour(timestamp("2026-07-01T22:30:00Z"), "Europe/Berlin")', "0"]],
    checkLiteral: zoneProblem,
    cost: () => clockSteps,
    run: (args) => localTime(args).hour,
  },
  {
    name: "date",
    style: "function",
    parameters: ["timestamp", "string"],
    result: string,
    doc: "The date in a time zone: year, month and day.",
    examples: [['date(timestamp("2026-01-31T23:30:00Z"), "Europe/Berlin")', '"2026-02-01"']],
    checkLiteral: zoneProblem,
    cost: () => clockSteps,
    run: (args) => localTime(args).toPlainDate().toString(),
  },
];

/** The lookup in a time zone's tables takes some 30 us. */
const clockSteps = 128;

/** @throws {EvaluationError} if the zone does not exist, or if the year does not have four digits */
function localTime([moment, zone]: readonly Value[]): Temporal.ZonedDateTime {
  const problem = zoneProblem(zone as string);
  if (problem !== undefined) throw new EvaluationError(problem.message);
  const seconds = floor((moment as Timestamp).seconds);
  if (seconds < firstSecond || seconds > lastSecond) throw new EvaluationError("a time outside the years 1 to 9999");
  return Temporal.Instant.fromEpochMilliseconds(Number(seconds) * 1000).toZonedDateTimeISO(zone as string);
}

/** 0001-01-02 and 9999-12-30: between them the year has four digits in every zone. */
const firstSecond = -62_135_510_400n;
const lastSecond = 253_402_128_000n;

function zoneProblem(zone: string): PatternProblem | undefined {
  if (isTimezone(zone)) return undefined;
  return { message: `"${zone.slice(0, 40)}" is not a time zone`, hint: 'write an IANA name such as "Europe/Berlin"' };
}
