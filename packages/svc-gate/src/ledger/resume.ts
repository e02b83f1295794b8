import { rename } from "node:fs/promises";
import type { Canonical } from "../wire/mod.ts";
import { pinOf } from "./data-folder.ts";
import { partText } from "./entry/evidence.ts";
import type { Leaf } from "./entry/leaf.ts";
import type { Change, Ledger } from "./ledger.ts";
import { openLedger, type LedgerOptions } from "./opening.ts";
import { readPin, type Pin } from "./history/pin.ts";
import { divergences, seenHeads, type AskOthers, type Divergence, type ObservedHead } from "./history/observed.ts";
import { LedgerRefused } from "./store/store.ts";

/** The act of a row that goes on after a restore, or that resets counters later. */
export const resumeAct = "resume";

/** What was seen of a ledger, answered, and is not there any more. */
export interface Loss {
  /** From a row to a row; null where nothing says how far it went. */
  readonly lost: readonly [from: number, to: number | null];
  readonly pin: Pin | undefined;
  /** Checkpoints over rows that are not there. */
  readonly checkpoints: readonly Seen[];
  /** The first row that differs from the observed one; undefined if rows are only missing. */
  readonly forked: number | undefined;
}

/** A head by which a loss is known again: the hash of a row, or the root of a tree. */
type Seen = readonly [seq: number, hash: string];

/** A ledger that is behind or beside what was seen of it, open: nobody else has it. */
export interface PastPin {
  readonly ledger: Ledger;
  readonly loss: Loss;
  /** A row records this very loss already: only the pin had not been moved. */
  readonly recorded: boolean;
  /** Puts checkpoints over rows that are gone aside, before the row that records the loss. */
  readonly putAside: () => Promise<void>;
  /** Moves the pin to the last row, where only that was left to do. */
  readonly settle: () => void;
}

/**
 * Opens a ledger past its pin, which is the one way to do so. It must be sound, and something that was seen of it must be
 * gone, or nothing may say what was seen.
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
        `the ledger is broken at row ${broken.seq}: ${broken.problem}; it must be whole before it goes on: restore a backup`,
      );
    const { name, head } = ledger;
    const seen = [...near, ...(await askOthers(name))];
    const all = await divergences({ name, rows: head.seq, hashes: ledger.hashes }, seen);
    const stated = statedLosses(await ledger.changes(0));
    const unstated = all.filter(({ head: lost }) => !stated.names(lost));
    if (all.length === 0 && seen.length > 0) {
      const far = seen.toSorted((a, b) => b.seq - a.seq)[0];
      throw new LedgerRefused(
        `nothing is lost: the ${far?.by} has seen row ${far?.seq}, and the ledger has it, of ${head.seq} rows; start the gate`,
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

/** A forked row proves only itself different: rows before it may differ, too. */
function lossOf(last: number, pin: Pin | undefined, diverged: readonly Divergence[]): Loss {
  const checkpoints = diverged.filter(({ head }) => head.hash === undefined).map(({ head }) => seenOf(head));
  if (diverged.length === 0) return { lost: [last + 1, null], pin, checkpoints, forked: undefined };
  const forks = diverged.filter(({ kind }) => kind === "forked").map(({ head }) => head.seq);
  const forked = forks.length === 0 ? undefined : Math.min(...forks);
  const to = Math.max(...diverged.map(({ head }) => head.seq));
  return { lost: [forked ?? last + 1, to], pin, checkpoints, forked };
}

function seenOf({ hash, root, seq }: Pick<ObservedHead, "hash" | "root" | "seq">): Seen {
  return [seq, hash ?? root ?? ""];
}

/** The losses that rows of `svc-gate resume` state. */
export interface StatedLosses {
  /** Does a row name this very head? */
  readonly names: (head: Pick<ObservedHead, "hash" | "root" | "seq">) => boolean;
  /** Does a row name the head, or state its rows lost after it was observed? Later rows reuse the numbers of lost ones. */
  readonly covers: (head: Pick<ObservedHead, "at" | "hash" | "root" | "seq">) => boolean;
}

/** @param changes administrative rows, oldest first */
export function statedLosses(changes: readonly Pick<Change, "act" | "at" | "body">[]): StatedLosses {
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
  const names: StatedLosses["names"] = (head) => named.has(seenOf(head).join(" "));
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

/** What a row says that goes on after a restore, or resets counters later. Counters stand under their digests. */
export interface ResumeRow {
  /** Undefined in a row that only resets counters. */
  readonly lost: readonly [from: number, to: number | null] | undefined;
  readonly pin: Pick<Pin, "hash" | "seq"> | null;
  readonly checkpoints: readonly Seen[];
  /** Counters that count from zero from this row on, each with its name. */
  readonly reset: ReadonlyMap<string, string>;
  /** Counters that were kept and are not known through this row. */
  readonly unknown: readonly string[];
}

/** The body of such a row; without a loss, of one that only resets counters. */
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

/** Reads such a row back, from stored evidence whose digest was checked; undefined for every other row. */
export function readResume({ act }: Leaf, evidence: string): ResumeRow | undefined {
  return act === resumeAct ? resumeOf(act, partText(evidence, "input") ?? "{}") : undefined;
}

/** The same from a person's act and its body. */
export function resumeOf(act: string, body: string): ResumeRow | undefined {
  if (act !== resumeAct) return undefined;
  const { checkpoints = [], lost, pin = null, reset = [], unknown = [] } = JSON.parse(body) as Partial<WrittenRow>;
  return { checkpoints, lost, pin, reset: new Map(reset), unknown };
}

/**
 * Of a counter that is reset by a row at `at`: the last moment that counts no more. No row before the reset has the same
 * moment, because `resetMoment` is later than each of them.
 */
export function resetThroughOf(at: number): number {
  return at - 1;
}

/** The moment of a row that resets counters: at least `now`, and later than the last row. */
export function resetMoment(now: number, last: number): number {
  return Math.max(now, last + 1);
}

interface WrittenRow extends Omit<ResumeRow, "reset"> {
  readonly reset: readonly (readonly [counter: string, name: string])[];
}
