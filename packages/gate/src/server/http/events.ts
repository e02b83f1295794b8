import { once } from "node:events";
import type { FastifyReply } from "fastify";
import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { SlicedRead } from "../admission/reads.ts";
import type { Replay } from "../events/feed.ts";
import type { ValidKey } from "../keys/keys.ts";
import type { Gate } from "../service/gate.ts";
import { keep } from "./connection.ts";
import { eventJson, readEventId, type FeedPosition, type LedgerEvent } from "../events/event.ts";
import type { Exchange } from "./exchange.ts";
import { anyText, readQuery } from "./query.ts";
import { inPlace } from "./reading.ts";
import { requireValue } from "../request/body.ts";
import type { RouteCall } from "./route.ts";

/** How long a stream is silent at most. Proxies close connections that are silent for a minute. */
const heartbeatMs = 15_000;
/** How long a client waits before it connects again. */
const reconnectMs = 1000;

/** Handles GET /events: what the ledger's rows say, as server-sent events, until the client leaves. */
export async function events(call: RouteCall): Promise<unknown> {
  const { request } = call;
  const query = readQuery(request, { after: anyText });
  // A client that connects again repeats its first query, and the header has the later position.
  const after = request.headers["last-event-id"] ?? query.get("after") ?? undefined;
  return inPlace(call, "replay", (read) => follow(call, read, after === undefined ? undefined : String(after)));
}

/** @param read has a place until the stream has the events so far */
async function follow(call: RouteCall, read: SlicedRead, after: string | undefined): Promise<FastifyReply> {
  const { gate, reply, request, service } = call;
  const from = requireValue(await read.run(() => findStreamStart(gate, after)));
  // A client whose stream ends connects again, and starts after its last event.
  const leave = requireValue(service.streams.enter(call.key as ValidKey, () => read.abandon()));
  keep(request.exchange as Exchange);
  try {
    await gate.events.listen((slice) => read.turns.run(slice));
    reply.hijack();
    try {
      await stream(call, read, from);
    } finally {
      gate.events.leave();
      reply.raw.end();
    }
  } finally {
    leave();
  }
  return reply;
}

/** @returns the position after an event; without an id, after the last row of now */
async function findStreamStart(gate: Gate, text: string | undefined): Promise<Result<FeedPosition, Refusal>> {
  if (text === undefined) return good(await gate.events.end());
  if (text === "0") return good({ row: 0, index: Infinity });
  const id = readEventId(text);
  if (id === undefined)
    return bad(
      refuse(
        "invalid-query",
        "`after` or `Last-Event-ID` must be the id of an event, such as 12-0-0123456789abcdef, or 0",
      ),
    );
  if (await gate.events.log.has(id)) return good(id);
  return bad(
    refuse(
      "invalid-query",
      `row ${id.row} of this ledger does not have the hash in the event's id: the stream belongs to another history. ` +
        "Read GET /approvals, and open a stream without an id",
    ),
  );
}

async function stream(call: RouteCall, read: SlicedRead, from: FeedPosition): Promise<void> {
  const { gate, reply, request } = call;
  const { raw } = reply;
  const { headers } = request.exchange as Exchange;
  raw.writeHead(200, {
    ...headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  raw.write(`retry: ${reconnectMs}\n\n`);
  const replay: Replay = (found) => read.through(found);
  for await (const event of gate.events.follow(from, heartbeatMs, read.signal, replay)) {
    const key = keyNow(call);
    if (key === undefined) return;
    if (event !== undefined && !maySee(call, key, event)) continue;
    // A reader that takes nothing for some seconds is closed, as with every other answer. It resumes by its last id.
    if (!raw.write(event === undefined ? ": still here\n\n" : frameOf(event))) await waitForDrain(raw, read.signal);
  }
}

/** The key as it is now; undefined if it may not read the stream any more. */
function keyNow({ key, request, service, tenant }: RouteCall): ValidKey | undefined {
  const now = request.exchange?.credential();
  const isThere = tenant === null || service.tenants?.has(tenant) === true;
  if (now === undefined || now.id !== key?.id || !isThere) return undefined;
  return now.scopes.has("receipts") || now.scopes.has("approve") ? now : undefined;
}

/** An approver without the scope `receipts` sees only what it may decide. */
function maySee({ gate }: RouteCall, key: ValidKey, { subject }: LedgerEvent): boolean {
  if (key.scopes.has("receipts")) return true;
  const asking = subject?.asking;
  return asking !== undefined && gate.approvals.mayDecide(key.name, { asking }, Date.now());
}

/** A reminder has no `id` field, so that a client resumes after the last row that it has seen. */
function frameOf(event: LedgerEvent): string {
  const id = event.position === null ? "" : `id: ${event.id}\n`;
  return `${id}event: ${event.type}\ndata: ${JSON.stringify(eventJson(event))}\n\n`;
}

async function waitForDrain(raw: FastifyReply["raw"], signal: AbortSignal): Promise<void> {
  await once(raw, "drain", { signal }).catch(() => undefined); // The connection has ended.
}
