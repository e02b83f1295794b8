import type { Server } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Logger } from "pino";
import { limits } from "../../wire/mod.ts";
import { Keyless } from "./keyless.ts";

const sweepMs = 1000;

/** The least number of connections that one address may have before they show a key, however small the bound is. */
const shareMin = 16;

/**
 * Bounds the number of connections, and the time for which one may leave its answer unread. Past the bound, a new
 * connection is accepted, and the oldest that has not shown a good key is closed. If all others have shown one, the new
 * connection is closed. The client of a closed connection may try again.
 */
export function boundConnections(server: Server, max: number, log: Logger): Keyless {
  const keyless = new Keyless(Math.max(shareMin, Math.ceil(max / 4)));
  let closed = 0;
  let from: string | undefined;
  // Closed sockets are removed at the next sweep. With a listener for this on each socket, the garbage collector kept
  // thousands of finished requests, because the server adds and removes its own listeners with each answer.
  const open = new Set<Socket>();
  /** Connections during the TLS handshake. Requests name another socket, which is created after the handshake. */
  const shaking = new Map<string, Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    keyless.add(socket);
    if (server instanceof TlsServer) shaking.set(peerOf(socket), socket);
    server.getConnections((_error, count) => {
      if (count <= max) return;
      closed += 1;
      from = keyless.closeOldest() ?? from;
    });
  });
  server.on("secureConnection", (socket: Socket) => {
    const peer = peerOf(socket);
    const bare = shaking.get(peer);
    shaking.delete(peer);
    if (bare !== undefined) keyless.delete(bare);
    open.add(socket);
    keyless.add(socket);
  });
  const stuckSince = new WeakMap<Socket, number>();
  const sweep = setInterval(() => {
    if (closed > 0)
      log.warn(
        { closed, max, from },
        "connections without a good key were closed, because SVC_CONNECTIONS connections are open",
      );
    closed = 0;
    for (const [peer, socket] of shaking) if (socket.destroyed) shaking.delete(peer);
    for (const socket of open) {
      if (!socket.destroyed) endStuck(socket, stuckSince);
      else if (open.delete(socket)) keyless.delete(socket);
    }
  }, sweepMs).unref();
  server.once("close", () => clearInterval(sweep));
  return keyless;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Closes a connection that reads its answer too slowly, because an unread answer keeps memory and readers of the
 * ledger.
 */
function endStuck(socket: Socket, stuckSince: WeakMap<Socket, number>): void {
  const now = performance.now();
  const since = stuckSince.get(socket);
  if (socket.writableLength === 0) stuckSince.delete(socket);
  else if (since === undefined) stuckSince.set(socket, now);
  else if (now - since >= limits.answerTimeoutMs) socket.destroy();
}
