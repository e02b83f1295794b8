import { lengthMs, readMoment } from "../../gate/src/server/mod.ts";
import { parseLeaf } from "../../core/src/record/entry/mod.ts";
import { isMode, modes, visible, type Mode } from "../../core/src/wire/mod.ts";
import type { History } from "./history.ts";
import { BadInput } from "../../gate/src/cli/mod.ts";

/** Options that choose a part of a ledger. */
export interface SpanOptions {
  /** A time, or how long ago: receipts of that time and later. */
  readonly since?: string | undefined;
  /** A time, or how long ago: receipts before that time. */
  readonly until?: string | undefined;
  /** The last N rows of those. */
  readonly last?: string | undefined;
}

/** The parsed options: times in milliseconds since the epoch. */
interface SpanRequest {
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly last: number | undefined;
}

/** Rows by number. */
export interface RowSpan {
  readonly first: number;
  /** The number after the last row. */
  readonly end: number;
}

/** The last rows of a time. */
export interface LastRows extends RowSpan {
  /** The earlier rows of that time. */
  readonly leftOut: number;
}

export const everyRow: RowSpan = { first: 1, end: Infinity };

/** @param now milliseconds since the epoch: relative times count from it. @throws {BadInput} */
export function readSpan({ since, until, last }: SpanOptions, now: number): SpanRequest {
  const wanted = {
    since: readTime("--since", since, now),
    until: readTime("--until", until, now),
    last: last === undefined ? undefined : readWhole("--last", last, 1),
  };
  if ((wanted.since ?? 0) > (wanted.until ?? Infinity)) throw new BadInput("--since must not be after --until");
  return wanted;
}

/** Finds the rows without reading those before them, unless the history is a file. */
export async function rowsWithin(history: History, { since, until, last }: SpanRequest): Promise<LastRows> {
  const end = until === undefined ? Infinity : await firstSince(history, until);
  const ofTime = since === undefined ? 1 : await firstSince(history, since);
  const ofLast = last === undefined ? 1 : Math.min(end, (await lastOf(history)) + 1) - last;
  const first = Math.max(1, ofTime, ofLast);
  return { first, end, leftOut: first - Math.max(1, ofTime) };
}

/** The first row at or after a time. No row is earlier than the row before it. */
export async function firstSince(history: History, at: number): Promise<number> {
  if (history.firstSince !== undefined) return history.firstSince(at);
  let first = 1;
  for await (const slice of history.scan(1))
    for (const { seq, leaf } of slice) if ((parseLeaf(leaf)?.at ?? at) < at) first = seq + 1;
  return first;
}

async function lastOf(history: History): Promise<number> {
  if (history.rows !== undefined) return history.rows;
  let last = 0;
  for await (const slice of history.scan(1)) last = slice.at(-1)?.seq ?? last;
  return last;
}

function readTime(option: string, text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const length = lengthMs(text);
  const at = length === undefined ? readMoment(text) : now - length;
  if (at !== undefined) return at;
  throw new BadInput(
    `${option} must be an age such as 24h or 7d, a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z, ` +
      `not ${visible(text)}`,
  );
}

export function readMode(text: string): Mode {
  if (isMode(text)) return text;
  throw new BadInput(`--mode must be one of ${modes.join(", ")}, not "${text}"`);
}

export function readWhole(option: string, text: string, least: number): number {
  if (/^[0-9]{1,15}$/.test(text) && Number(text) >= least) return Number(text);
  throw new BadInput(`${option} must be a whole number of ${least} or more, not "${text}"`);
}
