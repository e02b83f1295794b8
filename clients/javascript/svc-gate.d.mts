/** Types and promises of svc-gate.mjs. spec/client.md defines the behaviour, case by case. */

/** The gate's own record of its receipt. Absent if the gate's answers do not have it. */
export interface VerdictReceipt {
  readonly seq?: number;
  readonly hash?: string;
  /** The SHA-256 of the judged body, in hexadecimal; the client has compared it with the sent body. */
  readonly request?: string;
  readonly [member: string]: unknown;
}

/** The approval that a person gives or denies, if a person decides the call. Times are milliseconds since the epoch. */
export interface VerdictApproval {
  /** Null if too many calls already wait for a person. */
  readonly id?: string | null;
  readonly status?: string;
  readonly decide_by?: number | null;
  readonly use_by?: number | null;
  /** The next step: `wait`, `check`, `retry` or `none`. */
  readonly next?: string;
  readonly [member: string]: unknown;
}

/** The answer to a check. Frozen. A BLOCK is neither `allowed` nor `escalated`. */
export interface Verdict {
  readonly verdict: "ALLOW" | "BLOCK" | "ESCALATE";
  /** One sentence for a person. If `unreached` is true, it is for operations, not for the model. */
  readonly reason: string;
  /** Null if the gate did not answer. */
  readonly mode: "observe" | "assist" | "enforce" | null;
  /** True if the client made the verdict itself because the gate gave none. Then no receipt exists: stop the run. */
  readonly unreached: boolean;
  /** The verdict is ALLOW: the action may run. */
  readonly allowed: boolean;
  /** The verdict is ESCALATE: the action waits for a person. */
  readonly escalated: boolean;
  readonly receipt: VerdictReceipt | null;
  /** Null if no person decides the call. */
  readonly approval: VerdictApproval | null;
}

export interface SettleOptions {
  /** Milliseconds to wait for a person. Default 900000. */
  readonly timeoutMs?: number | undefined;
  /** Ends the wait; the verdict is then a BLOCK. */
  readonly signal?: AbortSignal | undefined;
}

export interface SvcGateOptions {
  /** The bearer key, sent with every call but `health`. Visible ASCII characters. */
  readonly apiKey?: string | null | undefined;
  /** Groups the calls of one agent run, 1 to 256 bytes. Without it, every instance has a new one. */
  readonly sessionId?: string | null | undefined;
  /** Milliseconds for one attempt, from the look-up of the name to the last byte. Default 10000. */
  readonly timeoutMs?: number | undefined;
  /**
   * More attempts after a transport error, 0 to 100, default 1; a call with an answer is never repeated. The longest
   * wait is `timeoutMs * (1 + retries)` and 150 ms for each retry.
   */
  readonly retries?: number | undefined;
  /**
   * Lets actions run while the gate cannot be reached or refuses the key: only for the observe phase. To end such an
   * agent, stop its key and do not revoke it. Default false.
   */
  readonly failOpen?: boolean | undefined;
  /** A retry of a check adds no second row: the gate answers it as the first attempt. Default false. */
  readonly idempotent?: boolean | undefined;
}

export interface ReceiptsQuery {
  /** How many rows, 1 to 1000; the gate's default is 50. */
  readonly limit?: number | undefined;
  /** Only rows before this number. */
  readonly before?: number | undefined;
  readonly sessionId?: string | undefined;
  readonly toolName?: string | undefined;
  readonly verdict?: "ALLOW" | "BLOCK" | "ESCALATE" | undefined;
  /** `check` is the gate's default. */
  readonly kind?: "check" | "change" | "result" | "all" | undefined;
}

/** A route other than check gave no result. `code` and `detail` are the gate's own words, without the key. */
export class SvcGateError extends Error {
  constructor(message: string, status?: number | null, code?: string | null, detail?: string | null);
  /** The HTTP status; null if no answer came. */
  readonly status: number | null;
  readonly code: string | null;
  readonly detail: string | null;
}

/**
 * A gate at `url`, which may have a path prefix and a trailing slash. Any number of calls may run at the same time.
 *
 * The constructor throws a TypeError or a RangeError for invalid options, because they are mistakes in the program.
 */
export class SvcGate {
  constructor(url: string, options?: SvcGateOptions);
  readonly sessionId: string;

  /**
   * Asks whether this tool call may run. Never rejects: a failure is a verdict with `unreached`.
   *
   * `toolInput` and `platformState` contain plain JSON data: plain objects, arrays without gaps, strings, finite numbers
   * under 2**53, booleans and null. A member that is undefined is left out. Anything else (a Map, a Date, a bigint, a
   * class instance, a getter, a cycle, undefined in an array) is a BLOCK that names the member. A number of 2**53 or
   * more represents several whole numbers, so nobody could say which one was judged: send it as text.
   *
   * `approval` is the id of an approval of this call; `settle` sends it itself.
   */
  readonly check: (
    toolName: string,
    toolInput: object,
    platformState?: object | null,
    approval?: string | null,
  ) => Promise<Verdict>;

  /**
   * Waits until a person decides the ESCALATE of this call, then checks the call again. Never rejects.
   *
   * `facts` is the `platformState` of that check, or a function that returns it. The result is a BLOCK if a person
   * denies the call, or nobody approves it in time. `failOpen` does not apply to the wait. A verdict that is not
   * ESCALATE is returned unchanged.
   */
  readonly settle: (
    verdict: Verdict,
    toolName: string,
    toolInput: object,
    facts?: object | null | (() => object | null | undefined | Promise<object | null | undefined>),
    options?: SettleOptions,
  ) => Promise<Verdict>;

  /**
   * Reports what became of an allowed call. Never rejects.
   *
   * After a time-out, or an error once the tool had started, it is `unknown`. `amount` is what the tool really used, `ref`
   * your own reference. Resolves to null if the gate recorded the outcome, else to a sentence that says why not.
   */
  readonly outcome: (
    verdict: Verdict,
    status: "done" | "failed" | "unknown",
    details?: { readonly amount?: number | null; readonly ref?: string | null },
  ) => Promise<string | null>;

  /** `{status: "ok", mode}`. The key is not sent. Rejects with SvcGateError, with status 503 for an unhealthy gate. */
  health(): Promise<{ status: string; mode: string }>;

  /** The text in force, verbatim. Rejects with SvcGateError. */
  rules(): Promise<string>;

  /**
   * Rows of the chain, newest first. Rejects with SvcGateError. Numbers of more than 15 digits lose some of them, as
   * everywhere in JavaScript: to verify a chain, use `svc-gate verify`.
   */
  receipts(query?: ReceiptsQuery): Promise<{ receipts: Record<string, unknown>[]; next: number | null }>;

  /** `{ok: true, rows, head}`, or `{ok: false, rows, first_broken}`. Rejects with SvcGateError. */
  verify(): Promise<{ ok: boolean; rows: number; head?: unknown; first_broken?: unknown }>;
}
