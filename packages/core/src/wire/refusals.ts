/**
 * Every refusal: a client error, or overload. A refusal writes no receipt and counts nothing (RFC 9457 problem details
 * on the wire). `title` describes the kind of refusal; `detail` describes the problem of this request.
 */
const table = {
  "invalid-json": { status: 400, title: "The body is not strict JSON" },
  "invalid-request": { status: 400, title: "The request is not valid" },
  "invalid-query": { status: 400, title: "A query parameter is not valid" },
  "bad-http": { status: 400, title: "The request is not HTTP that the gate reads" },
  unauthorized: { status: 401, title: "A valid API key is needed" },
  forbidden: { status: 403, title: "The API key may not do that" },
  "code-needed": { status: 403, title: "The first sign-in needs the code from the gate's terminal" },
  "sign-in-refused": { status: 403, title: "The sign-in with the provider was refused" },
  "wrong-origin": { status: 403, title: "The console did not send the request" },
  "not-found": { status: 404, title: "There is nothing at this path" },
  "method-not-allowed": { status: 405, title: "This path does not take that method" },
  conflict: { status: 409, title: "The API key is not in a state for that" },
  "call-id-used": { status: 409, title: "The call id was used already" },
  "approval-closed": { status: 409, title: "The approval is closed" },
  "approval-changed": { status: 409, title: "The approval is not the one that was shown" },
  "not-an-approver": { status: 403, title: "The API key may not decide this call" },
  "self-approval": { status: 403, title: "Nobody decides a call of their own" },
  "grant-refused": { status: 422, title: "The grant cannot be made" },
  "outcome-refused": { status: 409, title: "The outcome was not recorded" },
  "stop-refused": { status: 409, title: "The stop cannot be set or lifted" },
  "body-timeout": { status: 408, title: "The request did not arrive in time" },
  "body-too-large": { status: 413, title: "The body is too large" },
  "unsupported-media-type": { status: 415, title: "The body must be application/json" },
  "headers-too-large": { status: 431, title: "The headers are too large" },
  "wrong-host": { status: 421, title: "The Host header is not a name of the gate" },
  "wrong-tool": { status: 422, title: "The API key is not for this tool" },
  "contract-refused": { status: 422, title: "The contract was not put in force" },
  "rate-limited": { status: 429, title: "The API key has sent too many requests" },
  "tenant-unavailable": { status: 503, title: "The tenant cannot be served" },
  "provider-unavailable": { status: 503, title: "The provider of the sign-in is not available" },
  "queue-full": { status: 503, title: "The gate has too many calls waiting" },
  "too-many-waiting": { status: 503, title: "Too many requests wait" },
  stopping: { status: 503, title: "The gate is stopping" },
  "ledger-unavailable": { status: 503, title: "The ledger cannot be written" },
  superseded: { status: 503, title: "A later gate serves this ledger" },
  "clock-unreliable": { status: 503, title: "The clock of the gate cannot be trusted" },
} as const;

export type RefusalCode = keyof typeof table;

export const refusals: Readonly<Record<RefusalCode, { readonly status: number; readonly title: string }>> = table;

export interface Refusal {
  readonly code: RefusalCode;
  /** One sentence: what happened, where, what to do. Never contains a key. */
  readonly detail: string;
  /** The methods that the path supports, for `method-not-allowed`. */
  readonly allow?: string;
  /** Seconds after which the same request may be answered. A 429 or a 503 without this member means one second. */
  readonly retrySeconds?: number;
}

export function refuse(code: RefusalCode, detail: string): Refusal {
  return { code, detail };
}
