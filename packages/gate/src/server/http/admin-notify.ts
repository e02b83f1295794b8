import type { FastifyReply } from "fastify";
import { good, quote, refuse, type EndpointJson, type EndpointsJson } from "../../../../core/src/wire/mod.ts";
import type { SenderState } from "../notify/sender.ts";
import { readBody, requireValue, sendJson, BodyError } from "../request/body.ts";
import { refuseWith, sendResult } from "./refusing.ts";
import type { CallWithoutGate } from "./route.ts";

/** Handles GET /admin/notify: how far each endpoint has got, without its address. */
export async function showEndpoints({ service, tenant, reply }: CallWithoutGate): Promise<FastifyReply> {
  const shown = await service.workOn(tenant, async (gate) => {
    const endpoints = (gate.senders?.states ?? []).map(endpointJson);
    return good<EndpointsJson>({ rows: gate.ledger.head.seq, endpoints });
  });
  return sendResult(reply, shown);
}

function endpointJson({ endpoint, row, waiting, dead, died }: SenderState): EndpointJson {
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
  const wanted = readBody(request.body, ["from", "endpoint"], (members) => {
    const [row, name] = [members.get("from"), members.get("endpoint")];
    if (typeof row !== "number" || !Number.isSafeInteger(row) || row < 1)
      throw new BodyError('"from" must be the number of a row');
    if (name !== undefined && typeof name !== "string")
      throw new BodyError('"endpoint" must be the name of an endpoint');
    return { from: row, endpoint: name };
  });
  const { from, endpoint } = requireValue(wanted);
  const replayed = await service.workOn(tenant, async (gate) =>
    good((await gate.senders?.replay(from, endpoint)) ?? []),
  );
  const endpoints = requireValue(replayed);
  if (endpoints.length > 0) return sendJson(reply, JSON.stringify({ from, endpoints }));
  const which = endpoint === undefined ? "no endpoint" : `no endpoint ${quote(endpoint)}`;
  return refuseWith(reply, refuse("not-found", `${which} gets the events of this ledger: see the file of SVC_NOTIFY`));
}
