/** What the columns of a row that records a person's act hold: nothing that a check can have. */
export const changeColumns = { tool: "", verdict: "CHANGE", session: null } as const;

/** What the column `verdict` of a tool's result holds. Its other columns are those of its check. */
export const resultVerdict = "RESULT";

/** A row as an engine keeps it. The columns beside leaf and evidence are for look-up; verification compares them. */
export interface StoredRow {
  readonly seq: number;
  readonly leaf: string;
  readonly evidence: string;
  readonly session: string | null;
  /** The tool's name as it was sent; see `changeColumns`. */
  readonly tool: string;
  readonly verdict: string;
}

/** Where a ledger stops being what it says. */
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
  | "root";

/** What is broken, with its code: an export is reported by codes. */
export interface Finding extends Broken {
  readonly code: FindingCode;
}
