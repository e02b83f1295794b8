import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Logger } from "pino";
import { limits } from "../../../../core/src/wire/mod.ts";
import { Shares } from "../admission/shares.ts";
import type { ValidKey } from "../keys/keys.ts";
import { connectionOf, destroySoon, letGo, type Connection } from "./connection.ts";
import { Keyless } from "./keyless.ts";

const sweepMs = 1000;

/**
 * New connections have about this time to show a key, and short requests to end, before the gate closes any. A handshake of
 * TLS takes some round trips.
 */
const lookMs = 250;

/** The least number of connections past the limit that makes the gate look at once. */
const hurryMin = 64;

/** The least number of connections that one address may have before they show a key, however small the bound is. */
const shareMin = 16;

/** The most connections that are reserved for callers without a key. */
const reserveMax = 128;

interface ConnectionCounts {
  readonly added: number;
  readonly turn: number;
}

/**
 * The open connections of a server, about `max` at most. A part of them, the reserve, is for callers that have not shown a
 * valid key, such as a probe of /health, a browser before it signs in, and new connections.
 *
 * At the limit a connection without a valid key is closed, the oldest first. A connection with a key is closed only for
 * one with another key, and only if its own key or tenant has more than an equal share: an idle one first, then one whose
 * request is incomplete or only reads. A connection is never closed while a call or a change that was read on it waits.
 *
 * The client of a closed connection may try again.
 */
export class Connections {
  readonly #max: number;
  readonly #reserve: number;
  readonly #keyedMax: number;
  readonly #keyless: Keyless;
  readonly #keyed = new Shares<Connection>();
  // Closed sockets are removed at the next sweep. With a listener for this on each socket, the garbage collector kept
  // thousands of finished requests, because the server adds and removes its own listeners with each answer.
  readonly #open = new Set<Socket>();
  /** Connections during the TLS handshake. Requests name another socket, which is created after the handshake. */
  readonly #shaking = new Map<string, Socket>();
  readonly #pause: (key: ValidKey, resume: () => void) => boolean;
  #turn = 0;
  #isLooking = false;
  /** What was closed since the last sweep. */
  readonly #closed = { keyless: 0, from: undefined as string | undefined, keyed: 0, keys: new Set<string>() };

  /**
   * @param pause pauses a connection of a key; false if its next request may be read now
   */
  constructor(server: Server, max: number, log: Logger, pause: (key: ValidKey, resume: () => void) => boolean) {
    this.#max = max;
    this.#pause = pause;
    this.#reserve = max === 1 ? 0 : Math.min(reserveMax, Math.ceil(max / 16));
    this.#keyedMax = max - this.#reserve;
    this.#keyless = new Keyless(Math.max(shareMin, Math.ceil(max / 4)));
    server.on("connection", (socket: Socket) => {
      this.#addConnection(socket);
      if (server instanceof TlsServer) this.#shaking.set(peerOf(socket), socket);
    });
    server.on("secureConnection", (socket: Socket) => {
      const peer = peerOf(socket);
      const bare = this.#shaking.get(peer);
      this.#shaking.delete(peer);
      if (bare !== undefined) this.#forget(bare);
      this.#addConnection(socket);
    });
    const sweep = setInterval(() => this.#sweep(log), sweepMs).unref();
    server.once("close", () => clearInterval(sweep));
  }

  /**
   * Counts a request until its answer is sent. If its body is not complete then, the connection soon ends.
   *
   * @returns false if too many requests on the connection wait for answers; the connection is then closed
   */
  noteStart(request: IncomingMessage, response: ServerResponse): boolean {
    const { socket } = request;
    const connection = connectionOf(socket);
    if (connection.unanswered === limits.pipelinedMax) {
      socket.destroy();
      return false;
    }
    connection.unanswered += 1;
    connection.last = request;
    connection.turn = this.#turn += 1;
    response.once("close", () => {
      connection.unanswered -= 1;
      if (request.complete && connection.last === request) connection.last = undefined;
      letGo({ request, response });
      connection.turn = this.#turn += 1;
      if (!request.complete) destroySoon(socket, () => !request.complete);
      else if (request.method === "POST") this.#readNext(connection, socket);
      this.#boundKeyed(this.#keyedMax, isIdle);
    });
    return true;
  }

  /**
   * Reads the next request of a connection that has sent a call, when the gate can decide it. A connection of several keys,
   * as a proxy has, is not paused: the key of its next request is not known.
   */
  #readNext(connection: Connection, socket: Socket): void {
    const { key, unanswered, isOfMany } = connection;
    if (key === undefined || isOfMany || unanswered > 0 || !socket.writable) return;
    const resume = (): void => {
      connection.isPaused = false;
      socket.resume();
    };
    if (!this.#pause(key, resume)) return;
    connection.isPaused = true;
    socket.pause();
  }

  /** Notes which valid key a request has; undefined if it has none. An earlier key may have been revoked since. */
  shows(socket: Socket, key: ValidKey | undefined): void {
    const connection = connectionOf(socket);
    if (connection.key === key || !this.#open.has(socket)) return; // A command without a gate has no connection.
    connection.isOfMany ||= connection.key !== undefined && connection.key.id !== key?.id;
    connection.key = key;
    this.#keyed.delete(connection);
    if (key === undefined) {
      this.#keyless.add(socket);
      return;
    }
    this.#keyless.delete(socket);
    this.#keyed.add(connection, key);
    this.#boundKeyed(this.#max, isNotKept);
    if (this.#keyed.size > this.#keyedMax) this.#lookSoon();
  }

  #addConnection(socket: Socket): void {
    this.#open.add(socket);
    this.#keyless.add(socket);
    if (this.#open.size > this.#max + Math.max(hurryMin, this.#max / 4)) this.#look(this.#known);
    else this.#lookSoon();
  }

  /** How many connections without a key have come, and how many requests have started or ended. */
  get #known(): ConnectionCounts {
    return { added: this.#keyless.added, turn: this.#turn };
  }

  /** Looks soon whether too many are open. */
  #lookSoon(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const known = this.#known;
    setTimeout(() => {
      this.#isLooking = false;
      this.#look(known);
    }, lookMs).unref();
  }

  /** @param known what came after it stays open for now: connections without a key, and requests */
  #look({ added, turn }: ConnectionCounts): void {
    this.#boundKeyed(this.#keyedMax, (each) => isIdle(each) || (isNotKept(each) && each.turn <= turn));
    const isBound = this.#boundKeyless(added);
    if (!isBound || this.#keyed.size > this.#keyedMax) this.#lookSoon();
  }

  /**
   * Closes as many connections without a key as are open past the limit. Even if it is passed, they have the reserve.
   *
   * @returns false if some are too new to be closed
   */
  #boundKeyless(added: number): boolean {
    if (this.#open.size > this.#max) this.#forgetClosed();
    for (let over = this.#open.size - Math.max(this.#max, this.#keyed.size + this.#reserve); over > 0; over -= 1) {
      const from = this.#keyless.closeOldest(added);
      if (from === undefined) return false;
      this.#closed.keyless += 1;
      this.#closed.from = from;
    }
    return true;
  }

  /**
   * Closes connections of the keys that have more than their share of `max`, until all keys together have that many.
   *
   * @param mayClose connections for which it is false stay open
   */
  #boundKeyed(max: number, mayClose: (connection: Connection) => boolean): void {
    if (this.#keyed.size <= max) return;
    this.#forgetClosed();
    while (this.#keyed.size > max) {
      const least = leastMissed(this.#keyed.pastShare(max).flat().filter(mayClose));
      if (least === undefined) return;
      this.#closed.keyed += 1;
      this.#closed.keys.add(least.key?.name ?? "");
      this.#keyed.delete(least);
      least.isClosed = true;
      least.socket.destroy();
    }
  }

  #forgetClosed(): void {
    for (const socket of this.#open) if (socket.destroyed) this.#forget(socket);
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#keyless.delete(socket);
    this.#keyed.delete(connectionOf(socket));
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

const isIdle = ({ unanswered, isPaused }: Connection): boolean => unanswered === 0 && !isPaused;
const isNotKept = ({ kept }: Connection): boolean => kept === 0;

/** An idle connection is missed less than a busy one, and an older one less than a newer one. */
function leastMissed(connections: readonly Connection[]): Connection | undefined {
  const idle = connections.filter(isIdle);
  return (idle.length > 0 ? idle : connections).reduce<Connection | undefined>(
    (least, each) => (least === undefined || each.turn < least.turn ? each : least),
    undefined,
  );
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
