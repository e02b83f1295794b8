/**
 * The JSON of answers that the console reads and commands print. Each route that writes one has its type from here.
 * spec/api.md explains the members. Times are milliseconds since the epoch, and moments of RFC 3339 for keys.
 */
import type { KeyKind } from "./key-kind.ts";
import type { Mode, Verdict } from "./verdict.ts";

/** How a person can sign in, besides with a key: the answer of GET /console/methods. */
export interface SignInMethods {
  readonly oidc: { readonly name: string } | null;
}

/** A sign-in that has started. The page keeps `flow` in its origin's storage, and gives it back with the answer. */
export interface BegunSignIn {
  /** The provider's page. */
  readonly location: string;
  readonly flow: string;
}

/** Who has signed in. */
export interface SignedInJson {
  readonly key: string;
  readonly person: string | null;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
  readonly tenant: string | null;
  readonly ends: number;
  readonly idle_ms: number;
}

/** The answer of POST /console/session. */
export interface OpenedJson extends SignedInJson {
  /** The page's own secret. */
  readonly session: string;
  /** For the next sign-in with the provider. */
  readonly known?: string | undefined;
}

/** The answer of GET /console/session. */
export interface SessionJson extends SignedInJson {
  /** True if a key of the gate can decide calls. */
  readonly approvers: boolean;
  readonly mode: Mode;
  /** The ledger's name. */
  readonly ledger: string;
  /** The public keys that sign its heads: C2SP vkeys. */
  readonly vkeys: readonly string[];
}

/** A key as administrators see it, without the key and its digest. */
export interface KeyJson {
  readonly name: string;
  readonly tenant: string | null;
  readonly owner: string | null;
  readonly scopes: readonly string[];
  /** Null for an ordinary key. */
  readonly kind: KeyKind | null;
  readonly tools: readonly string[] | null;
  readonly rate: { readonly per_second: number; readonly burst: number } | null;
  /** Who uses the key; null for a key of a program. */
  readonly person: string | null;
  readonly groups: readonly string[];
  /** Null for the first key. */
  readonly created: string | null;
  readonly expires: string | null;
  /** When the key before the last rotation ends; null if it has ended. */
  readonly previous_until: string | null;
  readonly state: "active" | "rotating" | "expiring" | "expired" | "revoked";
  /** At most a minute late; null if no use is known. */
  readonly last_used: string | null;
}

/** A receipt of GET /receipts. Members are absent or null if the row does not have them. */
export interface ReceiptJson {
  readonly seq: number;
  readonly hash: string;
  readonly prev_hash?: string | null;
  readonly at: number;
  readonly session_id?: string | null;
  readonly tool_name?: string | null;
  /** The tool's own name, if the call was sent under an alias. */
  readonly tool?: string;
  readonly tool_input?: unknown;
  readonly platform_state?: unknown;
  readonly verdict?: string | null;
  readonly answered?: string | null;
  readonly mode?: string | null;
  readonly reason?: string | null;
  readonly rule?: string | null;
  readonly contract?: string | null;
  readonly key?: string | null;
  readonly key_kind?: string;
  readonly kind?: "change" | "result";
  readonly act?: string;
  readonly check?: number;
  readonly input_cut?: object;
  readonly erased?: readonly string[];
  /** The last outcome of the call, and the row that reports it. */
  readonly outcome?: { readonly status: string; readonly seq: number };
  readonly leaf: string;
  readonly evidence: readonly string[];
}

export interface ReceiptPage {
  readonly receipts: readonly ReceiptJson[];
  readonly next: number | null;
}

/** A contract and mode in force, in the answer of POST /admin/reload and in the row of a reload. */
export type InForceJson = Readonly<Record<"contract" | "mode", string>>;

/** The answer of GET /ledger/verify. */
export interface VerifiedJson {
  readonly ok: boolean;
  readonly rows: number;
  readonly head?: { readonly seq: number; readonly hash: string };
  readonly first_broken?: unknown;
  readonly anchored: { readonly seq: number; readonly by: string } | null;
  readonly anchors: readonly { readonly seq: number; readonly by: string; readonly at: number | null }[];
  readonly note?: string;
}

/** The answer of GET /admin/notify. */
export interface EndpointsJson {
  readonly rows: number;
  readonly endpoints: readonly EndpointJson[];
}

export interface EndpointJson {
  readonly endpoint: string;
  /** Null if another gate sends. */
  readonly row: number | null;
  readonly waiting: readonly { readonly id: string; readonly tries: number; readonly due: number | null }[];
  readonly died: number;
  readonly dead: readonly { readonly id: string; readonly at: number; readonly why: string }[];
}

/** The answer of POST /explain, as far as the console needs it. */
export interface ExplainedJson {
  readonly verdict: Verdict;
  readonly answered: Verdict;
  readonly rule: string;
  readonly reason: string;
  readonly counters: readonly { readonly name: string; readonly value: string | null }[];
  readonly rules: readonly ExplainedRule[];
  /** The difference between the input or the facts and their schema. */
  readonly mismatch: ExplainedMismatch | null;
}

export interface ExplainedMismatch {
  /** `contract.$input` or `contract.$platform`. */
  readonly id: string;
  /** `input.lines[2].amount`. */
  readonly path: string;
  readonly expected: string;
  readonly found: string;
}

export interface ExplainedRule {
  readonly id: string;
  /** An `observing` rule does not decide. */
  readonly kind: "requirement" | "rule" | "observing" | "otherwise";
  /** The result of the condition. An `otherwise` is `true` if no other rule applied. */
  readonly came: "true" | "false" | "error" | "not evaluated";
  /** The verdict and reason if it applies: a rule that is true, a requirement that is false, or an error in either. */
  readonly speaks: { readonly verdict: Verdict; readonly reason: string } | null;
  readonly condition: ExplainedPart | null;
}

export interface ExplainedPart {
  readonly text: string;
  readonly place: object;
  readonly came: readonly ({ readonly value: string } | { readonly error: string })[];
  readonly times: number;
  readonly parts: readonly ExplainedPart[];
}

/** The answer of GET /report: what `svc-gate report --json` prints, as far as the console needs it. */
export interface ReportJson {
  readonly receipts: number;
  readonly from: number;
  readonly to: number;
  /** Calls that the mode answered more leniently than the verdict. */
  readonly softened: number;
  readonly by_rule: readonly { readonly rule: string; readonly verdict: string; readonly receipts: number }[];
  readonly by_tool: readonly { readonly tool: string; readonly verdict: string; readonly receipts: number }[];
  readonly by_session: readonly {
    readonly session: string | null;
    readonly key: string;
    readonly verdict: string;
    readonly receipts: number;
  }[];
  readonly approvals: readonly DecidedRule[];
  readonly outcomes: Readonly<Record<"let_through" | "done" | "failed" | "unknown" | "missing", number>>;
  readonly forecast: ForecastJson;
  readonly over_time: readonly SliceJson[];
}

export interface DecidedRule extends Readonly<Record<"approved" | "denied" | "expired" | "fast" | "opened", number>> {
  readonly rule: string;
  /** Of the approvals that ended, from 0 to 1. Null if none ended. */
  readonly expired_share: number | null;
  /** The decision, if all of at least 10 are the same. */
  readonly always: "approved" | "denied" | null;
  readonly median_ms: number | null;
  readonly p90_ms: number | null;
}

export interface ForecastJson {
  readonly days: number;
  readonly approvals: number;
  readonly per_day: number;
  readonly largest_hour: { readonly from: number; readonly approvals: number } | null;
  readonly by_rule: readonly { readonly rule: string; readonly per_day: number }[];
}

/** A part of the time, and what happened in it. */
export interface SliceJson {
  readonly from: number;
  readonly to: number;
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly approvals: Readonly<Record<"opened" | "approved" | "denied" | "expired", number>>;
  /** Decimals by the name of the counter. */
  readonly counters: Readonly<Record<string, Readonly<Record<"held" | "released" | "used", string>>>>;
}
