import type { IncomingMessage, ServerResponse } from "node:http";
import { TLSSocket } from "node:tls";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { SlicedRead } from "../admission/reads.ts";
import type { ValidKey } from "../keys/keys.ts";
import type { Session } from "../../../../console/src/server/mod.ts";
import { requestId, traceIdOf } from "../telemetry/requests.ts";
import type { Trace } from "../telemetry/traces.ts";

/** One request and its answer, whether Fastify handles it or the fast path of `plain-check.ts`. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** For logs and the header `x-request-id`. */
  readonly id: string;
  /** The header fields of the answer so far, in lower case. */
  readonly headers: Record<string, string>;
  /** Undefined until a valid key was found. */
  key: ValidKey | undefined;
  /** Looks the key up again: it may have been revoked since, or the session of the console may have ended. */
  credential: () => ValidKey | undefined;
  /** The session of a request from the console. */
  session: Session | undefined;
  /** The tenant in the path; undefined if the path has none. */
  tenant: string | undefined;
  /** The read that answers it, once it has a place. */
  read: SlicedRead | undefined;
  /** The trace of a check with a known key. Later log lines and refusals belong to it. */
  trace: Trace | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    exchange: Exchange | undefined;
  }
}

export function startExchange(request: IncomingMessage, response: ServerResponse, id?: string): Exchange {
  const known = id ?? requestId(request.headers["x-request-id"]);
  const headers = { "x-request-id": known };
  return {
    request,
    response,
    id: known,
    headers,
    key: undefined,
    credential: nobody,
    session: undefined,
    tenant: undefined,
    read: undefined,
    trace: undefined,
  };
}

const nobody = (): undefined => undefined;

/** Returns the exchange of a request that Fastify handles. Its router refuses some requests before any hook runs. */
export function exchangeOf(request: FastifyRequest, reply: FastifyReply): Exchange {
  request.exchange ??= startExchange(request.raw, reply.raw, request.id);
  return request.exchange;
}

export function keyOf(request: FastifyRequest): ValidKey | undefined {
  return request.exchange?.key;
}

/** Returns the identity of a request for the log: its id, and its tenant, key and trace if known. */
export function identityOf({ request, id, key, tenant, trace }: Exchange): Readonly<Record<string, string>> {
  const traceId = trace?.id ?? traceIdOf(request.headers["traceparent"]);
  return {
    request: id,
    ...(key === undefined || tenant === undefined ? {} : { tenant }),
    ...(key === undefined ? {} : { key: key.name }),
    ...(traceId === undefined ? {} : { trace: traceId }),
  };
}

export function schemeOf({ request }: Exchange): "http" | "https" {
  return request.socket instanceof TLSSocket ? "https" : "http";
}
