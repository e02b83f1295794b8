import { parentPort, workerData } from "node:worker_threads";
import { explainJob, type ExplainJob } from "./job.ts";
import { pausing } from "./pausing.ts";

/** How long a slice works, in milliseconds. A pause costs two messages. */
const sliceMs = 2;

const port = parentPort;
if (port === null) throw new Error("this module is for a worker thread");
const mayGoOn = workerData as Int32Array<SharedArrayBuffer>;

port.on("message", async (job: ExplainJob) => {
  let since = performance.now();
  const pauseIfDue = (): void => {
    if (performance.now() - since < sliceMs) return;
    Atomics.store(mayGoOn, 0, 0);
    port.postMessage(pausing);
    Atomics.wait(mayGoOn, 0, 0);
    since = performance.now();
  };
  port.postMessage(await explainJob(job, pauseIfDue));
});
