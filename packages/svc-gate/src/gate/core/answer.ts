import type { Decision } from "../../contract/mod.ts";
import type { Durable, Receipt } from "../../ledger/entry/mod.ts";
import type { Mode, Verdict } from "../../wire/mod.ts";

/** A decided call with its receipt on disk. */
export interface DecidedCheck {
  readonly decision: Decision;
  /** The verdict that the caller gets: the mode may soften the decision. */
  readonly answered: Verdict;
  readonly mode: Mode;
  /** Does a contract route the tool? */
  readonly routed: boolean;
  readonly receipt: Durable<Receipt>;
}

/** The verdict that the caller gets (specification 3.1): the mode may soften a decision, and never makes one up. */
export function answeredVerdict({ verdict, final }: Pick<Decision, "verdict" | "final">, mode: Mode): Verdict {
  switch (mode) {
    case "observe":
      return "ALLOW";
    case "assist":
      return verdict === "BLOCK" && !final ? "ESCALATE" : verdict;
    case "enforce":
      return verdict;
    default:
      return mode satisfies never;
  }
}

/**
 * Returns the body of a 200 on POST /check. It needs a durable receipt, so no answer exists without one.
 *
 * @param request SHA-256 of the received body, in hex: the caller compares it with the body that it sent
 */
export function answerBody(check: Omit<DecidedCheck, "routed">, request: string): string {
  const { answered, mode, receipt } = check;
  const { seq, hash } = receipt;
  const proof = `{"seq":${seq},"hash":"${hash}","request":"${request}"}`;
  return `{"verdict":"${answered}","reason":${JSON.stringify(answeredReason(check))},"mode":"${mode}","receipt":${proof}}`;
}

function answeredReason({ decision, mode, answered }: Pick<DecidedCheck, "answered" | "decision" | "mode">): string {
  const { verdict, reason } = decision;
  if (mode === "observe") {
    return `Svc: observe mode: the verdict ${verdict} was recorded and nothing is enforced (${reason.replace(/^Svc: /, "")})`;
  }
  return mode === "assist" && answered === "ESCALATE" ? `${reason}; in assist mode a person decides` : reason;
}
