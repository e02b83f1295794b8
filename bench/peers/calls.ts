import type { Verdict } from "../../packages/core/src/wire/mod.ts";
import { paymentBody } from "../requests.ts";

/** A tool call before it is converted for a peer: the body of POST /check. */
export interface Call {
  readonly tool_name: string;
  readonly tool_input: Readonly<Record<string, unknown>>;
  readonly session_id: string;
  readonly platform_state?: Readonly<Record<string, unknown>>;
}

export interface Expected {
  readonly what: string;
  readonly verdict: Verdict;
  readonly call: Call;
}

const ordinary = paymentCall(0);

/**
 * The worked example of the specification (4.6) with the limit for one payment: each of the seven calls but the first
 * breaks one rule. Every engine must also agree on two more: the stricter verdict wins, and unknown tools are not
 * allowed.
 */
export const expectedCalls: readonly Expected[] = [
  { what: "10 USD to a registered payee", verdict: "ALLOW", call: ordinary },
  {
    what: "a payee one character off",
    verdict: "BLOCK",
    call: changed({ payee_address: "0x7f3a9c20d2" }, {}),
  },
  { what: "60 USD at once", verdict: "BLOCK", call: changed({ amount: 60 }, { historical_price_usd: 60 }) },
  { what: "20 USD for what cost 10", verdict: "ESCALATE", call: changed({ amount: 20 }, {}) },
  {
    what: "20 USD when 190 are spent",
    verdict: "BLOCK",
    call: changed({ amount: 20 }, { monthly_spend_usd: 190, historical_price_usd: 20 }),
  },
  { what: "an offer that has expired", verdict: "BLOCK", call: changed({ offer_expires_epoch: 1_789_999_999 }, {}) },
  { what: "no snapshot", verdict: "BLOCK", call: withoutSnapshot(ordinary) },
  {
    what: "a payee one character off, for twice the usual price",
    verdict: "BLOCK",
    call: changed({ payee_address: "0x7f3a9c20d2", amount: 20 }, {}),
  },
  { what: "an unknown tool", verdict: "BLOCK", call: { ...ordinary, tool_name: "payment.sent" } },
];

/** Returns a call of the load: all are allowed, with random sessions. */
export function paymentCall(sequence: number): Call {
  return JSON.parse(paymentBody(sequence)) as Call;
}

/** Returns the calls that a peer answered differently from the table, one sentence each. */
export function disagreements(answers: readonly (Verdict | undefined)[]): readonly string[] {
  return expectedCalls.flatMap(({ what, verdict }, at) =>
    answers[at] === verdict ? [] : [`${what}: ${answers[at] ?? "no verdict"}, not ${verdict}`],
  );
}

function changed(input: Readonly<Record<string, unknown>>, platform: Readonly<Record<string, unknown>>): Call {
  return {
    ...ordinary,
    tool_input: { ...ordinary.tool_input, ...input },
    platform_state: { ...ordinary.platform_state, ...platform },
  };
}

function withoutSnapshot({ tool_name, tool_input, session_id }: Call): Call {
  return { tool_name, tool_input, session_id };
}
