import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Logger } from "pino";
import { limits } from "../../wire/mod.ts";
import { Holdings } from "../admission/holdings.ts";
import type { Key } from "../keys/keys.ts";
import { connectionOf, letGo, type Connection, type Stream } from "./connection.ts";
import { Keyless } from "./keyless.ts";

const sweepMs = 1000;

/** New connections have this time to show a key, and short requests to end, before the gate closes any. */
const lookMs = 10;

/** The least number of connections that one address may have before they show a key, however small the bound is. */
const shareMin = 16;

/** The most connections that are reserved for callers without a key. */
const reserveMax = 128;

/**
 * The open connections of a server, about `max` at most. Of these, a reserve is for callers that have not shown a valid
 * key, such as a probe of /health, a browser before it signs in, and everybody who connects anew.
 *
 * At the limit a connection without a valid key is closed, the oldest first. A connection with a key is closed only for
 * one with another key, and only if its own key or tenant has more than an equal share: an idle one first, then one whose
 * request is incomplete or only reads. A connection is never closed while it waits for the answer to a call or a change.
 *
 * The client of a closed connection may try again.
 */
export class Connections {
  readonly #server: Server;
  readonly #max: number;
  readonly #reserve: number;
  readonly #keyless: Keyless;
  readonly #keyed = new Holdings<Connection>();
  // Closed sockets are removed at the next sweep. With a listener for this on each socket, the garbage collector kept
  // thousands of finished requests, because the server adds and removes its own listeners with each answer.
  readonly #open = new Set<Socket>();
  /** Connections during the TLS handshake. Requests name another socket, which is created after the handshake. */
  readonly #shaking = new Map<string, Socket>();
  #turn = 0;
  #isLooking = false;
  /** What was closed since the last sweep. */
  readonly #closed = { keyless: 0, from: undefined as string | undefined, keyed: 0, keys: new Set<string>() };

  constructor(server: Server, max: number, log: Logger) {
    this.#server = server;
    this.#max = max;
    this.#reserve = max === 1 ? 0 : Math.min(reserveMax, Math.ceil(max / 16));
    this.#keyless = new Keyless(Math.max(shareMin, Math.ceil(max / 4)));
    server.on("connection", (socket: Socket) => {
      this.#opened(socket);
      if (server instanceof TlsServer) this.#shaking.set(peerOf(socket), socket);
    });
    server.on("secureConnection", (socket: Socket) => {
      const peer = peerOf(socket);
      const bare = this.#shaking.get(peer);
      this.#shaking.delete(peer);
      if (bare !== undefined) this.#keyless.delete(bare);
      this.#opened(socket);
    });
    const sweep = setInterval(() => this.#sweep(log), sweepMs).unref();
    server.once("close", () => clearInterval(sweep));
  }

  /** Counts a request until its answer is sent. If its body is not complete then, the connection soon ends. */
  began(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = connectionOf(socket);
    connection.unanswered += 1;
    connection.last = request;
    connection.turn = this.#turn += 1;
    response.once("close", () => {
      connection.unanswered -= 1;
      letGo({ request, response });
      connection.turn = this.#turn += 1;
      if (!request.complete) destroySoon(socket, () => !request.complete);
      this.#boundKeyed();
    });
  }

  /** Notes which valid key a request has; undefined if it has none. An earlier key may have been revoked since. */
  shows(socket: Socket, key: Key | undefined): void {
    const connection = connectionOf(socket);
    if (connection.key === key) return;
    connection.key = key;
    this.#keyed.delete(connection);
    if (key === undefined) {
      this.#keyless.add(socket);
      return;
    }
    this.#keyless.delete(socket);
    this.#keyed.add(connection, key);
    if (this.#keyed.size > this.#max) this.#boundKeyed();
    else if (this.#keyed.size > this.#max - this.#reserve) this.#lookSoon();
  }

  #opened(socket: Socket): void {
    this.#open.add(socket);
    this.#keyless.add(socket);
    this.#lookSoon();
  }

  /** Looks whether too many are open, after everything was read that has come until then. */
  #lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const look = (_error: Error | null, count: number): void => {
      this.#isLooking = false;
      // The server still counts what is closed here.
      this.#boundKeyless(count - this.#boundKeyed());
    };
    setTimeout(() => setImmediate(() => this.#server.getConnections(look)), lookMs).unref();
  }

  /** Closes as many connections without a key as are open past the limit. Even if it is passed, they have the reserve. */
  #boundKeyless(count: number): void {
    for (let over = count - Math.max(this.#max, this.#keyed.size + this.#reserve); over > 0; over -= 1) {
      const from = this.#keyless.closeOldest();
      if (from === undefined) return;
      this.#closed.keyless += 1;
      this.#closed.from = from;
    }
  }

  /**
   * Closes connections of those keys that have more than their share, if the keys leave less than the reserve.
   *
   * @returns how many it closed; the rest is closed after their next answers
   */
  #boundKeyed(): number {
    const max = this.#max - this.#reserve;
    if (this.#keyed.size <= max) return 0;
    this.#forgetClosed();
    for (let closed = 0; ; closed += 1) {
      const least = this.#keyed.size > max ? this.#leastMissed(max) : undefined;
      if (least === undefined) return closed;
      this.#closed.keyed += 1;
      this.#closed.keys.add(least.key?.name ?? "");
      this.#keyed.delete(least);
      least.socket.destroy();
    }
  }

  /** The connection whose end does the least harm, of the keys with more than their share. */
  #leastMissed(max: number): Connection | undefined {
    let least: Connection | undefined;
    for (const held of this.#keyed.pastShare(max))
      for (const each of held) if (each.kept === 0 && (least === undefined || isLessMissed(each, least))) least = each;
    return least;
  }

  #forgetClosed(): void {
    for (const socket of this.#open) {
      if (!socket.destroyed) continue;
      this.#open.delete(socket);
      this.#keyless.delete(socket);
      this.#keyed.delete(connectionOf(socket));
    }
  }

  #sweep(log: Logger): void {
    const { keyless, from, keyed, keys } = this.#closed;
    const max = this.#max;
    if (keyless > 0) log.warn({ closed: keyless, max, from }, "SVC_CONNECTIONS are open: closed some without a key");
    if (keyed > 0)
      log.warn(
        { closed: keyed, max, keys: [...keys].slice(0, 8) },
        "SVC_CONNECTIONS are open: closed some of the keys that had more than their share",
      );
    this.#closed.keyless = 0;
    this.#closed.keyed = 0;
    keys.clear();
    for (const [peer, socket] of this.#shaking) if (socket.destroyed) this.#shaking.delete(peer);
    this.#forgetClosed();
    for (const socket of this.#open) endUnread(socket);
  }
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

/** An idle connection is missed less than a busy one, and an older one less than a newer one. */
function isLessMissed(one: Connection, other: Connection): boolean {
  const [isIdle, isOtherIdle] = [one.unanswered === 0, other.unanswered === 0];
  return isIdle === isOtherIdle ? one.turn < other.turn : isIdle;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Closes a connection that reads its answer too slowly, because an unread answer keeps memory and readers of the
 * ledger.
 */
function endUnread(socket: Socket): void {
  const connection = connectionOf(socket);
  const now = performance.now();
  if (socket.writableLength === 0) connection.unreadSince = undefined;
  else if (connection.unreadSince === undefined) connection.unreadSince = now;
  else if (now - connection.unreadSince >= limits.answerTimeoutMs) socket.destroy();
}
