import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { Canonical } from "../wire/mod.ts";
import { partText } from "./evidence.ts";
import { parseLeaf, type Leaf } from "./leaf.ts";
import type { Ledger } from "./ledger.ts";
import { openLedger, readLedger, type LedgerOptions } from "./opening.ts";
import { readPin, type Pin } from "./pin.ts";
import { partings, seenHeads, type Parting } from "./seen.ts";
import { LedgerRefused } from "./stores/store.ts";

/** The act of a row that goes on after a restore, or that enters what was lost later. */
export const resumeAct = "resume";

/** What was seen of a ledger, answered, and is not there any more. */
export interface Loss {
  /** From a row to a row; null where nothing says how far it went. */
  readonly lost: readonly [from: number, to: number | null];
  readonly pin: Pin | undefined;
  /** The row that is not the one which was seen; undefined where the rows are merely missing. */
  readonly parted: number | undefined;
}

/** A ledger that is behind or beside what was seen of it, open: nobody else has it. */
export interface PastPin {
  readonly ledger: Ledger;
  readonly loss: Loss;
  /** The row that records this very loss already: only the pin had not been moved. */
  readonly recorded: number | undefined;
  /** Puts a checkpoint over rows that are gone aside, before the row that records the loss. */
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
export async function openPastPin(options: LedgerOptions): Promise<PastPin> {
  const { folder, shared } = options;
  const pinFile = options.pinFile ?? (shared === undefined ? join(folder, "head.pin") : undefined);
  const seen = await seenHeads(shared === undefined ? folder : undefined, pinFile);
  const pin = pinFile === undefined ? undefined : await readPin(pinFile);
  await requireLedger(options);
  const ledger = await openLedger({ ...options, isPastPin: true });
  try {
    const { broken } = await ledger.verify();
    if (broken !== undefined)
      throw new LedgerRefused(
        `the ledger is broken at row ${broken.seq}: ${broken.problem}; it must be whole before it goes on: restore a backup`,
      );
    const { name, head } = ledger;
    const parted = await partings({ name, rows: head.seq, scan: (from) => ledger.rows(from) }, seen);
    const last = await lastResume(ledger);
    const recorded = last?.pin?.hash === pin?.hash && last?.pin?.seq === pin?.seq && pin !== undefined;
    if (parted.length === 0 && seen.length > 0)
      throw new LedgerRefused(
        `nothing is lost: the head pin has seen row ${pin?.seq ?? 0}, and the ledger has it, of ${head.seq} rows; start the gate`,
      );
    return {
      ledger,
      loss: lossOf(head.seq, pin, parted),
      recorded: recorded ? head.seq : undefined,
      putAside: async () => {
        if (shared === undefined && parted.some(({ seen: { by } }) => by === "checkpoint")) await putAside(folder);
      },
      settle: () => ledger.pinHead(),
    };
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

/** None is begun here: the name of the folder or of the ledger may be mistyped. @throws {LedgerRefused} */
export async function requireLedger({ folder, shared }: LedgerOptions): Promise<void> {
  if (shared === undefined) return (await readLedger(folder)).close();
  const { database, ledger } = shared;
  await (await database.open({ ledger, log: undefined, mustExist: true })).close();
}

/** Of a row beside another only that row is known to have parted: rows before it may have, too. */
function lossOf(last: number, pin: Pin | undefined, parted: readonly Parting[]): Loss {
  if (parted.length === 0) return { lost: [last + 1, null], pin, parted: undefined };
  const beside = parted.filter(({ is }) => is === "beside").map(({ seen }) => seen.seq);
  const to = Math.max(...parted.map(({ seen }) => seen.seq));
  const from = beside.length === 0 ? last + 1 : Math.min(...beside);
  return { lost: [from, to], pin, parted: beside.length === 0 ? undefined : from };
}

/** The signed head over rows that are gone is kept, for who asks; it is no more the latest. */
async function putAside(folder: string): Promise<void> {
  await rename(join(folder, "checkpoint"), join(folder, "checkpoint.lost"));
}

/** What a row says that goes on after a restore, or enters what was lost. */
export interface ResumeRow {
  /** Undefined in a row that only enters what an earlier one lost. */
  readonly lost: readonly [from: number, to: number | null] | undefined;
  /** The row that lost it, and its moment; undefined in that row itself. */
  readonly resumed: readonly [seq: number, at: number] | undefined;
  readonly pin: Pick<Pin, "hash" | "seq"> | null;
  /** Counters whose lost amounts are this row's effects, all of them, each with the moment through which it stays unknown. */
  readonly entered: ReadonlyMap<string, number>;
  /** Counters that were kept and are not known through this row, each with the moment through which it was unknown before. */
  readonly unknown: ReadonlyMap<string, number>;
}

/** The body of such a row. Counters stand under their digests. */
export function resumeBody({ lost, parted, pin }: Loss, row: Pick<ResumeRow, "entered" | "unknown">): Canonical {
  return {
    entered: [...row.entered],
    lost: [...lost],
    ...(parted === undefined ? {} : { parted }),
    pin: pin === undefined ? null : { hash: pin.hash, seq: pin.seq },
    unknown: [...row.unknown],
  };
}

/** The body of a row that enters later what an earlier one lost. */
export function enterBody(
  resumed: readonly [seq: number, at: number],
  entered: ReadonlyMap<string, number>,
): Canonical {
  return { entered: [...entered], resumed: [...resumed] };
}

/** Reads such a row back, from stored evidence whose digest was checked; undefined for every other row. */
export function readResume({ act }: Leaf, evidence: string): ResumeRow | undefined {
  return act === resumeAct ? resumeOf(act, partText(evidence, "input") ?? "{}") : undefined;
}

/** The same from a person's act and its body. */
export function resumeOf(act: string, body: string): ResumeRow | undefined {
  if (act !== resumeAct) return undefined;
  const { entered = [], lost, pin = null, resumed, unknown = [] } = JSON.parse(body) as Partial<WrittenRow>;
  return { lost, resumed, pin, entered: new Map(entered), unknown: new Map(unknown) };
}

type WrittenRow = Pick<ResumeRow, "lost" | "pin" | "resumed"> & {
  readonly entered: readonly (readonly [counter: string, through: number])[];
  readonly unknown: readonly (readonly [counter: string, through: number])[];
};

/** The last row, where it is such a row. */
async function lastResume(ledger: Ledger): Promise<ResumeRow | undefined> {
  for await (const [row] of ledger.rows(Math.max(1, ledger.head.seq))) {
    const leaf = parseLeaf(row?.leaf ?? "");
    return leaf && readResume(leaf, row?.evidence ?? "");
  }
  return undefined;
}
