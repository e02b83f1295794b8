import type { Span } from "../../../../svc-gate/src/contract/mod.ts";

/** A defect, or a likely defect, of a contract that compiles; each kind has a page in docs/findings. */
export interface Finding {
  readonly code: FindingCode;
  readonly message: string;
  readonly span: Span;
  /** The rule or tool that contains it: a comment before its line applies to this finding too. */
  readonly within?: Span | undefined;
  readonly hint: string;
}

/** A warning fails `svc-gate analyze`; a note only does with an option. */
export type Severity = "warning" | "note";

const table = {
  "absent-fact-skips": { severity: "warning", title: "A BLOCK is skipped if the platform omits a fact." },
  "agent-controlled-key": {
    severity: "warning",
    title: "A limit is counted under a key that the agent chooses.",
  },
  "always-fires": { severity: "warning", title: "A rule fires on every call, so `otherwise` never decides." },
  "approved-uncounted": { severity: "warning", title: "A limit does not count the calls that a person approves." },
  "attempt-as-proof": { severity: "warning", title: "A refused attempt counts as proof that something was done." },
  contradiction: { severity: "warning", title: "Two rules with the same condition have different verdicts." },
  "counts-for-ever": { severity: "note", title: "A counter without `within` stays unknown after data loss." },
  "dead-part": { severity: "warning", title: "A part of a condition changes nothing." },
  "domain-suffix": { severity: "warning", title: "The end of a host name is compared without a dot before it." },
  "escalate-under-block": { severity: "warning", title: "An ESCALATE is hidden under a wider BLOCK." },
  "look-alike-names": { severity: "warning", title: "Two names look alike." },
  "may-be-negative": { severity: "warning", title: "A negative amount would widen a budget." },
  "may-exhaust": { severity: "note", title: "A decision may need more steps than its budget, and is then BLOCK." },
  "may-fail": {
    severity: "warning",
    title: "It may be impossible to evaluate a condition, and the call is then BLOCK.",
  },
  "never-decides": { severity: "warning", title: "A rule's verdict never counts." },
  "never-fires": { severity: "warning", title: "A rule's condition cannot be true." },
  "no-approver": { severity: "warning", title: "Too few persons have a key that may approve a call." },
  "no-rule": { severity: "note", title: "A tool is let through without any rule." },
  "nothing-passes": { severity: "warning", title: "The rules of a tool together refuse every call." },
  "only-allow": { severity: "warning", title: "Every rule of a tool has the verdict ALLOW, and so has `otherwise`." },
  "open-input": { severity: "note", title: "A tool accepts members that no schema declares and no rule sees." },
  "open-subject": {
    severity: "warning",
    title: "An approval is not bound to a fact that says whose money or data the call uses.",
  },
  "path-prefix": { severity: "warning", title: "A path is judged by its beginning as text." },
  "platform-not-required": { severity: "warning", title: "A rule is skipped if a check has no facts." },
  "quorum-with-self": {
    severity: "warning",
    title: "Several persons must approve a call, but the asker may be one of them.",
  },
  "requires-never-hold": { severity: "warning", title: "The requirements of a tool exclude one another." },
  "session-budget": { severity: "warning", title: "A budget begins at 0 with each session." },
  "session-not-required": {
    severity: "warning",
    title: "A limit per session does not apply to calls without a session.",
  },
  shadowed: { severity: "warning", title: "Whenever a rule fires, another one decides." },
  "stale-suppression": { severity: "warning", title: "A comment allows a finding that does not occur." },
  "substring-test": { severity: "warning", title: "An address, a command or a query is judged by a part of its text." },
  "suppression-without-reason": { severity: "warning", title: "A comment allows a finding without a reason." },
  "unbounded-list": { severity: "warning", title: "A condition walks over a list that may be of any length." },
  "unsettled-budget": {
    severity: "warning",
    title: "A budget keeps failed calls, although their outcomes are reported.",
  },
  "unused-approval": { severity: "warning", title: "A part of `approval` changes nothing." },
  "unused-counter": { severity: "warning", title: "A counter that no condition reads." },
  "unused-fact": { severity: "warning", title: "A fact that the platform must send and nothing reads." },
  "unused-limit": { severity: "warning", title: "A limit that no condition reads." },
};

export type FindingCode = keyof typeof table;

/** All kinds of findings, in the order of their names. */
export const findingKinds: readonly {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly title: string;
}[] = (Object.keys(table) as FindingCode[]).map((code) => ({
  code,
  severity: severityOf(code),
  title: table[code].title,
}));

export function severityOf(code: FindingCode): Severity {
  return table[code].severity === "note" ? "note" : "warning";
}

export function isFindingCode(text: string): text is FindingCode {
  return Object.hasOwn(table, text);
}
