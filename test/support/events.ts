import assert from "node:assert/strict";
import type { Desk } from "./approvals.ts";
import { eventually, patienceMs as usual } from "./patience.ts";

/** One event as a stream carries it. */
export interface StreamedEvent {
  /** Undefined if the frame has no `id` field. */
  readonly id: string | undefined;
  readonly type: string;
  readonly data: any;
}

export interface Stream {
  readonly events: readonly StreamedEvent[];
  /** Waits for an event of a type after those that were awaited before. */
  readonly next: (type: string) => Promise<StreamedEvent>;
  /** Waits for the end of the stream by the gate. */
  readonly ends: () => Promise<unknown>;
  readonly close: () => void;
}

/** Opens a stream of events with an API key, or with other header fields instead. */
export async function openStream(
  { address, patienceMs = usual }: Pick<Desk, "address"> & { readonly patienceMs?: number },
  key: string,
  {
    after,
    lastId,
    path = "/events",
    own = { authorization: `Bearer ${key}` },
  }: { after?: string; lastId?: string; path?: string; own?: Readonly<Record<string, string>> } = {},
): Promise<Stream> {
  const gone = new AbortController();
  const query = after === undefined ? "" : `?after=${after}`;
  const headers = { ...own, ...(lastId !== undefined && { "last-event-id": lastId }) };
  const response = await fetch(`${address}${path}${query}`, { headers, signal: gone.signal });
  assert.equal(response.status, 200, response.status === 200 ? "" : await response.text());
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  const events: StreamedEvent[] = [];
  const wakers = new Set<() => void>();
  const wake = (): void => {
    for (const each of wakers) each();
  };
  let hasEnded = false;
  const read = async (): Promise<void> => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const piece of response.body ?? []) {
      text += decoder.decode(piece, { stream: true });
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const field = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, "m").exec(frame)?.[1];
        const type = field("event");
        if (type !== undefined) events.push({ id: field("id"), type, data: JSON.parse(field("data") ?? "null") });
      }
      wake();
    }
  };
  void read()
    .catch(() => undefined)
    .then(() => {
      hasEnded = true;
      wake();
    });
  let seen = 0;
  const next = async (type: string): Promise<StreamedEvent> => {
    const late = performance.now() + patienceMs;
    for (;;) {
      for (; seen < events.length; seen += 1) {
        const event = events[seen] as StreamedEvent;
        if (event.type !== type) continue;
        seen += 1;
        return event;
      }
      const left = late - performance.now();
      if (hasEnded || left <= 0) throw new Error(`no ${type} came; these came: ${JSON.stringify(events)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => resolve(), left);
        const waker = (): void => {
          clearTimeout(timer);
          wakers.delete(waker);
          resolve();
        };
        wakers.add(waker);
      });
    }
  };
  const ends = (): Promise<unknown> => eventually("the end of the stream", () => hasEnded, patienceMs);
  return { events, next, ends, close: () => gone.abort() };
}
