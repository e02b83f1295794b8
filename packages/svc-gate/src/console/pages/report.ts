/** The answer of GET /report: what `svc-gate report --json` prints, as far as the pages need it. */
export interface Report {
  readonly receipts: number;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly to: number;
  /** Calls that the mode answered more leniently than the verdict. */
  readonly softened: number;
  readonly verdicts: readonly {
    readonly verdict: string;
    readonly mode: string;
    readonly answered: string;
    readonly receipts: number;
  }[];
  readonly by_rule: readonly { readonly rule: string; readonly verdict: string; readonly receipts: number }[];
  readonly by_tool: readonly { readonly tool: string; readonly verdict: string; readonly receipts: number }[];
  readonly by_session: readonly {
    readonly session: string | null;
    readonly key?: string;
    readonly verdict?: string;
    readonly receipts: number;
  }[];
  readonly approvals: readonly DecidedRule[];
  readonly outcomes: Readonly<Record<"let_through" | "done" | "failed" | "unknown" | "missing", number>>;
  readonly forecast: Forecast;
  readonly over_time: readonly Slice[];
}

export interface DecidedRule {
  readonly rule: string;
  readonly opened: number;
  readonly approved: number;
  readonly denied: number;
  readonly expired: number;
  readonly used: number;
  readonly fast: number;
  readonly expired_share: number | null;
  readonly always: "approved" | "denied" | null;
  readonly median_ms: number | null;
  readonly p90_ms: number | null;
}

export interface Forecast {
  readonly days: number;
  readonly calls: number;
  readonly approvals: number;
  readonly per_day: number;
  readonly largest_hour: { readonly from: number; readonly approvals: number } | null;
  readonly by_rule: readonly {
    readonly rule: string;
    readonly calls: number;
    readonly approvals: number;
    readonly per_day: number;
  }[];
}

/** A part of the time, and what happened in it. */
export interface Slice {
  readonly from: number;
  readonly to: number;
  readonly verdicts: Readonly<Record<"ALLOW" | "BLOCK" | "ESCALATE", number>>;
  readonly approvals: Readonly<Record<"opened" | "approved" | "denied" | "expired", number>>;
  /** Decimals by the name of the counter. */
  readonly counters: Readonly<Record<string, Readonly<Record<"held" | "released" | "used", string>>>>;
}
