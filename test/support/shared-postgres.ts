import { once } from "node:events";
import { existsSync, readFileSync, statfsSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";

/** The superuser's URL of the server of a run, or why there is none. */
export type Offer = { readonly url: string } | { readonly missing: string } | { readonly failed: string };

/**
 * Offers one PostgreSQL server to all test files of a run. It starts when the first file asks over the socket that
 * TEST_POSTGRES_SOCKET names.
 *
 * @param folder the folder of the run
 * @returns a function that ends the offer and removes the server
 */
export async function offerPostgres(folder: string): Promise<() => Promise<void>> {
  const path = process.platform === "win32" ? `\\\\.\\pipe\\${basename(folder)}` : join(folder, "postgres.socket");
  const endings: (() => Promise<void> | void)[] = [];
  const start = async (): Promise<Offer> => {
    // Most runs of single files need no server, so they do not load its code.
    const { startShared } = await import("./databases.ts");
    return startShared({ after: (end) => void endings.push(end) });
  };
  let offer: Promise<Offer> | undefined;
  const listener = createServer(async (socket) => {
    socket.on("error", () => undefined);
    offer ??= start().catch((error: unknown) => ({ failed: String(error) }));
    socket.end(JSON.stringify(await offer));
  });
  listener.listen(path);
  await once(listener, "listening");
  process.env["TEST_POSTGRES_SOCKET"] = path;
  return async () => {
    listener.close();
    await offer;
    for (const end of endings) await end();
  };
}

/** Asks the runner for the server of the run. Returns undefined if no runner offers one. */
export async function askForPostgres(): Promise<Offer | undefined> {
  const path = process.env["TEST_POSTGRES_SOCKET"];
  return path === undefined ? undefined : (JSON.parse(await text(connect(path))) as Offer);
}

/**
 * Returns a path for the folder of a run: in memory if there is enough room. PostgreSQL flushes all changes before it
 * drops a database, which takes seconds on a busy disk.
 */
export function fastFolder(): string {
  const [memory, roomMin] = ["/dev/shm", 4 * 1024 ** 3];
  if (process.platform !== "linux" || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  // The folder may need a copy of PostgreSQL's programs.
  const runsPrograms = !/ \/dev\/shm .*\bnoexec\b/.test(readFileSync("/proc/mounts", "utf8"));
  return runsPrograms && bavail * bsize >= roomMin ? memory : tmpdir();
}
