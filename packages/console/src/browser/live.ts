import { base, headers, reportRefusal } from "./gate.ts";

/** An event of the ledger (spec/events.md), as far as the page needs it. */
export interface LiveEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export type LiveListener = (event: LiveEvent) => void;

const listeners = new Set<LiveListener>();
const statusListeners = new Set<() => void>();
/** The type of an event of the page itself: events may be missing, so the pages load again. */
export const missed = "approval.missed";

/** The gate sends a heartbeat each 15 seconds. After three of them without one, the connection is lost. */
const silentMs = 45_000;
const waitsMs = [1000, 2000, 5000, 10_000];

let stopped: AbortController | undefined;
let last: string | undefined;
/** True after the first stream: events may be missing between two streams, so the pages load again. */
let wasLive = false;

/** True while events arrive. */
export let isLive = false;

export function listen(listener: LiveListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function onStatus(listener: () => void): () => void {
  statusListeners.add(listener);
  return () => statusListeners.delete(listener);
}

/** Reads the gate's events until `stopLive`, and connects again after the last event that it has read. */
export function startLive(): void {
  if (stopped !== undefined) return;
  const ending = (stopped = new AbortController());
  void follow(ending.signal);
}

export function stopLive(): void {
  stopped?.abort();
  stopped = undefined;
  last = undefined;
  wasLive = false;
}

async function follow(signal: AbortSignal): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    await read(signal).catch(() => undefined);
    if (isLive) tries = 0;
    setLive(false);
    await new Promise((resolve) => setTimeout(resolve, waitsMs[Math.min(tries, waitsMs.length - 1)]));
  }
}

/**
 * Reads one stream. `EventSource` cannot send the header with the page's secret, so the stream is read with `fetch`.
 * After a machine slept, its connections may never end, so silence ends the stream too.
 */
async function read(stop: AbortSignal): Promise<void> {
  const silence = new AbortController();
  let timer = 0;
  const restartTimer = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => silence.abort(), silentMs);
  };
  restartTimer();
  try {
    await readFrames(AbortSignal.any([stop, silence.signal]), restartTimer);
  } finally {
    clearTimeout(timer);
  }
}

async function readFrames(signal: AbortSignal, heard: () => void): Promise<void> {
  const sent = { ...headers({ background: true }), ...(last !== undefined && { "last-event-id": last }) };
  const answer = await fetch(`${base}/api/events`, { headers: sent, signal });
  if (answer.status === 401) reportRefusal();
  if (answer.status === 400) last = undefined; // The ledger is another one now.
  if (!answer.ok || answer.body === null) return;
  setLive(true);
  if (wasLive) tell({ type: missed, data: {} });
  wasLive = true;
  let text = "";
  // Not every browser can iterate over a stream.
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    heard();
    const frames = (text + piece.value).split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) take(frame);
  }
}

function take(frame: string): void {
  const fields = new Map(
    frame.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  last = fields.get("id") ?? last;
  const [type, data] = [fields.get("event"), fields.get("data")];
  if (type === undefined || data === undefined) return;
  tell({ type, data: JSON.parse(data) as LiveEvent["data"] });
}

function tell(event: LiveEvent): void {
  for (const listener of listeners) listener(event);
}

function setLive(live: boolean): void {
  if (live === isLive) return;
  isLive = live;
  for (const listener of statusListeners) listener();
}
