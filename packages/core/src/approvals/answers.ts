/** The JSON of answers about approvals, grants and stops (spec/approvals.md). Times are milliseconds since the epoch. */
import type { Approval, Denial, GrantOffer, Need, Vote } from "./approval.ts";
import type { Grant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import type { Stop } from "./stop.ts";

type Counts = Pick<Quorum, "has" | "needs">;

/** An approval as the key that asked sees it. */
export interface StandingJson extends Counts {
  readonly id: string;
  readonly status: string;
  readonly decide_by: number;
  readonly use_by: number | null;
  /** What the caller does next. */
  readonly next: "check" | "none" | "wait";
  /** Of the denial. */
  readonly comment?: string;
}

export interface ApprovalJson
  extends StandingJson, Pick<Approval, "asked" | "at" | "closed" | "hash" | "key" | "successor"> {
  readonly may_decide: boolean;
  /** Why the person may only deny it; absent if they may approve it too, or may not decide it. */
  readonly only_deny?: string;
  readonly receipt: number;
  readonly tool_name: string;
  /** The alias under which the call was sent. */
  readonly sent_as?: string;
  readonly session_id: string | null;
  readonly reason: string | null;
  readonly rules: readonly string[];
  readonly groups: readonly Need[];
  readonly batch: boolean;
  /** The same for all questions about one call of one key. */
  readonly call: string;
  /** The numbers that counters add up, with their characters. */
  readonly amounts: Readonly<Record<string, string>>;
  readonly decisions: readonly SaidJson[];
}

/** An approval with its whole call. */
export interface ApprovalDetailJson extends ApprovalJson {
  readonly tool_input: unknown;
  readonly platform_state: unknown;
  readonly counters: Readonly<Record<string, string>> | null;
  /** The kind of the key that asked; absent for an ordinary key. */
  readonly key_kind?: string;
  readonly mode: string | null;
  readonly contract: string | null;
  readonly may_differ: readonly string[];
  readonly grants_allowed: false | GrantOfferJson;
  /** Why there can be no grant; absent if there can. */
  readonly no_grant?: string;
  readonly same_call: readonly SameCall[];
}

export interface SaidJson extends Pick<Vote, "at" | "comment" | "person">, Partial<Pick<Denial, "scope" | "until">> {
  readonly decision: "approve" | "deny";
  readonly receipt: number;
}

/** Another question about the same call. */
export interface SameCall extends Pick<ApprovalJson, "id" | "session_id" | "status"> {
  /** Such as `session` or `subject`. */
  readonly differs: readonly string[];
  /** A person approved it, and it was not used. */
  readonly approved: boolean;
}

export interface GrantOfferJson extends Required<Omit<GrantOffer, "at_most" | "form">> {
  readonly at_most_ms: number;
  /** The widths that a grant can have, the narrowest first; absent if the rules have no grants by form. */
  readonly form?: { readonly member: string; readonly widths: readonly WidthJson[] };
}

export interface WidthJson {
  readonly name: string;
  /** The command line with kinds in the place of the words that may differ. */
  readonly shown: string;
}

export interface GrantJson
  extends
    Counts,
    Pick<Grant, "amounts" | "at" | "hash" | "key" | "source" | "spent" | "until" | "used" | "uses">,
    Pick<GrantOfferJson, "free" | "least" | "most" | "pins"> {
  readonly id: string;
  /** Absent if the rules have no grants by form. `shown` is null after an erasure. */
  readonly form?: { readonly member: string; readonly width: string; readonly shown: string | null };
  readonly status: "active" | "pending";
  readonly receipt: number;
  readonly tool_name: string;
  readonly any_session: boolean;
  readonly rules: readonly string[];
  readonly decisions: readonly { readonly person: string; readonly at: number; readonly receipt: number }[];
}

/** A stop of GET /stop. */
export interface StopJson extends Omit<Stop, "row"> {
  readonly receipt: number;
}

/** The answer of GET /stop. */
export interface StopsJson {
  readonly stopped: boolean;
  readonly stops: readonly StopJson[];
}

/** The answer of POST /admin/stop. */
export interface StopSetJson {
  readonly receipt: { readonly seq: number };
  readonly ended: EndedByStop;
  readonly warnings: readonly string[];
  /** The tenants on whose ledgers it is in force; null is the root. */
  readonly ledgers: readonly (string | null)[];
}

/** What a stop ended on its own ledger, in numbers. */
export interface EndedByStop {
  /** Calls that waited for a person, or that a person had approved. */
  readonly approvals: number;
  /** Calls that wait again, without the votes so far. */
  readonly votes: number;
  readonly grants: number;
}
