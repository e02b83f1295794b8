import { parseDuration, parseTimestamp } from "../../value/time.ts";
import type { Exact } from "../../value/rational.ts";
import { Duration, Timestamp } from "../../value/value.ts";
import type { ContractFunction } from "../../core/function.ts";

export const timeFunctions: readonly ContractFunction[] = [
  {
    name: "duration",
    style: "function",
    parameters: ["string"],
    result: { kind: "duration" },
    doc: "A duration: a sequence of numbers with units `h`, `m`, `s`, `ms`, `us`, `ns`.",
    examples: [['duration("1h30m")', "5400s"]],
    run: ([text]) => new Duration(parseDuration(text as string)),
  },
  {
    name: "timestamp",
    style: "function",
    parameters: ["string"],
    result: { kind: "timestamp" },
    doc: "The time in an RFC 3339 text.",
    examples: [['timestamp("1970-01-01T00:01:00Z") == timestamp(60)', "true"]],
    run: ([text]) => new Timestamp(parseTimestamp(text as string)),
  },
  {
    name: "timestamp",
    style: "function",
    parameters: ["number"],
    result: { kind: "timestamp" },
    doc: "The time that many seconds after 1970-01-01T00:00:00Z.",
    examples: [['timestamp(90) - timestamp(60) == duration("30s")', "true"]],
    run: ([seconds]) => new Timestamp(seconds as Exact),
  },
];
