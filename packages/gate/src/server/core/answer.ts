import { approvalId, stoppedCalls, type Judgement, type Misfit } from "../../../../core/src/approvals/mod.ts";
import type { Decision } from "../../../../core/src/contract/mod.ts";
import type { CallFindings } from "../approvals/call-judge.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import type { Mode, Verdict } from "../../../../core/src/wire/mod.ts";

/** A decided call with its receipt on disk. */
export interface DecidedCheck extends CallFindings {
  readonly decision: Decision;
  /** The verdict that the caller gets: the mode may soften the decision. */
  readonly answered: Verdict;
  readonly mode: Mode;
  /** The tool's own name; null if no contract routes the call. */
  readonly tool: string | null;
  readonly receipt: Durable<Receipt>;
}

/**
 * Returns the body of a 200 on POST /check. It needs a durable receipt, so no answer exists without one.
 *
 * @param request SHA-256 of the received body, in hex: the caller compares it with the body that it sent
 * @param isRepeat true if an earlier call had the same body and is answered too
 */
export function answerBody(check: Omit<DecidedCheck, "tool">, request: string, isRepeat = false): string {
  const { approval } = check;
  const parked = approval === undefined ? "" : `,"approval":${JSON.stringify(approval)}`;
  return `${bodyStart(check, answeredReason(check), request)}${parked}${isRepeat ? repeatedMember : ""}}`;
}

/**
 * Returns the body of the answer to an exact repeat of a check, whose row is on disk.
 *
 * @param approval JSON; null if the answer has no such member
 */
export function repeatedBody(
  said: SaidAnswer & { readonly reason: string; readonly approval: string | null },
  request: string,
): string {
  const parked = said.approval === null ? "" : `,"approval":${said.approval}`;
  return `${bodyStart(said, said.reason, request)}${parked}${repeatedMember}}`;
}

const repeatedMember = ',"repeated":true';

interface SaidAnswer {
  readonly answered: Verdict;
  readonly mode: Mode;
  readonly receipt: Receipt;
}

function bodyStart({ answered, mode, receipt: { seq, hash } }: SaidAnswer, reason: string, request: string): string {
  const proof = `{"seq":${seq},"hash":"${hash}","request":"${request}"}`;
  return `{"verdict":"${answered}","reason":${JSON.stringify(reason)},"mode":"${mode}","receipt":${proof}`;
}

type ReasonSource = Pick<DecidedCheck, "answered" | "decision" | "judgement" | "mode" | "stop">;

/** The reason of the answer: the contract's, and what a person or an approval added. */
export function answeredReason(check: ReasonSource): string {
  const { judgement, stop } = check;
  if (stop !== undefined) return `Svc: ${stop.person} stopped ${stoppedCalls(stop.scope)}: ${stop.why}`;
  const reason = judgedReason(check);
  return judgement === undefined || judgement.misfits.length === 0
    ? reason
    : `${reason}; ${misfitText(judgement.misfits)}`;
}

/** Says why an approval that the call names does nothing for it. */
function misfitText(misfits: readonly Misfit[]): string {
  if (misfits.includes("id")) return "no approval has the id that the call names";
  const parts = misfits.map((part) => misfitWords[part]);
  return `the approval that the call names is for ${parts.join(" and ")}`;
}

const misfitWords: Readonly<Record<Misfit, string>> = {
  id: "another call",
  input: "another input",
  key: "another key",
  session: "another session",
  spelling: "another spelling of a number",
  subject: "another subject, such as a customer",
  tool: "another tool",
};

function judgedReason(check: ReasonSource): string {
  const { judgement, decision } = check;
  const reason = reasonByMode(check);
  const own = decision.reason.replace(/^Svc: /, "");
  switch (judgement?.how) {
    case "used":
      return judgement.needed
        ? `Svc: ${judgement.by.join(" and ")} approved this call, which a rule parked: ${own}`
        : reason;
    case "grant":
      return `Svc: ${judgement.by.join(" and ")} granted calls like this one, which a rule parked: ${own}`;
    case "denied":
      return deniedReason(judgement);
    case "closed": {
      const id = approvalId(judgement.approval.row, judgement.approval.hash);
      return `Svc: the approval ${id} ${closedWords[judgement.status] ?? "is closed"}, and a rule parks this call: ${own}`;
    }
    case "capped":
      return `${reason}; ${waitingText(judgement.waiting)} for a person, so this call was not added: ask again later`;
    case "opened":
    case "attached":
    case undefined:
      return reason;
    default:
      return judgement satisfies never;
  }
}

const closedWords: Readonly<Record<string, string>> = {
  used: "was used already",
  expired: "has expired",
  cancelled: "was cancelled",
  superseded: "was replaced by another",
};

function waitingText(count: number): string {
  return count === 1 ? "1 call already waits" : `${count} calls already wait`;
}

const deniedWhat = { call: "this call", tool: "this tool in this session", rule: "calls under this rule" };

function deniedReason({ approval, denials }: Extract<Judgement, { readonly how: "denied" }>): string {
  if (denials > 0)
    return `Svc: people denied ${denials} calls under this rule within an hour, so it blocks further calls`;
  const { denial } = approval;
  if (denial === null) return "Svc: a person denied this call";
  const { person, comment, scope } = denial;
  return `Svc: ${person} denied ${deniedWhat[scope]}${comment === "" ? "" : `: ${comment}`}`;
}

function reasonByMode({ decision, mode, answered }: Pick<DecidedCheck, "answered" | "decision" | "mode">): string {
  const { verdict, reason } = decision;
  if (mode === "observe") {
    return `Svc: observe mode: the verdict ${verdict} was recorded and nothing is enforced (${reason.replace(/^Svc: /, "")})`;
  }
  return mode === "assist" && answered === "ESCALATE" ? `${reason}; in assist mode a person decides` : reason;
}
