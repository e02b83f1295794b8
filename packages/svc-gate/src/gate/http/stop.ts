import type { FastifyReply } from "fastify";
import type { Stop, StopScope } from "../../approvals/mod.ts";
import { good, refuse } from "../../wire/mod.ts";
import type { Gate } from "../service/gate.ts";
import { readLift, readStop } from "../approvals/stop-request.ts";
import { isForTenants, liftStop, setStop, type Stopper } from "../policy/stops.ts";
import { sendJson } from "../request/body.ts";
import { badQuery, queryOf } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { CallWithoutGate, RouteCall } from "./route.ts";

/** Handles GET /stop: the stops in force. */
export async function showStops({ gate, reply, request }: RouteCall): Promise<FastifyReply> {
  const problem = badQuery(queryOf(request), []);
  if (problem !== undefined) return refuseWith(reply, refuse("invalid-query", problem));
  const stops = await gate.stops();
  if (!stops.ok) return refuseWith(reply, stops.problem);
  return sendJson(reply, JSON.stringify({ stopped: stops.value.length > 0, stops: stops.value.map(stopJson) }));
}

function stopJson({ at, person, root, row, scope, why }: Stop): Readonly<Record<string, unknown>> {
  return { scope, why, person, at, receipt: row, root };
}

/** Handles POST /admin/stop. A stop of the root holds in each tenant too; the answer comes after it holds. */
export async function stop({ key, reply, request, service, tenant }: CallWithoutGate): Promise<FastifyReply> {
  const asked = readStop(request.body);
  if (!asked.ok) return refuseWith(reply, asked.problem);
  const { scope } = asked.value;
  const set = await service.workOn(tenant, (gate) =>
    gate.appendAdminEvent(setStop({ ...asked.value, scope: withOwnNames(scope, gate) }, stopperOf(key))),
  );
  if (!set.ok) return refuseWith(reply, set.problem);
  const tenants = tenant === null && isForTenants(scope) ? await service.followRoot() : good([]);
  if (!tenants.ok) return refuseWith(reply, tenants.problem);
  return sendJson(reply, JSON.stringify({ receipt: set.value, ledgers: [tenant, ...tenants.value] }));
}

/** Handles POST /admin/stop/lift. */
export async function lift({ key, reply, request, service, tenant }: CallWithoutGate): Promise<FastifyReply> {
  const asked = readLift(request.body);
  if (!asked.ok) return refuseWith(reply, asked.problem);
  const { scope, why } = asked.value;
  const lifted = await service.workOn(tenant, (gate) =>
    gate.appendAdminEvent(liftStop({ scope: withOwnNames(scope, gate), why }, stopperOf(key))),
  );
  if (!lifted.ok) return refuseWith(reply, lifted.problem);
  return sendJson(reply, JSON.stringify({ receipt: lifted.value }));
}

/** Adds the own name of each tool that the scope names by an alias, so that the stop covers all names of the tool. */
function withOwnNames(scope: StopScope, { policy }: Pick<Gate, "policy">): StopScope {
  const { aliases } = policy.policySet;
  if (scope === "all" || !("tools" in scope) || !scope.tools.some((tool) => aliases.has(tool))) return scope;
  return { tools: [...new Set(scope.tools.flatMap((tool) => [tool, aliases.get(tool) ?? tool]))] };
}

function stopperOf(key: RouteCall["key"]): Stopper {
  const id = key?.id ?? "";
  return { by: id, person: key?.person ?? id };
}
