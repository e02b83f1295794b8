import type { FastifyReply } from "fastify";
import { bad, good, limits, refuse, type Result } from "../../../../core/src/wire/mod.ts";
import { gateHistory } from "../policy/active-ledger.ts";
import type { AskedReport } from "../policy/hooks.ts";
import { sendJson } from "../request/body.ts";
import { badMoment, badNumber, badValue, queryOf, readPeriod, type Parameters, type Query } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { ReadCall } from "./route.ts";

/** Handles GET /report: what `svc-gate report --json` prints for the gate's own ledger. */
export async function report({ gate, read, reply, request, service }: ReadCall): Promise<FastifyReply> {
  const { report: reportRows } = service.hooks;
  if (reportRows === undefined) return refuseWith(reply, refuse("not-found", "this gate was started without reports"));
  const asked = readAsked(queryOf(request));
  if (!asked.ok) return refuseWith(reply, refuse("invalid-query", asked.problem));
  const history = await gateHistory(gate.ledger, gate.policy);
  return sendJson(reply, await reportRows(asked.value, history, () => read.next()));
}

const parameters: Parameters = {
  since: badMoment,
  until: badMoment,
  last: (value, name) => badNumber(value, name, limits.reportRowsMax),
};

function readAsked(query: Query): Result<AskedReport, string> {
  const problem = badValue(query, parameters);
  const period = problem === undefined ? readPeriod(query.parameters) : bad(problem);
  if (!period.ok) return period;
  return good({ ...period.value, last: Number(query.parameters.get("last") ?? limits.reportRowsMax) });
}
