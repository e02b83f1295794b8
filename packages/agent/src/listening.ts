import type { Server } from "node:http";

/** A server on this machine. */
export interface LocalServer {
  /** `http://127.0.0.1:PORT`, without a path. */
  readonly url: string;
  readonly port: number;
  /** Ends it and its connections. */
  readonly stop: () => Promise<void>;
}

/**
 * Lets a server listen on this machine alone.
 *
 * @param wanted the port; 0 is a free one
 */
export async function listenLocally(server: Server, wanted: number = 0): Promise<LocalServer> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}`, port, stop };
}
