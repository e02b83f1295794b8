import type { ReportRequest, GateHistory, NextTurn } from "../../../gate/src/server/mod.ts";
import { rowsWithin } from "../span.ts";
import { summarize } from "./summary.ts";

/** As many as the command shows without an option. */
const examplesMax = 2;

/** The report of a gate's own ledger, for GET /report: as JSON, like that of `svc-gate report --json`. */
export async function reportForGate(request: ReportRequest, history: GateHistory, next: NextTurn): Promise<string> {
  const { end, ...span } = await rowsWithin(history, request);
  const upTo = Math.min(end, history.rows + 1); // Checks go on meanwhile.
  const summary = await summarize(history, { ...span, end: upTo }, examplesMax, next);
  return JSON.stringify(summary.json);
}
