import type { Span } from "../../../../readers/src/contract.ts";

/** A defect, or a likely defect, of a contract that compiles; each kind has a page in docs/findings. */
export interface ContractFinding {
  readonly code: ContractFindingCode;
  readonly message: string;
  readonly span: Span;
  /** The rule or tool that contains it: a comment before its line applies to this finding too. */
  readonly within?: Span | undefined;
  readonly hint: string;
}

/** A warning fails `svc-gate analyze`; a note only does with an option. */
export type Severity = "warning" | "note";

const titles = {
  "absent-fact-skips": "A BLOCK is skipped if the platform omits a fact.",
  "agent-controlled-key": "A limit is counted under a key that the agent chooses.",
  "always-fires": "A rule fires on every call, so `otherwise` never decides.",
  "approved-uncounted": "A limit does not count the calls that a person approves.",
  "attempt-as-proof": "A refused attempt counts as proof that something was done.",
  contradiction: "Two rules with the same condition have different verdicts.",
  "counts-for-ever": "A counter without `within` stays unknown after data loss.",
  "dead-part": "A part of a condition changes nothing.",
  "domain-suffix": "The end of a host name is compared without a dot before it.",
  "escalate-under-block": "An ESCALATE is hidden under a wider BLOCK.",
  "look-alike-names": "Two names look alike.",
  "may-be-negative": "A negative amount would widen a budget.",
  "may-exhaust": "A decision may need more steps than its budget, and is then BLOCK.",
  "may-fail": "It may be impossible to evaluate a condition, and the call is then BLOCK.",
  "never-decides": "A rule's verdict never counts.",
  "never-fires": "A rule's condition cannot be true.",
  "no-approver": "Too few people have a key that may approve a call.",
  "no-rule": "A tool is let through without any rule.",
  "nothing-passes": "The rules of a tool together refuse every call.",
  "only-allow": "Every rule of a tool has the verdict ALLOW, and so has `otherwise`.",
  "open-input": "A tool accepts members that no schema declares and no rule sees.",
  "open-subject": "An approval is not bound to a fact that says whose money or data the call uses.",
  "path-prefix": "A path is judged by its start as text.",
  "platform-not-required": "A rule is skipped if a check has no facts.",
  "quorum-with-self": "Several people must approve a call, but the asker may be one of them.",
  "requires-never-hold": "The requirements of a tool exclude one another.",
  "session-budget": "A budget starts at 0 with each session.",
  "session-not-required": "A limit per session does not apply to calls without a session.",
  shadowed: "Whenever a rule fires, another one decides.",
  "stale-suppression": "A comment allows a finding that does not occur.",
  "substring-test": "An address, a command or a query is judged by a part of its text.",
  "suppression-without-reason": "A comment allows a finding without a reason.",
  "unbounded-list": "A condition walks over a list that may be of any length.",
  "unsettled-budget": "A budget keeps failed calls, although their outcomes are reported.",
  "unused-approval": "A part of `approval` changes nothing.",
  "unused-counter": "A counter that no condition reads.",
  "unused-fact": "A fact that the platform must send and nothing reads.",
  "unused-limit": "A limit that no condition reads.",
};

export type ContractFindingCode = keyof typeof titles;

const notes: ReadonlySet<ContractFindingCode> = new Set(["counts-for-ever", "may-exhaust", "no-rule", "open-input"]);

/** All kinds of findings, in the order of their names. */
export const findingKinds: readonly {
  readonly code: ContractFindingCode;
  readonly severity: Severity;
  readonly title: string;
}[] = (Object.keys(titles) as ContractFindingCode[]).map((code) => ({
  code,
  severity: severityOf(code),
  title: titles[code],
}));

export function severityOf(code: ContractFindingCode): Severity {
  return notes.has(code) ? "note" : "warning";
}

export function isFindingCode(text: string): text is ContractFindingCode {
  return Object.hasOwn(titles, text);
}
