import { parentPort } from "node:worker_threads";
import { explainJob, type ExplainJob } from "./job.ts";

const port = parentPort;
if (port === null) throw new Error("this module is for a worker thread");
port.on("message", async (job: ExplainJob) => port.postMessage(await explainJob(job)));
