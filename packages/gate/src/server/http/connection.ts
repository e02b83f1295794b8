import type { IncomingMessage, ServerResponse } from "node:http";
import { limits } from "../../../../core/src/wire/mod.ts";
import type { ValidKey } from "../keys/keys.ts";
import type { Exchange } from "./exchange.ts";

/** What the gate knows of one connection. */
export interface Connection {
  readonly socket: Stream;
  /** The valid key of its last request; undefined if that had none. */
  key: ValidKey | undefined;
  /** Requests whose answers are not sent. */
  unanswered: number;
  /** Requests whose end would lose something: calls that are being decided, changes, waits and streams. */
  kept: number;
  /** Its last request; undefined after its answer, because it keeps its body. */
  last: IncomingMessage | undefined;
  /** Has it shown different keys? */
  isOfMany: boolean;
  /** Is its next request left in the network for now? */
  isPaused: boolean;
  /** Has the gate closed it for others? */
  isClosed: boolean;
  /** Was a request on it refused before it was complete? */
  refusedEarly: boolean;
  /** When a request or an answer last started or ended on it, as a number that only grows. */
  turn: number;
  /** The bytes of an answer that its client has not read since this time, in milliseconds of a monotonic clock. */
  unreadSince: number | undefined;
}

/** A socket, as far as this room uses it. */
export interface Stream {
  readonly destroyed: boolean;
  readonly writable: boolean;
  end(text: string): unknown;
  destroy(): unknown;
}

const connections = new WeakMap<object, Connection>();

export function connectionOf(socket: Stream): Connection {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const made: Connection = {
    socket,
    key: undefined,
    unanswered: 0,
    kept: 0,
    last: undefined,
    isOfMany: false,
    isPaused: false,
    isClosed: false,
    refusedEarly: false,
    turn: 0,
    unreadSince: undefined,
  };
  connections.set(socket, made);
  return made;
}

const kept = new WeakSet<ServerResponse>();

/**
 * Marks a request whose end would lose something. Its connection is not closed for another one until it is answered.
 *
 * @returns false if the gate has closed the connection before: then nothing may be decided for the request
 */
export function keep({ request, response }: Messages): boolean {
  const connection = connectionOf(request.socket);
  if (connection.isClosed) return false;
  if (kept.has(response)) return true;
  kept.add(response);
  connection.kept += 1;
  return true;
}

/** Takes the mark back: it is answered, or nothing is lost any more. */
export function letGo({ request, response }: Messages): void {
  if (kept.delete(response)) connectionOf(request.socket).kept -= 1;
}

type Messages = Pick<Exchange, "request" | "response">;

/**
 * Returns true if data that is not a request may get an answer: a client would not take it for the answer to an earlier
 * request, and the request that it belongs to has no answer yet.
 */
export function awaitsAnswer({ last, refusedEarly, unanswered }: Connection): boolean {
  if (refusedEarly) return false;
  if (last === undefined || last.complete) return unanswered === 0;
  return unanswered === 1;
}

/**
 * Destroys a socket some time after its last answer, whatever its client does. The client has this time to read the
 * answer.
 *
 * @param isStillDue false if the socket may stay open after all
 */
export function destroySoon(socket: Stream, isStillDue: () => boolean = () => true): void {
  setTimeout(() => {
    if (isStillDue()) socket.destroy();
  }, limits.lingerMs).unref();
}

/** Aborts when the client of an answer has left, also if it had left before. */
export function untilGone(response: ServerResponse): AbortController {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  if (response.destroyed) gone.abort();
  return gone;
}
