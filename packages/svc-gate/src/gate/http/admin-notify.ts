import type { FastifyReply } from "fastify";
import { good, quote, refuse } from "../../wire/mod.ts";
import type { SenderState } from "../notify/sender.ts";
import { readMembers, sendJson } from "../request/body.ts";
import { refuseWith } from "./refusing.ts";
import type { CallWithoutGate } from "./route.ts";

/** Handles GET /admin/notify: how far each endpoint has got, without its address. */
export async function showEndpoints({ service, tenant, reply }: CallWithoutGate): Promise<FastifyReply> {
  const shown = await service.workOn(tenant, async (gate) => {
    const endpoints = (gate.senders?.states ?? []).map(endpointJson);
    return good({ rows: gate.rows, endpoints });
  });
  return shown.ok ? sendJson(reply, JSON.stringify(shown.value)) : refuseWith(reply, shown.problem);
}

function endpointJson({ endpoint, row, waiting, dead, died }: SenderState): Readonly<Record<string, unknown>> {
  return {
    endpoint,
    row,
    waiting: waiting.map(({ id, tries, due }) => ({ id, tries, due: due === 0 ? null : due })),
    died,
    dead: dead.map(({ id, at, why }) => ({ id, at, why })),
  };
}

/** Handles POST /admin/notify/replay: sends all events from a row on again. */
export async function replay({ service, tenant, request, reply }: CallWithoutGate): Promise<FastifyReply> {
  const body = readMembers(request.body, ["from", "endpoint"]);
  if (!body.ok) return refuseWith(reply, body.problem);
  const [from, endpoint] = [body.value.get("from"), body.value.get("endpoint")];
  if (typeof from !== "number" || !Number.isSafeInteger(from) || from < 1)
    return refuseWith(reply, refuse("invalid-request", '"from" must be the number of a row'));
  if (endpoint !== undefined && typeof endpoint !== "string")
    return refuseWith(reply, refuse("invalid-request", '"endpoint" must be the name of an endpoint'));
  const replayed = await service.workOn(tenant, async (gate) =>
    good((await gate.senders?.replay(from, endpoint)) ?? []),
  );
  if (!replayed.ok) return refuseWith(reply, replayed.problem);
  if (replayed.value.length > 0) return sendJson(reply, JSON.stringify({ from, endpoints: replayed.value }));
  const which = endpoint === undefined ? "no endpoint" : `no endpoint ${quote(endpoint)}`;
  return refuseWith(reply, refuse("not-found", `${which} gets the events of this ledger: see the file of SVC_NOTIFY`));
}
