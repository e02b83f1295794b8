import type { FastifyRequest } from "fastify";
import type { Key } from "../keys.ts";
import { traceIdOf } from "../telemetry/requests.ts";
import type { Trace } from "../telemetry/traces.ts";

/** What became known of a request on its way: whose key came with it, and the trace that it is on. */
interface Known {
  readonly key: Key | undefined;
  trace: Trace | undefined;
}

const knownOf = new WeakMap<FastifyRequest, Known>();

export function noteKey(request: FastifyRequest, key: Key): void {
  knownOf.set(request, { key, trace: undefined });
}

export function keyOf(request: FastifyRequest): Key | undefined {
  return knownOf.get(request)?.key;
}

/** Notes the trace of a request whose key is known: what is logged and refused from here on belongs to it. */
export function noteTrace(request: FastifyRequest, trace: Trace): void {
  const known = knownOf.get(request);
  if (known !== undefined) known.trace = trace;
}

export function traceOf(request: FastifyRequest): Trace | undefined {
  return knownOf.get(request)?.trace;
}

/** Whose a request is, for its line in the log: its id, and as far as they are known its tenant, key and trace. */
export function whose(request: FastifyRequest): Readonly<Record<string, string>> {
  const known = knownOf.get(request);
  const { tenant } = (request.params ?? {}) as { readonly tenant?: string };
  const trace = known?.trace?.id ?? traceIdOf(request.headers["traceparent"]);
  return {
    request: request.id,
    ...(known?.key === undefined || tenant === undefined ? {} : { tenant }),
    ...(known?.key === undefined ? {} : { key: known.key.name }),
    ...(trace === undefined ? {} : { trace }),
  };
}
