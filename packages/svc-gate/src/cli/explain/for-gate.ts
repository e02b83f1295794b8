import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { AskedExplanation, GateHistory } from "../../gate/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../wire/mod.ts";
import { rowOf } from "../history.ts";
import type { ExplainJob } from "./job.ts";
import { callOf, readCheck, receiptExplained } from "./receipt.ts";

/** Explains a call or a receipt for POST /explain. It writes nothing. */
export async function explainForGate(asked: AskedExplanation, history: GateHistory): Promise<Result<string, Refusal>> {
  const job =
    typeof asked.of === "string" ? good(jobOfCall(asked, asked.of)) : await jobOfReceipt(asked, asked.of, history);
  return job.ok ? inThread(job.value) : job;
}

function jobOfCall({ counters, inForce, key, under }: AskedExplanation, body: string): ExplainJob {
  const contract = typeof under === "object" ? under : { rules: inForce.text };
  return { call: { body, key, at: Date.now(), mode: inForce.mode }, contract, given: counters, receipt: undefined };
}

async function jobOfReceipt(
  { counters, inForce, under }: AskedExplanation,
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
  const call = callOf(recorded.value);
  const its = { given: counters, receipt: { ...receipt, rules } };
  if (under === "recorded") return good({ ...its, call, contract: { rules } });
  const contract = under === "in-force" ? { rules: inForce.text } : under;
  return good({ ...its, call: { ...call, mode: inForce.mode }, contract });
}

const threadMs = 10_000;
const threadMegabytes = 256;
/** How long a thread waits for the next explanation. Starting one takes longer than most explanations. */
const idleMs = 60_000;

/** A thread that waits, and what ends it. */
let idle: { readonly worker: Worker; readonly ending: NodeJS.Timeout } | undefined;

/** Compiling and deciding take up to a second for the largest contracts. In a thread they delay no check. */
async function inThread(job: ExplainJob): Promise<Result<string, Refusal>> {
  const worker = takeThread();
  const signal = AbortSignal.timeout(threadMs);
  try {
    const answered = once(worker, "message", { signal });
    worker.postMessage(job, []);
    const [answer] = (await answered) as [Result<string, Refusal>];
    await giveBack(worker);
    return answer;
  } catch (error) {
    await worker.terminate();
    const { code } = error as NodeJS.ErrnoException;
    if (!signal.aborted && code !== "ERR_WORKER_OUT_OF_MEMORY") throw error;
    return bad(
      refuse("contract-refused", `an explanation must take at most ${threadMs / 1000} s and ${threadMegabytes} MB`),
    );
  }
}

function takeThread(): Worker {
  const resourceLimits = { maxOldGenerationSizeMb: threadMegabytes };
  const worker = idle?.worker ?? new Worker(new URL("./thread.ts", import.meta.url), { resourceLimits });
  clearTimeout(idle?.ending);
  idle = undefined;
  worker.ref();
  return worker;
}

/** At most one thread waits. It does not keep the process alive. */
async function giveBack(worker: Worker): Promise<void> {
  if (idle !== undefined) {
    await worker.terminate();
    return;
  }
  worker.unref();
  const end = (): void => {
    idle = undefined;
    void worker.terminate();
  };
  idle = { worker, ending: setTimeout(end, idleMs).unref() };
}
