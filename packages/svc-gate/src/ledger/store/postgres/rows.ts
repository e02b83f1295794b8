import { hash } from "node:crypto";
import type { Counters } from "../../history/counter-walk.ts";
import { isWhole } from "../checksums.ts";
import type { KeptCounters } from "../running-totals.ts";
import { LedgerRefused, type KeptCounter } from "../store.ts";
import type { StoredRow } from "../../entry/row.ts";

/** What the ledger's own row says of where it stands. */
export interface HeadRow {
  readonly seq: number;
  readonly leaf: string | null;
  readonly changed: number;
  /** Goes up with every change of a counter's description, so that nobody goes on with an old one. */
  readonly counters: number;
  readonly contract: string | null;
  readonly mode: string | null;
  readonly engine: string | null;
  /** The number of rows, and what `Frontier.text` says of their tree. */
  readonly frontier: string | null;
  /** The last head that was signed. */
  readonly checkpoint: string | null;
  readonly signer: string | null;
}

export function headRow(columns: readonly unknown[]): HeadRow {
  const [seq, leaf, changed, counters, contract, mode, engine, ...tree] = columns as readonly (string | null)[];
  const [frontier, checkpoint, signer] = tree;
  return {
    seq: Number(seq),
    leaf: leaf ?? null,
    changed: Number(changed),
    counters: Number(counters),
    contract: contract ?? null,
    mode: mode ?? null,
    engine: engine ?? null,
    frontier: frontier ?? null,
    checkpoint: checkpoint ?? null,
    signer: signer ?? null,
  };
}

/** The tree at the head; undefined if the ledger's own row does not have it for the last row. */
export function frontierOf({ seq, frontier }: HeadRow): string | undefined {
  if (seq === 0) return "";
  return frontier?.startsWith(`${seq} `) === true ? frontier.slice(`${seq} `.length) : undefined;
}

export function sameHead(left: HeadRow, right: HeadRow): boolean {
  return (Object.keys(left) as (keyof HeadRow)[]).every((name) => left[name] === right[name]);
}

/** Tells a ledger's description that was changed apart from the one that was written. */
export function ledgerSeal(ledger: string, log: string, counterSecret: string): string {
  return hash("sha256", JSON.stringify([ledger, log, counterSecret]), "hex");
}

/** The counters, and the first one whose row is not what was written. */
export function parseCounters(rows: readonly (readonly unknown[])[]): Counters {
  let damaged: KeptCounter | undefined;
  const kept = rows.map(([id, digest, definition, through, unknownThrough, resetThrough, folded, checksum]) => {
    const counter = {
      id: Number(id),
      digest: String(digest),
      definition: String(definition),
      through: through === null ? null : Number(through),
      unknownThrough: Number(unknownThrough),
      resetThrough: Number(resetThrough),
      folded: Number(folded),
    };
    if (!isWhole(counter, checksum)) damaged ??= counter;
    return counter;
  });
  return { kept, damaged };
}

/** @throws {LedgerRefused} where a counter's description is not what was written */
export function readCounters(rows: readonly (readonly unknown[])[]): KeptCounters {
  const { kept, damaged } = parseCounters(rows);
  if (damaged !== undefined)
    throw new LedgerRefused(`the counter ${damaged.id} in the database is damaged: restore it from a backup`);
  return new Map(kept.map((counter) => [counter.digest, counter]));
}

/** From the columns in which every statement names a receipt. */
export function storedRow(columns: readonly unknown[]): StoredRow {
  const [seq, leaf, evidence, session, tool, verdict] = columns as readonly string[];
  return {
    seq: Number(seq),
    leaf: leaf ?? "",
    evidence: evidence ?? "",
    session: session ?? null,
    tool: tool ?? "",
    verdict: verdict ?? "",
  };
}
