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
export interface Broken {
  readonly seq: number;
  readonly problem: string;
  readonly expected: string;
  readonly found: string;
}

/** The codes of spec/export.md for rows and the files that hold them. */
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
export interface Finding extends Broken {
  readonly code: FindingCode;
}
