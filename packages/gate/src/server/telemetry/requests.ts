import { randomBytes } from "node:crypto";

const sentMax = 128;

/** Distinguishes the requests of this process from those of its replicas and of its next start. */
const ownPrefix = randomBytes(9).toString("base64url");
let made = 0;

/**
 * Returns the id of a request for logs and the answer's `x-request-id`: the caller's id if it is safe in a log line,
 * else a new one.
 */
export function requestId(sent: string | readonly string[] | undefined): string {
  if (typeof sent === "string" && sent.length <= sentMax && /^[\x21-\x7e]+$/.test(sent)) return sent;
  made += 1;
  return `${ownPrefix}-${made.toString(36)}`;
}

/** Returns the trace id in a W3C `traceparent`, for a log line; undefined if there is none or it is not valid. */
export function traceIdOf(traceparent: string | readonly string[] | undefined): string | undefined {
  if (typeof traceparent !== "string") return undefined;
  const trace = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)/.exec(traceparent)?.[1];
  return trace === undefined || /^0+$/.test(trace) ? undefined : trace;
}
