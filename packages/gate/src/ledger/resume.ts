import { rename } from "node:fs/promises";
import type { Canonical } from "../../../core/src/wire/mod.ts";
import { pinOf } from "./files/data-folder.ts";
import { resumeAct } from "../../../core/src/record/entry/approval-rows.ts";
import { partText } from "../../../core/src/record/entry/evidence.ts";
import type { Leaf } from "../../../core/src/record/entry/leaf.ts";
import type { Ledger } from "./ledger.ts";
import type { RecordedChange } from "./history/history.ts";
import { openLedger, type LedgerOptions } from "./opening.ts";
import { readPin, type Pin } from "./history/pin.ts";
import { divergences, seenHeads, type AskOthers, type Divergence, type ObservedHead } from "./history/observed.ts";
import { LedgerRefused } from "./errors.ts";

export { resumeAct } from "../../../core/src/record/entry/approval-rows.ts";

/** Rows of a ledger that were seen and answered, and no longer exist. */
export interface Loss {
  /** The first and the last lost row; null if the last is unknown. */
  readonly lost: readonly [from: number, to: number | null];
  readonly pin: Pin | undefined;
  /** Checkpoints that cover lost rows. */
  readonly checkpoints: readonly LostHead[];
  /** The first row that differs from the observed one; undefined if rows are only missing. */
  readonly forked: number | undefined;
}

/** A head that identifies a loss: the hash of a row, or the root of a tree. */
type LostHead = readonly [seq: number, hash: string];

/** An open ledger that is behind an observed head or forked from it. Nobody else has it open. */
export interface PastPin {
  readonly ledger: Ledger;
  readonly loss: Loss;
  /** True if a row already records this loss, and only the pin was not moved. */
  readonly recorded: boolean;
  /** Renames checkpoints that cover lost rows, before the row that records the loss. */
  readonly putAside: () => Promise<void>;
  /** Moves the pin to the last row, if only that was left to do. */
  readonly settle: () => void;
}

/**
 * Opens a ledger that differs from its pin. This is the only way to do so. The ledger must be valid, and it must lack
 * an observed head, unless no head was observed at all.
 *
 * @throws {LedgerRefused} otherwise, and while a gate serves it
 */
export async function openPastPin(options: LedgerOptions, askOthers: AskOthers): Promise<PastPin> {
  const { folder, shared } = options;
  const pinFile = pinOf(options);
  const near = await seenHeads(shared === undefined ? folder : undefined, pinFile);
  const pin = pinFile === undefined ? undefined : await readPin(pinFile);
  const ledger = await openLedger({ ...options, isPastPin: true });
  try {
    const { broken } = await ledger.verify();
    if (broken !== undefined)
      throw new LedgerRefused(
        `the ledger is broken at row ${broken.seq}: ${broken.problem}; only a valid ledger can be resumed: restore a backup`,
      );
    const { name, head } = ledger;
    const seen = [...near, ...(await askOthers(name))];
    const all = await divergences({ name, rows: head.seq, hashes: ledger.hashes }, seen);
    const stated = statedLosses(await ledger.rows.changes(0));
    const unstated = all.filter(({ head: lost }) => !stated.names(lost));
    if (all.length === 0 && seen.length > 0) {
      const far = seen.toSorted((a, b) => b.seq - a.seq)[0];
      throw new LedgerRefused(
        `nothing is lost: the ${far?.by} has seen row ${far?.seq}, and the ledger has ${head.seq} rows, including that one; start the gate`,
      );
    }
    return {
      ledger,
      loss: lossOf(head.seq, pin, unstated),
      recorded: seen.length > 0 && unstated.length === 0,
      putAside: async () => {
        for (const {
          head: { file },
        } of all)
          if (file !== undefined) await rename(file, `${file}.lost`);
      },
      settle: () => ledger.pinHead(),
    };
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

/** Returns the loss. A forked row only proves that it differs itself: rows before it may differ, too. */
function lossOf(last: number, pin: Pin | undefined, diverged: readonly Divergence[]): Loss {
  const checkpoints = diverged.filter(({ head }) => head.hash === undefined).map(({ head }) => toLostHead(head));
  if (diverged.length === 0) return { lost: [last + 1, null], pin, checkpoints, forked: undefined };
  const forks = diverged.filter(({ kind }) => kind === "forked").map(({ head }) => head.seq);
  const forked = forks.length === 0 ? undefined : Math.min(...forks);
  const to = Math.max(...diverged.map(({ head }) => head.seq));
  return { lost: [forked ?? last + 1, to], pin, checkpoints, forked };
}

function toLostHead({ hash, root, seq }: Pick<ObservedHead, "hash" | "root" | "seq">): LostHead {
  return [seq, hash ?? root ?? ""];
}

/** The losses that rows of `svc-gate resume` state. */
export interface StatedLosses {
  /** Returns true if a row names exactly this head. */
  readonly names: (head: Pick<ObservedHead, "hash" | "root" | "seq">) => boolean;
  /**
   * Returns true if a row names the head, or if a row written after the head was observed declares the head's rows
   * lost. Later rows reuse the numbers of lost rows.
   */
  readonly covers: (head: Pick<ObservedHead, "at" | "hash" | "root" | "seq">) => boolean;
}

/** @param changes administrative rows, oldest first */
export function statedLosses(changes: readonly Pick<RecordedChange, "act" | "at" | "body">[]): StatedLosses {
  const rows = changes.flatMap(({ act, at, body }) => {
    const row = resumeOf(act, body);
    return row === undefined ? [] : [{ ...row, at }];
  });
  const named = new Set(
    rows.flatMap(({ checkpoints, pin }) => [
      ...(pin === null ? [] : [`${pin.seq} ${pin.hash}`]),
      ...checkpoints.map((seen) => seen.join(" ")),
    ]),
  );
  const names: StatedLosses["names"] = (head) => named.has(toLostHead(head).join(" "));
  return {
    names,
    covers: (head) =>
      names(head) ||
      rows.some(({ at, lost: [from, to] = [1, 0] }) => {
        const isLost = head.seq >= from && head.seq <= (to ?? Number.MAX_SAFE_INTEGER);
        return isLost && (head.at ?? 0) <= at;
      }),
  };
}

/** The content of a row that resumes a ledger or resets counters. Counters are named by their digests. */
export interface ResumeRow {
  /** Undefined in a row that only resets counters. */
  readonly lost: readonly [from: number, to: number | null] | undefined;
  readonly pin: Pick<Pin, "hash" | "seq"> | null;
  readonly checkpoints: readonly LostHead[];
  /** Counters that count from zero after this row, by digest, with their names. */
  readonly reset: ReadonlyMap<string, string>;
  /** Counters that are unknown up to this row. */
  readonly unknown: readonly string[];
}

/** Returns the body of such a row; without a loss, the row only resets counters. */
export function resumeBody(
  loss: Loss | undefined,
  { reset, unknown }: Pick<ResumeRow, "reset" | "unknown">,
): Canonical {
  const names = { reset: [...reset] };
  if (loss === undefined) return names;
  const { checkpoints, forked, lost, pin } = loss;
  return {
    ...(checkpoints.length === 0 ? {} : { checkpoints: checkpoints.map((seen) => [...seen]) }),
    lost: [...lost],
    ...(forked === undefined ? {} : { forked }),
    pin: pin === undefined ? null : { hash: pin.hash, seq: pin.seq },
    ...names,
    unknown: [...unknown],
  };
}

/** Reads such a row from stored evidence with a verified digest; undefined for any other row. */
export function readResume({ act }: Leaf, evidence: string): ResumeRow | undefined {
  return act === resumeAct ? resumeOf(act, partText(evidence, "input") ?? "{}") : undefined;
}

/** Reads such a row from an administrative event and its body. */
export function resumeOf(act: string, body: string): ResumeRow | undefined {
  if (act !== resumeAct) return undefined;
  const { checkpoints = [], lost, pin = null, reset = [], unknown = [] } = JSON.parse(body) as Partial<WrittenRow>;
  return { checkpoints, lost, pin, reset: new Map(reset), unknown };
}

/**
 * Returns the last time that a reset at `at` excludes. No earlier row has the same time as the reset, because
 * `resetMoment` is later than each of them.
 */
export function resetThroughOf(at: number): number {
  return at - 1;
}

/** Returns the time of a row that resets counters: at least `now`, and later than the last row. */
export function resetMoment(now: number, last: number): number {
  return Math.max(now, last + 1);
}

interface WrittenRow extends Omit<ResumeRow, "reset"> {
  readonly reset: readonly (readonly [counter: string, name: string])[];
}
