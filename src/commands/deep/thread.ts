import { parentPort, workerData } from "node:worker_threads";
import type { LedgerPlace } from "../../gate/mod.ts";
import { readLedger, readSharedLedger } from "../../ledger/mod.ts";
import { replayAndFold } from "./deep.ts";
import type { Said } from "./run.ts";

const place = workerData as LedgerPlace;

try {
  const ledger = await ("folder" in place ? readLedger(place.folder) : readSharedLedger(place));
  try {
    const { rows } = ledger;
    say({ found: await replayAndFold(ledger, (done) => say({ progress: { done, rows } })) });
  } finally {
    await ledger.close();
  }
} catch (error) {
  say({ failed: error instanceof Error ? (error.stack ?? error.message) : String(error) });
}

function say(said: Said): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(said);
}
