import type { Decision } from "../../contract/mod.ts";
import type { Durable, Receipt } from "../../ledger/entry/mod.ts";
import type { Mode, Verdict } from "../../wire/mod.ts";

/** What a mode lets out of a decision (specification 3.1): it may soften one, and never makes one up. */
export function answered({ verdict, final }: Pick<Decision, "verdict" | "final">, mode: Mode): Verdict {
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
 * The body of a 200 on POST /check. It takes nothing but a durable receipt: no receipt, no answer.
 *
 * @param request SHA-256 of the body received, in hex: the caller holds it against what was sent
 */
export function answerBody(decision: Decision, receipt: Durable<Receipt>, mode: Mode, request: string): string {
  const reason = JSON.stringify(answeredReason(decision, mode));
  const { seq, hash } = receipt;
  const proof = `{"seq":${seq},"hash":"${hash}","request":"${request}"}`;
  return `{"verdict":"${answered(decision, mode)}","reason":${reason},"mode":"${mode}","receipt":${proof}}`;
}

function answeredReason(decision: Decision, mode: Mode): string {
  const { verdict, reason } = decision;
  if (mode === "observe") {
    return `Svc: observe mode: the verdict ${verdict} was recorded and nothing is enforced (${reason.replace(/^Svc: /, "")})`;
  }
  return mode === "assist" && answered(decision, mode) === "ESCALATE"
    ? `${reason}; in assist mode a person decides`
    : reason;
}
