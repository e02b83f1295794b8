import type { Server } from "node:http";

/** A server of the kit. */
export interface Listening {
  readonly url: string;
  /** Ends it and its connections. */
  readonly stop: () => Promise<void>;
}

/** Lets a server listen on a free port of this machine. */
export async function listening(server: Server): Promise<Listening> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}`, stop };
}
