import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import type { LedgerPlace } from "../../gate/mod.ts";
import { readLedger, readSharedLedger } from "../../ledger/mod.ts";
import { replayAndFold } from "./deep.ts";
import type { Said } from "./run.ts";

const place = workerData as LedgerPlace;
giveWay();

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

/**
 * Where threads have priorities of their own, checks come first: Linux takes a thread's number for a process's, and those
 * that read the ledger, begun from here, inherit it.
 */
function giveWay(): void {
  try {
    const [, thread] = readlinkSync("/proc/thread-self").split("/task/");
    if (thread !== undefined) setPriority(Number(thread), constants.priority.PRIORITY_LOW);
  } catch {
    // Another system, or one that does not let it: threads are equal.
  }
}
