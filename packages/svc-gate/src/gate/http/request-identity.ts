import type { FastifyRequest } from "fastify";
import type { Key } from "../admin/keys/keys.ts";
import { traceIdOf } from "../telemetry/requests.ts";
import type { Trace } from "../telemetry/traces.ts";

/** What became known of a request on its way: whose key came with it, and the trace that it is on. */
interface RequestIdentity {
  readonly key: Key | undefined;
  trace: Trace | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Undefined until the key is known to be good for it. */
    identity: RequestIdentity | undefined;
  }
}

export function noteKey(request: FastifyRequest, key: Key): void {
  request.identity = { key, trace: undefined };
}

export function keyOf(request: FastifyRequest): Key | undefined {
  return request.identity?.key;
}

/** Notes the trace of a request whose key is known: what is logged and refused from here on belongs to it. */
export function noteTrace(request: FastifyRequest, trace: Trace): void {
  if (request.identity !== undefined) request.identity.trace = trace;
}

export function traceOf(request: FastifyRequest): Trace | undefined {
  return request.identity?.trace;
}

/** Whose a request is, for its line in the log: its id, and as far as they are known its tenant, key and trace. */
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
