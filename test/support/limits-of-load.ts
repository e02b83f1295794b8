import { connect } from "node:net";
import { QueueBudget, AdmissionQueue, type QueuedCall } from "../../packages/gate/src/server/admission/queue.ts";
import { Valve } from "../../packages/gate/src/server/admission/valve.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { check, requestText, type Running } from "./gate.ts";
import { Line } from "./lines.ts";

// The limits of `limits.ts` that apply under load: each returns the error found past the limit, or undefined.

const call: QueuedCall = { caller: { keyName: "a" }, bytes: 0 };

/** Returns how many of this many calls find no room while a batch has run for longer than any may wait. */
export function queuedWhileStuck(calls: number): number | undefined {
  let now = 0;
  const budget = new QueueBudget();
  const queue = new AdmissionQueue<QueuedCall>(budget, () => now);
  queue.start();
  now += budget.waitMsMax + 1;
  let refused = 0;
  for (let n = 0; n < calls; n += 1) {
    if (queue.hasRoom("a", 0)) queue.enqueue(call);
    else refused += 1;
  }
  return refused || undefined;
}

/** Returns how many of this many calls the batch after a slow one leaves. */
export function leftBySlowBatch(calls: number): number | undefined {
  const queue = new AdmissionQueue<QueuedCall>(new QueueBudget());
  for (let n = 0; n < limits.quickBatchCallsMax; n += 1) queue.enqueue(call);
  queue.release(queue.takeBatch(), { decideMs: 1, storeMs: 100 });
  for (let n = 0; n < calls; n += 1) queue.enqueue(call);
  queue.takeBatch();
  return queue.waiting || undefined;
}

/** Makes so many refusals at once that the last one waits. */
export function valveBurst(over: 0 | 1): number | undefined {
  const { valve } = stillValve();
  for (let n = 0; n < limits.refusalsPerSecond / 10 + over; n += 1) valve.pass(() => true);
  return valve.waiting || undefined;
}

/** As many refusals wait as leave in that time, so the last one leaves at its end and not before. */
export function valveWait(over: 0 | 1): number | undefined {
  const { valve, advance } = stillValve();
  const waiting = (limits.refusalsPerSecond * limits.refusalWaitMs) / 1000;
  for (let n = 0; n < limits.refusalsPerSecond / 10 + waiting; n += 1) valve.pass(() => true);
  advance(over === 0 ? limits.refusalWaitMs + 10 : limits.refusalWaitMs / 2);
  return valve.waiting || undefined;
}

/** The queue of refusals is full, so the next one passes at once. */
export function valveFull(over: 0 | 1): boolean | undefined {
  const { valve } = stillValve();
  while (valve.waiting < limits.refusalsWaitingMax - 1 + over) valve.pass(() => true);
  return valve.pass(() => true) || undefined;
}

function stillValve(): { readonly valve: Valve; readonly advance: (ms: number) => void } {
  let now = 0;
  let due: { readonly at: number; readonly act: () => void }[] = [];
  const valve = new Valve({
    perSecond: limits.refusalsPerSecond,
    waitMs: limits.refusalWaitMs,
    waitingMax: limits.refusalsWaitingMax,
    now: () => now,
    later: (act, ms) => void due.push({ at: now + ms, act }),
  });
  const advance = (ms: number): void => {
    for (const end = now + ms; now < end; now += 1) {
      const acts = due.filter(({ at }) => at <= now);
      due = due.filter(({ at }) => at > now);
      for (const { act } of acts) act();
    }
  };
  return { valve, advance };
}

/** Asks for a page that no buffer on the way can keep, and reads it after this time; returns whether it was cut off. */
export async function slowReader(gate: Running, pauseMs: number): Promise<string | undefined> {
  const large = JSON.stringify({ tool_name: "note.add", tool_input: { text: "x".repeat(limits.bodyBytesMax - 100) } });
  for (let n = 0; n < 64; n += 1) await check(gate, large);
  const text = await new Promise<string>((resolve) => {
    let end = "";
    const socket = connect(gate.port, "127.0.0.1", () =>
      socket.write(requestText("GET /receipts?limit=1000 HTTP/1.1")),
    );
    socket.pause();
    setTimeout(() => socket.resume(), pauseMs);
    socket.on("error", () => undefined);
    socket.on("data", (piece: Buffer) => (end = (end + piece.toString("latin1")).slice(-5)));
    socket.on("close", () => resolve(end));
  });
  return text === "0\r\n\r\n" ? undefined : "cut off";
}

/** Opens a connection on which requests can follow each other. */
function openLine({ port }: Running): { readonly line: Line; readonly write: (request: string) => void } {
  const line = new Line(connect({ port, host: "127.0.0.1", allowHalfOpen: true }));
  const write = (text: string): void =>
    void line.socket.write(text.replaceAll("Connection: close", "Connection: keep-alive"));
  return { line, write };
}

/**
 * Sends a request that is refused before its body is complete, then perhaps the rest of the body, and the next request.
 * Returns "closed" if the gate ends the connection, although its client keeps its own side open.
 */
export async function lateBody(gate: Running, isSent: boolean): Promise<string | undefined> {
  const { line, write } = openLine(gate);
  write(requestText("POST /check HTTP/1.1", ["Content-Type: text/plain", "Content-Length: 4"], "{"));
  await line.answers(1);
  if (isSent) write(`{}}${requestText("GET /health HTTP/1.1")}`);
  const isNextAnswered = await line.answers(2);
  line.socket.destroy();
  return isNextAnswered ? undefined : "closed";
}

/** Sends so many requests at once on one connection. Returns "closed" if the gate closes it instead of answering all. */
export async function pipelined(gate: Running, requests: number): Promise<string | undefined> {
  const { line, write } = openLine(gate);
  write(requestText("GET /nothing HTTP/1.1").repeat(requests));
  const areAnswered = await line.answers(requests);
  line.socket.destroy();
  return areAnswered ? undefined : "closed";
}
