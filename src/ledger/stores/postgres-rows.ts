import { hash } from "node:crypto";
import { counterSeal, type KeptCounter } from "./seals.ts";
import { LedgerRefused, type StoredRow } from "./store.ts";

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
}

export function headRow(columns: readonly unknown[]): HeadRow {
  const [seq, leaf, changed, counters, contract, mode, engine] = columns as readonly (string | null)[];
  return {
    seq: Number(seq),
    leaf: leaf ?? null,
    changed: Number(changed),
    counters: Number(counters),
    contract: contract ?? null,
    mode: mode ?? null,
    engine: engine ?? null,
  };
}

export function sameHead(left: HeadRow, right: HeadRow): boolean {
  return (Object.keys(left) as (keyof HeadRow)[]).every((name) => left[name] === right[name]);
}

/** By digest. */
export type Counters = ReadonlyMap<string, KeptCounter>;

/** Tells a ledger's description that was changed apart from the one that was written. */
export function ledgerSeal(ledger: string, log: string, counterSecret: string): string {
  return hash("sha256", JSON.stringify([ledger, log, counterSecret]), "hex");
}

/** @throws {LedgerRefused} where a counter's description is not what was written */
export function readCounters(rows: readonly (readonly unknown[])[]): Counters {
  const counters = new Map<string, KeptCounter>();
  for (const columns of rows) {
    const [id, digest, definition, through, unknownThrough, folded, seal] = columns;
    const counter = {
      id: Number(id),
      digest: String(digest),
      definition: String(definition),
      through: through === null ? null : Number(through),
      unknownThrough: Number(unknownThrough),
      folded: Number(folded),
    };
    if (seal !== counterSeal(counter) || hash("sha256", counter.definition, "hex") !== digest)
      throw new LedgerRefused(`the counter ${counter.id} in the database is damaged: restore it from a backup`);
    counters.set(counter.digest, counter);
  }
  return counters;
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
