/** The answers of the gate, as spec/api.md and spec/approvals.md have them. Times are milliseconds since the epoch. */

export interface Session {
  readonly key: string;
  readonly person: string | null;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  readonly ends: number;
  readonly idle_ms: number;
  /** True if a key of the gate can decide calls. */
  readonly approvers: boolean;
  readonly mode: string;
  /** The ledger's name. */
  readonly ledger: string;
  /** The public keys that sign its heads: C2SP vkeys. */
  readonly vkeys: readonly string[];
}

export interface Need {
  readonly by: readonly string[] | null;
  readonly of: number;
}

export interface Said {
  readonly decision: "approve" | "deny";
  readonly person: string;
  readonly at: number;
  readonly receipt: number;
  readonly comment: string;
  readonly until?: number;
  readonly scope?: "call" | "tool" | "rule";
}

export interface Approval {
  readonly id: string;
  readonly status: string;
  readonly decide_by: number;
  readonly use_by: number | null;
  readonly needs: number;
  readonly has: number;
  readonly may_decide: boolean;
  readonly receipt: number;
  readonly hash: string;
  readonly at: number;
  readonly tool_name: string;
  /** The alias under which the call was sent. */
  readonly sent_as?: string;
  readonly session_id: string | null;
  readonly key: string;
  readonly reason: string | null;
  readonly rules: readonly string[];
  readonly groups: readonly Need[];
  readonly batch: boolean;
  readonly asked: number;
  /** The same for all questions about one call of one key. */
  readonly call: string;
  /** The numbers that counters add up, with their characters. */
  readonly amounts: Readonly<Record<string, string>>;
  readonly decisions: readonly Said[];
  readonly closed: number | null;
  readonly successor: number | null;
}

export interface ApprovalDetail extends Approval {
  readonly counters: Readonly<Record<string, string>> | null;
  /** The kind of the key that asked; absent for an ordinary key. */
  readonly key_kind?: string;
  readonly mode: string | null;
  readonly contract: string | null;
  readonly may_differ: readonly string[];
  readonly grants_allowed: false | GrantOffer;
  readonly same_call: readonly SameCall[];
}

/** Another question about the same call. */
export interface SameCall {
  readonly id: string;
  readonly status: string;
  readonly session_id: string | null;
  /** Such as `session` or `subject`. */
  readonly differs: readonly string[];
  /** A person approved it, and it was not used. */
  readonly approved: boolean;
}

export interface GrantOffer {
  readonly at_most_ms: number;
  readonly uses: number;
  readonly pins: readonly string[];
  readonly sums: readonly string[];
  readonly most: readonly string[];
  readonly least: readonly string[];
  readonly free: readonly string[];
}

export interface Receipt {
  readonly seq: number;
  readonly hash: string;
  readonly at: number;
  readonly session_id?: string | null;
  readonly tool_name?: string | null;
  /** The tool's own name, if the call was sent under an alias. */
  readonly tool?: string;
  readonly verdict?: string | null;
  readonly answered?: string | null;
  readonly mode?: string | null;
  readonly reason?: string | null;
  readonly rule?: string | null;
  readonly contract?: string | null;
  readonly key?: string | null;
  readonly key_kind?: string;
  readonly act?: string;
  /** The last outcome of the call, and the row that reports it. */
  readonly outcome?: { readonly status: string; readonly seq: number };
  readonly leaf: string;
  readonly evidence: readonly string[];
}

export interface ReceiptPage {
  readonly receipts: readonly Receipt[];
  readonly next: number | null;
}

export interface Stop {
  readonly scope: unknown;
  /** As the person wrote it: a lift names it. */
  readonly written: unknown;
  readonly why: string;
  readonly person: string;
  readonly at: number;
  readonly receipt: number;
  /** Null, or the row in the root's ledger: then only the root lifts it. */
  readonly root: number | null;
}

/** The answer to a stop. */
export interface StopSet {
  readonly ended: { readonly approvals: number; readonly votes: number; readonly grants: number };
  readonly warnings: readonly string[];
}

export interface Stops {
  readonly stopped: boolean;
  readonly stops: readonly Stop[];
}

/** The outcome of a rule for one call (`svc-gate explain`). */
export interface Explained {
  readonly verdict: string;
  readonly answered: string;
  readonly rule: string;
  readonly reason: string;
  readonly counters: readonly ExplainedCounter[];
  readonly rules: readonly ExplainedRule[];
  readonly mismatch: {
    readonly id: string;
    readonly path: string;
    readonly expected: string;
    readonly found: string;
  } | null;
}

export interface ExplainedCounter {
  readonly name: string;
  readonly value: string | null;
  readonly key: string | null;
}

export interface ExplainedRule {
  readonly id: string;
  readonly kind: string;
  readonly came: string;
  readonly speaks: { readonly verdict: string; readonly reason: string } | null;
  readonly condition: Condition | null;
}

export interface Condition {
  readonly text: string;
  readonly place: string;
  readonly came: readonly ({ readonly value: string } | { readonly error: string })[];
  readonly times: number;
  readonly parts: readonly Condition[];
}
