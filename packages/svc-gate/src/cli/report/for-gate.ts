import { setImmediate, setTimeout } from "node:timers/promises";
import type { AskedReport, GateHistory } from "../../gate/mod.ts";
import { rowsWithin } from "../span.ts";
import { summarize } from "./summary.ts";

/** As many as the command shows without an option. */
const examplesMax = 2;

/** The report of a gate's own ledger, for GET /report: as JSON, like that of `svc-gate report --json`. */
export async function reportForGate(asked: AskedReport, history: GateHistory, signal: AbortSignal): Promise<string> {
  const { end, ...span } = await rowsWithin({ ...history, close: async () => undefined }, asked);
  const upTo = Math.min(end, history.rows + 1); // Checks go on meanwhile.
  const summary = await summarize(history, { ...span, end: upTo }, examplesMax, takingTurns(history, signal));
  return JSON.stringify(summary.json);
}

const workMs = 1;
const restMs = 4;
/** How long the gate counts as busy after a new row. */
const busyMs = 100;

/**
 * After a millisecond of work, other requests have their turn; while rows are added, for four milliseconds. Rejects if
 * the client has gone.
 */
function takingTurns({ lastRow }: GateHistory, signal: AbortSignal): () => Promise<void> | undefined {
  let [since, last, busyUntil] = [performance.now(), lastRow(), 0];
  const giveTurn = async (): Promise<void> => {
    if (lastRow() > last) [last, busyUntil] = [lastRow(), performance.now() + busyMs];
    if (performance.now() < busyUntil) await setTimeout(restMs, undefined, { signal });
    else await setImmediate(undefined, { signal });
    since = performance.now();
  };
  return () => (performance.now() - since < workMs ? undefined : giveTurn());
}
