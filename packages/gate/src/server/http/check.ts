import { hash } from "node:crypto";
import type { Logger } from "pino";
import { bad, parseCheckRequest, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { Service } from "../service/service.ts";
import type { Gate } from "../service/gate.ts";
import { startTimings, type AnsweredCheck, type CheckTimings } from "../telemetry/observer.ts";
import { readBodyText } from "../request/body.ts";
import { identityOf, schemeOf, type Exchange } from "./exchange.ts";

/** A check whose whole body has arrived. */
export interface ReceivedCheck {
  readonly service: Service;
  readonly gate: Gate;
  /** The tenant in the path; null is the root. */
  readonly tenant: string | null;
  readonly exchange: Exchange;
  readonly body: Buffer;
  /** The request as the caller sent it, if `body` is a translation of it; by default `body`. */
  readonly received?: { readonly bytes: number; readonly digest: string };
  /** The MCP server of a message that could not be read. */
  readonly unreadFor?: string | undefined;
}

/**
 * Handles POST /check.
 *
 * @returns the body of the answer, after the receipt is on disk, or why the check is refused
 */
export async function answerCheck({
  service,
  gate,
  tenant,
  exchange,
  body,
  received = arrivalOf(body),
  unreadFor,
}: ReceivedCheck): Promise<Result<string, Refusal>> {
  const timings = startTimings();
  const { key } = exchange;
  const { traces, log } = service;
  if (traces !== undefined) {
    const { url = "", headers } = exchange.request;
    const [path = ""] = url.split("?");
    exchange.trace = traces.start({ path, scheme: schemeOf(exchange), tenant, headers }, timings);
  }
  const text = readBodyText(body);
  if (typeof text !== "string") return bad(text);
  const parsed = parseCheckRequest(text);
  if (!parsed.ok) return parsed;
  timings.parse = performance.now();
  const isReported = traces !== undefined || log.isLevelEnabled("debug");
  return gate.check(parsed.value, {
    keyName: key?.name ?? "",
    keyKind: key?.kind,
    unreadFor,
    bytes: received.bytes,
    digest: received.digest,
    timings,
    allowsTool: key?.allowsTool,
    onAnswer: isReported ? (decided) => reportAnswer(exchange, decided, timings, log) : undefined,
  });
}

/** The size of a body, and its SHA-256 in hex. */
export function arrivalOf(body: Buffer): { readonly bytes: number; readonly digest: string } {
  return { bytes: body.length, digest: hash("sha256", body, "hex") };
}

/** Reports the result of a check to its trace and to the debug log. */
function reportAnswer(exchange: Exchange, decided: AnsweredCheck, timings: CheckTimings, log: Logger): void {
  exchange.trace?.endWithAnswer(decided, timings);
  const { toolName: tool, verdict, answered, rule, seq } = decided;
  log.debug({ ...identityOf(exchange), tool, verdict, answered, rule, seq }, "answered");
}
