import { setTimeout } from "node:timers/promises";
import type { AskedReport, GateHistory } from "../../gate/mod.ts";
import { rowsWithin } from "../span.ts";
import { summarize } from "./summary.ts";

/** As many as the command shows without an option. */
const examplesMax = 2;

/** The report of a gate's own ledger, for GET /report: as JSON, like that of `svc-gate report --json`. */
export async function reportForGate(asked: AskedReport, history: GateHistory, signal: AbortSignal): Promise<string> {
  const { end, ...span } = await rowsWithin({ ...history, close: async () => undefined }, asked);
  const upTo = Math.min(end, history.rows + 1); // Checks go on meanwhile.
  const summary = await summarize(history, { ...span, end: upTo }, examplesMax, takingTurns(signal));
  return JSON.stringify(summary.json);
}

const workMs = 2;
const restMs = 2;

/** After two milliseconds of work, checks have the thread for as long. Rejects if the client has gone. */
function takingTurns(signal: AbortSignal): () => Promise<void> | undefined {
  let until = performance.now() + workMs;
  return () => {
    if (performance.now() < until) return undefined;
    return setTimeout(restMs, undefined, { signal }).then(() => {
      until = performance.now() + workMs;
    });
  };
}
