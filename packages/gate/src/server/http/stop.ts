import type { FastifyReply } from "fastify";
import type { Stop, StopJson, StopSetJson, StopsJson } from "../../../../core/src/approvals/mod.ts";
import { good } from "../../../../core/src/wire/mod.ts";
import { readLift, readStop } from "../approvals/stop-request.ts";
import { isForTenants, liftStop, type Stopper } from "../policy/stops.ts";
import { requireValue, sendJson } from "../request/body.ts";
import { setStop } from "../service/set-stop.ts";
import type { Exchange } from "./exchange.ts";
import { refusalForRate } from "./key-refusals.ts";
import { readQuery } from "./query.ts";
import { refuseWith, sendResult } from "./refusing.ts";
import type { CallWithoutGate, RouteCall } from "./route.ts";
import { warningsOf } from "./stop-warnings.ts";

/** Handles GET /stop: the stops in force. */
export async function showStops({ gate, reply, request }: RouteCall): Promise<FastifyReply> {
  readQuery(request);
  const toJson = (stops: readonly Stop[]): StopsJson => ({ stopped: stops.length > 0, stops: stops.map(stopJson) });
  return sendResult(reply, await gate.stops(), toJson);
}

function stopJson({ at, person, root, row, scope, why, written }: Stop): StopJson {
  return { scope, written, why, person, at, receipt: row, root };
}

/**
 * Handles POST /admin/stop. A stop of the root is in force in each tenant too, before the answer comes. It says what the
 * stop ended on its own ledger, and which of its names nobody knows.
 */
export async function stop({ key, reply, request, service, tenant }: CallWithoutGate): Promise<FastifyReply> {
  const wanted = requireValue(readStop(request.body));
  const { scope } = wanted;
  const isEmergency = scope === "all" || "key" in scope;
  const overRate = isEmergency ? undefined : refusalForRate(request.exchange as Exchange, service);
  if (overRate !== undefined) return refuseWith(reply, overRate);
  const set = await service.workOn(tenant, async (gate) => {
    const done = await setStop(gate, wanted, stopperOf(key));
    if (!done.ok) return done;
    // The stop is set: nothing that fails from here on may say otherwise.
    const warnings = await warningsOf(scope, { service, gate, tenant }).catch(() => [notLookedUp]);
    return good({ ...done.value, warnings });
  });
  const found = requireValue(set);
  const tenants = tenant === null && isForTenants(scope) ? requireValue(await service.followRoot()) : [];
  const answer: StopSetJson = { ...found, ledgers: [tenant, ...tenants] };
  return sendJson(reply, JSON.stringify(answer));
}

/** Handles POST /admin/stop/lift. The answer lists the stops that are still in force. */
export async function lift({ key, reply, request, service, tenant }: CallWithoutGate): Promise<FastifyReply> {
  const wanted = requireValue(readLift(request.body));
  const lifted = await service.workOn(tenant, async (gate) => {
    const receipt = await gate.appendAdminEvent(liftStop(wanted, stopperOf(key), gate.policy.policySet));
    if (!receipt.ok) return receipt;
    const stops = await gate.stops();
    return stops.ok ? good({ receipt: receipt.value, stops: stops.value.map(stopJson) }) : stops;
  });
  const found = requireValue(lifted);
  if (tenant === null && isForTenants(wanted.scope)) await service.followRoot();
  return sendJson(reply, JSON.stringify(found));
}

const notLookedUp = "the gate could not look up the names of this stop";

function stopperOf(key: RouteCall["key"]): Stopper {
  const id = key?.id ?? "";
  return { by: id, person: key?.person ?? id };
}
