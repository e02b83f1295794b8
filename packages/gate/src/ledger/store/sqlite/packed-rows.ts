import type { StoredRow } from "../../../../../core/src/record/entry/row.ts";
import { Fault } from "../../errors.ts";

/**
 * The rows of one batch as one text. A thread clones this in one copy, but each object and each text of its own costs
 * time on both sides.
 */
export interface PackedRows {
  /** The number of the first row; the others follow without a gap. */
  readonly first: number;
  /** The texts of all rows, one after another. */
  readonly text: string;
  /** The length of each text in UTF-16 units, five for each row. A row without a session has `noText` there. */
  readonly lengths: Uint32Array;
}

const columns = 5;
const noText = 0xffff_ffff;

/** @throws {Fault} if a row does not follow the one before it */
export function packRows(rows: readonly StoredRow[]): PackedRows {
  const first = rows[0]?.seq ?? 0;
  const lengths = new Uint32Array(rows.length * columns);
  let text = "";
  let at = 0;
  for (const { seq, session, tool, verdict, leaf, evidence } of rows) {
    if (seq !== first + at / columns) throw new Fault(`the row ${seq} of a batch does not follow the row before it`);
    text += (session ?? "") + tool + verdict + leaf + evidence;
    lengths[at] = session?.length ?? noText;
    lengths[at + 1] = tool.length;
    lengths[at + 2] = verdict.length;
    lengths[at + 3] = leaf.length;
    lengths[at + 4] = evidence.length;
    at += columns;
  }
  return { first, text, lengths };
}

/** Returns the rows that `packRows` was given. */
export function* unpackRows({ first, text, lengths }: PackedRows): Generator<StoredRow> {
  let at = 0;
  let from = 0;
  const next = (): string => text.slice(from, (from += lengths[at++] as number));
  const nextOrNull = (): string | null => (lengths[at] === noText ? ((at += 1), null) : next());
  for (let seq = first; at < lengths.length; seq += 1)
    yield { seq, session: nextOrNull(), tool: next(), verdict: next(), leaf: next(), evidence: next() };
}
