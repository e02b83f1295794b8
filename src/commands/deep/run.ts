import { Worker } from "node:worker_threads";
import type { DeepFound, DeepProgress, DeepVerify, LedgerPlace } from "../../gate/mod.ts";

/** What the thread says. */
export type Said = { readonly progress: DeepProgress } | { readonly found: DeepFound } | { readonly failed: string };

/** Memory that the thread may come to, in MiB; what it needs does not grow with the ledger. */
const memoryMaxMb = 512;

/** Replays and folds a ledger in a thread, which opens it for itself: a gate that serves it goes on. */
export const deepVerify: DeepVerify = (place, told) => {
  const worker = new Worker(new URL("./thread.ts", import.meta.url), {
    workerData: place satisfies LedgerPlace,
    resourceLimits: { maxOldGenerationSizeMb: memoryMaxMb },
  });
  const found = new Promise<DeepFound>((resolve, reject) => {
    worker.on("message", (said: Said) => {
      if ("progress" in said) told(said.progress);
      else if ("found" in said) resolve(said.found);
      else reject(new Error(said.failed));
    });
    worker.on("error", reject);
    worker.on("exit", () => reject(new Error("the thread of the deep verification has ended")));
  });
  return {
    found,
    end: async () => {
      await worker.terminate();
    },
  };
};
