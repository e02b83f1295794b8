import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { limits } from "../../wire/mod.ts";

const sweepMs = 1000;

/**
 * Bounds what connections hold: how many there are, and for how long one may leave its answer unread. One past the bound
 * is closed before a byte of it is read; its sender sees a connection that ended, and may try again.
 */
export function boundConnections(server: Server, max: number, log: Logger): void {
  server.maxConnections = max;
  let dropped = 0;
  server.on("drop", () => (dropped += 1));
  // Those that have closed are let go at the next sweep: a listener of ours on each socket, beside the server's own that
  // come and go with each answer, made the collector keep finished requests by the thousand.
  const open = new Set<Socket>();
  for (const event of ["connection", "secureConnection"]) server.on(event, (socket: Socket) => void open.add(socket));
  const stuckSince = new WeakMap<Socket, number>();
  const sweep = setInterval(() => {
    if (dropped > 0) log.warn({ dropped, max }, "connections were closed at once: as many as may be are open");
    dropped = 0;
    for (const socket of open) {
      if (socket.destroyed) open.delete(socket);
      else endStuck(socket, stuckSince);
    }
  }, sweepMs).unref();
  server.once("close", () => clearInterval(sweep));
}

/** A page that is read too slowly keeps memory, and the ledger's readers, for whoever has the patience. */
function endStuck(socket: Socket, stuckSince: WeakMap<Socket, number>): void {
  const now = performance.now();
  const since = stuckSince.get(socket);
  if (socket.writableLength === 0) stuckSince.delete(socket);
  else if (since === undefined) stuckSince.set(socket, now);
  else if (now - since >= limits.answerTimeoutMs) socket.destroy();
}
