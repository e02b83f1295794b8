import type { FastifyReply } from "fastify";
import { bad, good, limits, refuse, type Result } from "../../wire/mod.ts";
import type { AskedReport } from "../admin/hooks.ts";
import { readMoment } from "../start/moment.ts";
import { sendJson } from "./body.ts";
import { badMoment, badNumber, badQuery, queryOf, type Query } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

/** Handles GET /report: what `svc-gate report --json` prints for the gate's own ledger. */
export async function report({ gate, reply, request, service, tenant }: RouteCall): Promise<FastifyReply> {
  const { report: reportRows } = service.hooks;
  if (reportRows === undefined) return refuseWith(reply, refuse("not-found", "this gate was started without reports"));
  const asked = readAsked(queryOf(request));
  if (!asked.ok) return refuseWith(reply, refuse("invalid-query", asked.problem));
  const entered = service.reporting.enter(tenant ?? "");
  if (!entered.ok) return refuseWith(reply, entered.problem);
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  try {
    return await sendJson(reply, await reportRows(asked.value, await gate.history(), gone.signal));
  } catch (error) {
    if (!gone.signal.aborted) throw error;
    return reply.hijack(); // Nobody waits for the answer.
  } finally {
    entered.value();
  }
}

function readAsked(query: Query): Result<AskedReport, string> {
  const value = (name: string): string | undefined => query.parameters.get(name) ?? undefined;
  const [since, until, last] = [value("since"), value("until"), value("last")];
  const problem =
    badQuery(query, ["since", "until", "last"]) ??
    (since && badMoment(since, "since")) ??
    (until && badMoment(until, "until")) ??
    (last && badNumber(last, "last", limits.reportRowsMax));
  if (problem !== undefined) return bad(problem);
  const asked = { since: momentOf(since), until: momentOf(until), last: Number(last ?? limits.reportRowsMax) };
  const isReversed = asked.since !== undefined && asked.until !== undefined && asked.since > asked.until;
  return isReversed ? bad('"since" must not be after "until"') : good(asked);
}

function momentOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : readMoment(text);
}
