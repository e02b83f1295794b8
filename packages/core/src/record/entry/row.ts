/** The look-up columns of an administrative event. No check can have these values. */
export const changeColumns = { tool: "", verdict: "CHANGE", session: null } as const;

/** The column `verdict` of a tool's result. Its other columns are those of its check. */
export const resultVerdict = "RESULT";

/** A row as a store keeps it. The other columns are for look-up; verification compares them with leaf and evidence. */
export interface StoredRow {
  readonly seq: number;
  readonly leaf: string;
  readonly evidence: string;
  readonly session: string | null;
  /** The tool's own name if a contract routes the call, else the name as it was sent; see `changeColumns`. */
  readonly tool: string;
  readonly verdict: string;
}

/** The first mistake in a ledger. */
export interface Mistake {
  readonly seq: number;
  readonly problem: string;
  readonly expected: string;
  readonly found: string;
}

/** The codes of spec/export.md for rows and the files that contain them. */
export type FindingCode =
  | "file"
  | "entry"
  | "leaf"
  | "seq"
  | "log"
  | "prev"
  | "time"
  | "result"
  | "tile"
  | "contract"
  | "evidence"
  | "digest"
  | "erasure"
  | "erase-body"
  | "use"
  | "root";

/** A mistake with its code, which reports of exports use. */
export interface Finding extends Mistake {
  readonly code: FindingCode;
}

/** The last outcome of a call. */
export interface StoredOutcome {
  /** The row of the check. */
  readonly seq: number;
  /** The row of the outcome. */
  readonly outcome: number;
  readonly status: string;
}

/** An approval as a store keeps it. Rows can be folded into the same columns. */
export interface StoredApproval {
  /** The row that asked. */
  readonly seq: number;
  /** A digest of the call, in hex. */
  readonly attach: string;
  readonly key: string;
  /** A digest of the key and the session, in hex. */
  readonly place: string;
  readonly status: string;
  /** Milliseconds: until then an open approval or a denial matters; null if it does not matter any more. */
  readonly ends: number | null;
  readonly record: string;
}

/** What the table says of an approval, and the row that asked. */
export interface KeptApproval {
  readonly row: StoredRow;
  readonly record: string;
}
