import type { FastifyRequest } from "fastify";
import type { Key } from "../admin/keys/keys.ts";
import { traceIdOf } from "../telemetry/requests.ts";
import type { Trace } from "../telemetry/traces.ts";

/** The key and the trace of a request. */
interface RequestIdentity {
  readonly key: Key | undefined;
  trace: Trace | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Undefined until a valid key was found. */
    identity: RequestIdentity | undefined;
  }
}

export function noteKey(request: FastifyRequest, key: Key): void {
  request.identity = { key, trace: undefined };
}

export function keyOf(request: FastifyRequest): Key | undefined {
  return request.identity?.key;
}

/** Notes the trace of a request with a known key. Later log lines and refusals belong to it. */
export function noteTrace(request: FastifyRequest, trace: Trace): void {
  if (request.identity !== undefined) request.identity.trace = trace;
}

export function traceOf(request: FastifyRequest): Trace | undefined {
  return request.identity?.trace;
}

/** Returns the identity of a request for the log: its id, and its tenant, key and trace if known. */
export function requestIdentity(request: FastifyRequest): Readonly<Record<string, string>> {
  const { identity: known } = request;
  const { tenant } = (request.params ?? {}) as { readonly tenant?: string };
  const trace = known?.trace?.id ?? traceIdOf(request.headers["traceparent"]);
  return {
    request: request.id,
    ...(known?.key === undefined || tenant === undefined ? {} : { tenant }),
    ...(known?.key === undefined ? {} : { key: known.key.name }),
    ...(trace === undefined ? {} : { trace }),
  };
}
