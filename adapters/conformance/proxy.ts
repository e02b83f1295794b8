/** A proxy on this machine that refuses everything and keeps a log: whatever a host asks of the world is in it. */
import { createServer } from "node:http";
import { listenLocally, type LocalServer } from "../../packages/agent/src/listening.ts";

export interface Proxy extends LocalServer {
  /** Requests as `METHOD target`, oldest first. */
  readonly log: readonly string[];
}

export async function startProxy(): Promise<Proxy> {
  const log: string[] = [];
  const server = createServer((request, response) => {
    log.push(`${request.method} ${request.url}`);
    response.writeHead(403).end();
  });
  server.on("connect", (request, socket) => {
    log.push(`CONNECT ${request.url}`);
    socket.on("error", () => socket.destroy());
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  return { ...(await listenLocally(server)), log };
}
