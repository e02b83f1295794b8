import type { FastifyReply } from "fastify";
import { limits, refuse } from "../../../../core/src/wire/mod.ts";
import { gateHistory } from "../policy/active-ledger.ts";
import { sendJson } from "../request/body.ts";
import { badMoment, badNumber, readPeriod, readQuery, type Parameters } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { ReadCall } from "./route.ts";

/** Handles GET /report: what `svc-gate report --json` prints for the gate's own ledger. */
export async function report({ gate, read, reply, request, service }: ReadCall): Promise<FastifyReply> {
  const { report: reportRows } = service.hooks;
  if (reportRows === undefined) return refuseWith(reply, refuse("not-found", "this gate was started without reports"));
  const query = readQuery(request, parameters);
  const wanted = { ...readPeriod(query), last: Number(query.get("last") ?? limits.reportRowsMax) };
  const history = await gateHistory(gate.ledger, gate.policy);
  return sendJson(reply, await reportRows(wanted, history, () => read.next()));
}

const parameters: Parameters = {
  since: badMoment,
  until: badMoment,
  last: (value, name) => badNumber(value, name, limits.reportRowsMax),
};
