import { statuses, type Denial, type ApprovalStatus } from "../../../core/src/approvals/mod.ts";
import type { SourceFile, Span } from "../../../core/src/contract/mod.ts";
import type { outcomeRows } from "../../../core/src/record/entry/mod.ts";
import type { Json, Mode, Verdict } from "../../../core/src/wire/mod.ts";

/** The name of the latest call, and of the approval that the latest answer spoke of. */
export const latest = "last";

/** A test file as it was written, with everything resolved: fixtures, templates, times and repetitions. */
export interface TestFile {
  readonly source: SourceFile;
  readonly title: string;
  /** The contract or mandate under test, as the command line would name it. */
  readonly subject: string;
  readonly mode: Mode;
  /** The people who may decide calls, each with its groups. */
  readonly people: ReadonlyMap<string, readonly string[]>;
  readonly cases: readonly TestCase[];
}

/** Calls that are decided one after another. Their counters start at zero. */
export interface TestCase {
  readonly name: string;
  readonly span: Span;
  /** The values of counters before the first call, under every key: decimals by name. */
  readonly given: ReadonlyMap<string, string>;
  readonly steps: readonly TestStep[];
}

export type TestStep = TestCall | TestDecision | TestOutcome;

export interface TestCall {
  readonly kind: "call";
  readonly span: Span;
  readonly tool: string;
  /** The body of POST /check, as a client would send it. */
  readonly body: string;
  /** The API key's name. */
  readonly key: string;
  readonly session: string | null;
  /** The name of the approval that the call names; `last` is that of the latest answer. */
  readonly approval: string | undefined;
  /** A name for the call, and for the approval of its answer. */
  readonly as: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly expect: Expectation | undefined;
}

/** A person decides a call that waits, or the key that asked cancels it. */
export interface TestDecision {
  readonly kind: "decision";
  readonly span: Span;
  readonly act: (typeof decisionActs)[number];
  /** The person; for `cancel` also the name of the key that asked. */
  readonly by: string;
  /** The approval's name; `last` is that of the latest answer. */
  readonly approval: string;
  readonly comment: string;
  readonly scope: Denial["scope"];
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Undefined if the gate must accept the decision. */
  readonly expect: ExpectedResult<(typeof decisionResults)[number]> | undefined;
}

export const decisionActs = ["approve", "deny", "cancel"] as const;

interface ExpectedResult<Outcome> {
  readonly span: Span;
  readonly result: Outcome;
}

/** The approval's status after a decision, or the code of the gate's refusal. */
export const decisionResults = [
  "pending",
  "approved",
  "used",
  "denied",
  "cancelled",
  "not-an-approver",
  "self-approval",
  "approval-closed",
  "not-found",
] as const;

/** A key reports what became of a call. */
export interface TestOutcome {
  readonly kind: "outcome";
  readonly span: Span;
  readonly status: outcomeRows.Outcome["status"];
  /** The call's name; `last` is the latest call. */
  readonly call: string;
  readonly amount: Json | undefined;
  /** The name of a key that asks for calls; undefined for a key that cannot ask. */
  readonly key: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Undefined if the gate must accept the outcome. */
  readonly expect: ExpectedResult<(typeof outcomeRefusals)[number]> | undefined;
}

/** The codes of the gate's refusals of an outcome. */
export const outcomeRefusals = ["outcome-refused", "forbidden"] as const;

/** The expected result of a call; undefined members are not compared. */
export interface Expectation {
  readonly span: Span;
  /** The verdict; or the answer, if a person's decision changed it. */
  readonly result?: Verdict | undefined;
  readonly verdict?: Verdict | undefined;
  /** The answer after the mode is applied. */
  readonly answered?: Verdict | undefined;
  /** Complete (`payments.over-limit`), or without its contract (`over-limit`). */
  readonly rule?: string | undefined;
  /** Complete if it starts with `Svc:`, else a part. */
  readonly reason?: string | undefined;
  readonly final?: boolean | undefined;
  /** Every rule that fires, in order, written like `rule`. */
  readonly fired?: readonly string[] | undefined;
  /** Every rule in `mode: observe` that would have fired, in order. */
  readonly observed?: readonly string[] | undefined;
  /** Decimals by name: the values that the call's rules read. */
  readonly counters: ReadonlyMap<string, string>;
  /** The member `approval` of the answer; null if it has none. */
  readonly approval?: ExpectedApproval | null | undefined;
}

/** Undefined members are not compared. */
export interface ExpectedApproval {
  readonly status: (typeof approvalStatuses)[number] | undefined;
  /** True if the call opened the approval. */
  readonly new?: boolean | undefined;
  /** The people that are needed, and those whose votes count: decimals. */
  readonly needs?: string | undefined;
  readonly has?: string | undefined;
  readonly next?: (typeof nextSteps)[number] | undefined;
}

export const approvalStatuses: readonly (ApprovalStatus | "capped")[] = [...statuses, "capped"];
export const nextSteps = ["wait", "check", "retry", "none"] as const;

export const fileKeys: readonly string[] = [
  "tests",
  "contract",
  "mandate",
  "now",
  "mode",
  "key",
  "session",
  "persons",
  "fixtures",
  "templates",
  "cases",
];
/** The members of a call; in a case with `calls:`, those that all its calls share. */
const draftKeys = ["like", "tool", "input", "platform", "key", "session"];
export const templateKeys: readonly string[] = draftKeys.slice(1);
const singleKeys = [...draftKeys, "without", "at", "after", "repeat", "every", "expect"];
export const callKeys: readonly string[] = [...singleKeys, "approval", "as"];
export const decisionKeys: readonly string[] = [
  ...decisionActs,
  "approval",
  "comment",
  "scope",
  "at",
  "after",
  "expect",
];
export const outcomeKeys: readonly string[] = ["outcome", "call", "amount", "key", "at", "after", "expect"];
export const caseKeys: readonly string[] = ["case", "given", ...singleKeys];
export const sessionKeys: readonly string[] = ["case", "given", "calls", ...draftKeys];
export const expectKeys: readonly string[] = [
  "verdict",
  "answered",
  "rule",
  "reason",
  "final",
  "fired",
  "observed",
  "counters",
  "approval",
];
export const approvalKeys: readonly string[] = ["status", "new", "needs", "has", "next"];
