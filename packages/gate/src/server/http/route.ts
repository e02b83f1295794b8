import type { FastifyReply, FastifyRequest } from "fastify";
import type { Gate } from "../service/gate.ts";
import type { ValidKey, KeyScope } from "../keys/keys.ts";
import type { Service } from "../service/service.ts";
import type { SlicedRead, ReadKind } from "../admission/reads.ts";

export interface RouteCall {
  readonly service: Service;
  readonly gate: Gate;
  /** The tenant in the path; null is the root. */
  readonly tenant: string | null;
  /** Undefined on /health, which needs no key. */
  readonly key: ValidKey | undefined;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** A request of a route that reads. It has a place. */
export interface ReadCall extends RouteCall {
  readonly read: SlicedRead;
}

/**
 * A request of an administrator who may have to repair a tenant whose gate cannot be opened. It has no gate, so that a
 * handler cannot take the root's for the tenant's: it opens the right one with `service.workOn`.
 */
export type CallWithoutGate = Omit<RouteCall, "gate">;
export type ReadWithoutGate = Omit<ReadCall, "gate">;

/** One route. Each route except /health needs a key; a test checks that. */
export type HttpRoute = RouteForm &
  (
    | { readonly reads: ReadKind; readonly withoutGate?: never; readonly handle: (call: ReadCall) => unknown }
    | { readonly reads?: never; readonly withoutGate?: never; readonly handle: (call: RouteCall) => unknown }
    | { readonly reads: ReadKind; readonly withoutGate: true; readonly handle: (call: ReadWithoutGate) => unknown }
    | { readonly reads?: never; readonly withoutGate: true; readonly handle: (call: CallWithoutGate) => unknown }
  );

interface RouteForm {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly scope: KeyScope | undefined;
  /** Other scopes that also open it. */
  readonly orScopes?: readonly KeyScope[];
  /** A read that mostly waits for others, so it has a place, but its handler runs in no turn. */
  readonly isApart?: true;
  /** A read whose handler itself takes a place, and turns. */
  readonly readsItself?: ReadKind;
  /** A key of an agent's host opens it too. The handler shows such a key only its own calls. */
  readonly forHosts?: true;
  /** The route speaks another standard's language, which knows fewer statuses. */
  readonly dialect?: "authzen";
  /** The rate of a key does not refuse it. */
  readonly forEmergencies?: true;
  /** The route is about the whole process and does not exist below a tenant. */
  readonly ofRoot?: true;
}
