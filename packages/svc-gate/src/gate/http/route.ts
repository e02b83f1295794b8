import type { FastifyReply, FastifyRequest } from "fastify";
import type { Gate } from "../core/gate.ts";
import type { Key, Scope } from "../admin/keys/keys.ts";
import type { Service } from "../admin/service.ts";

/** One request, after its key was found good for it. */
export interface RouteCall {
  readonly service: Service;
  readonly gate: Gate;
  /** The tenant in the path; null is the root. */
  readonly tenant: string | null;
  /** Undefined on the one route that is open. */
  readonly key: Key | undefined;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** One row per route. Every row but /health refuses without a key; a test holds that against this table. */
export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly scope: Scope | undefined;
  /** Another scope that opens it too. */
  readonly orScope?: Scope;
  /** It is about the whole process: no tenant has it. */
  readonly ofRoot?: true;
  readonly handle: (call: RouteCall) => unknown;
}
