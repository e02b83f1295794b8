import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import type { ExplanationRequest, GateHistory } from "../../../gate/src/server/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../core/src/wire/mod.ts";
import { rowOf } from "../history.ts";
import type { ExplainJob } from "./job.ts";
import { pausing } from "./pausing.ts";
import { toTimedCall, readCheck, receiptExplained } from "./receipt.ts";

/** Explains a call or a receipt for POST /explain. It writes nothing. */
export async function explainForGate(
  request: ExplanationRequest,
  history: GateHistory,
  rest: Rest,
): Promise<Result<string, Refusal>> {
  const job =
    typeof request.of === "string"
      ? good(jobOfCall(request, request.of))
      : await jobOfReceipt(request, request.of, history);
  return job.ok ? inThread(job.value, rest) : job;
}

function jobOfCall({ counters, inForce, key, under }: ExplanationRequest, body: string): ExplainJob {
  const contract = typeof under === "object" ? under : { rules: inForce.text };
  return { call: { body, key, at: Date.now(), mode: inForce.mode }, contract, given: counters, receipt: undefined };
}

async function jobOfReceipt(
  { counters, inForce, under }: ExplanationRequest,
  seq: number,
  history: GateHistory,
): Promise<Result<ExplainJob, Refusal>> {
  const row = await rowOf(history, seq);
  if (row === undefined) return bad(refuse("not-found", `the receipt ${seq} does not exist`));
  const recorded = readCheck(row);
  if (!recorded.ok) return bad(refuse("invalid-request", recorded.problem));
  const receipt = receiptExplained(recorded.value);
  const rules = await history.contractText(receipt.contract.replace(/^sha256:/, ""));
  if (rules === undefined)
    return bad(
      refuse("not-found", `the text of the contract that receipt ${seq} names (${receipt.contract}) is missing`),
    );
  const call = toTimedCall(recorded.value);
  const its = { given: counters, receipt: { ...receipt, rules } };
  if (under === "recorded") return good({ ...its, call, contract: { rules } });
  const contract = under === "in-force" ? { rules: inForce.text } : under;
  return good({ ...its, call: { ...call, mode: inForce.mode }, contract });
}

/** How long a thread may work: for a contract of the gate, which somebody has put in force, and for a pasted one. */
const workMsMax = { rules: 10_000, pasted: 5000 } as const;
const threadMegabytes = 256;
/** How long a thread waits for the next explanation. Starting one takes longer than most explanations. */
const idleMs = 60_000;
/** The least time between two looks at what a thread has worked. */
const lookMs = 100;

/** Waits after so many milliseconds of work, while checks go first. */
type Rest = (workedMs: number) => Promise<void>;

interface ExplainThread {
  readonly worker: Worker;
  /** A cell that is 0 while the thread pauses. */
  readonly mayGoOn: Int32Array<SharedArrayBuffer>;
}

/** A thread that waits, and what ends it. */
let idle: (ExplainThread & { readonly ending: NodeJS.Timeout }) | undefined;

/**
 * Compiling and deciding take up to a second for the largest contracts. In a thread they delay no check while a processor is
 * free. If none is, the thread pauses after each slice, and others have their turn.
 */
async function inThread(job: ExplainJob, rest: Rest): Promise<Result<string, Refusal>> {
  const thread = await takeThread();
  const { worker, mayGoOn } = thread;
  const workMs = "pasted" in job.contract ? workMsMax.pasted : workMsMax.rules;
  const ended = new AbortController();
  const signal = limitWork(worker, workMs, ended.signal);
  try {
    worker.postMessage(job, []);
    for (;;) {
      const since = performance.now();
      const [said] = (await once(worker, "message", { signal })) as [Result<string, Refusal> | typeof pausing];
      if (said !== pausing) {
        await giveBack(thread);
        return said;
      }
      await rest(performance.now() - since);
      Atomics.store(mayGoOn, 0, 1);
      Atomics.notify(mayGoOn, 0);
    }
  } catch (error) {
    await worker.terminate();
    const { code } = error as NodeJS.ErrnoException;
    if (!signal.aborted && code !== "ERR_WORKER_OUT_OF_MEMORY") throw error;
    return bad(
      refuse("contract-refused", `an explanation must take at most ${workMs / 1000} s and ${threadMegabytes} MB`),
    );
  } finally {
    ended.abort();
  }
}

/** Aborts when a thread has worked so long. While it waits for its turn or for a processor, it does not work. */
function limitWork(worker: Worker, workMs: number, ended: AbortSignal): AbortSignal {
  const over = new AbortController();
  const look = async (): Promise<void> => {
    const before = await workedMs(worker);
    for (let leftMs = workMs; leftMs > 0; leftMs = workMs - ((await workedMs(worker)) - before))
      await setTimeout(Math.max(leftMs, lookMs), undefined, { signal: ended, ref: false });
    over.abort();
  };
  look().catch(() => undefined); // The thread has ended, or the explanation.
  return over.signal;
}

async function workedMs(worker: Worker): Promise<number> {
  const { system, user } = await worker.cpuUsage();
  return (system + user) / 1000;
}

async function takeThread(): Promise<ExplainThread> {
  if (idle === undefined) {
    const mayGoOn = new Int32Array(new SharedArrayBuffer(4));
    const resourceLimits = { maxOldGenerationSizeMb: threadMegabytes };
    const module = new URL("./thread.ts", import.meta.url);
    const worker = new Worker(module, { resourceLimits, workerData: mayGoOn });
    worker.on("error", () => undefined); // It may run out of memory while nobody waits for it any more.
    worker.once("exit", () => idle?.worker === worker && dropIdle());
    await once(worker, "online");
    return { worker, mayGoOn };
  }
  const thread = idle;
  dropIdle();
  thread.worker.ref();
  return thread;
}

function dropIdle(): void {
  clearTimeout(idle?.ending);
  idle = undefined;
}

/** At most one thread waits. It does not keep the process alive. */
async function giveBack(thread: ExplainThread): Promise<void> {
  const { worker } = thread;
  if (idle !== undefined) {
    await worker.terminate();
    return;
  }
  worker.unref();
  const end = (): void => {
    dropIdle();
    void worker.terminate();
  };
  idle = { ...thread, ending: globalThis.setTimeout(end, idleMs).unref() };
}
