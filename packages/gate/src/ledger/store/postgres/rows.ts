import { hash } from "node:crypto";
import { countersOf, soundCounters } from "../checksums.ts";
import type { KeptCounters } from "../running-totals.ts";
import { headColumns } from "./sql.ts";
import { columnsOf, entryReader } from "../tables.ts";
import type { StoredRow } from "../../../../../core/src/record/entry/row.ts";

/** The ledger's own row, which describes its last row. */
export interface HeadRow {
  readonly seq: number;
  readonly leaf: string | null;
  readonly changed: number;
  /** Increases with every change of a counter's description, so that no gate uses an old one. */
  readonly counters: number;
  readonly contract: string | null;
  readonly mode: string | null;
  readonly engine: string | null;
  /** The number of rows, and the text from `Frontier.text` for their tree. */
  readonly frontier: string | null;
  /** The last signed head. */
  readonly checkpoint: string | null;
  readonly signer: string | null;
  /** The number of approvals that were ever opened. */
  readonly approvals: number;
  /** The number of events that outcomes took back. */
  readonly withdrawals: number;
}

const numbers: readonly string[] = ["seq", "changed", "counters", "approvals", "withdrawals"];

export function headRow(values: readonly unknown[]): HeadRow {
  const read = (name: string, value: unknown): unknown =>
    numbers.includes(name) ? Number(value ?? 0) : (value ?? null);
  const entries = headColumns.map((name, index) => [name, read(name, values[index])] as const);
  return Object.fromEntries(entries) as unknown as HeadRow;
}

/** The tree at the head; undefined if the ledger's own row does not have it for the last row. */
export function frontierOf({ seq, frontier }: HeadRow): string | undefined {
  if (seq === 0) return "";
  return frontier?.startsWith(`${seq} `) === true ? frontier.slice(`${seq} `.length) : undefined;
}

export function sameHead(left: HeadRow, right: HeadRow): boolean {
  return (Object.keys(left) as (keyof HeadRow)[]).every((name) => left[name] === right[name]);
}

/** A checksum that reveals a changed description of a ledger. */
export function ledgerSeal(ledger: string, log: string, counterSecret: string): string {
  return hash("sha256", JSON.stringify([ledger, log, counterSecret]), "hex");
}

/** @throws {LedgerRefused} if a counter's description was changed */
export function readCounters(rows: readonly (readonly unknown[])[]): KeptCounters {
  return soundCounters(countersOf(rows), ["in the database", "it"]);
}

/** Parses the columns of a receipt, which have the same order in every statement. */
export const storedRow: (columns: readonly unknown[]) => StoredRow = entryReader("receipts", columnsOf("receipts"));
