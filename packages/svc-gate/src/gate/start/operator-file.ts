import { X509Certificate } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder, makeFolders } from "../../ledger/mod.ts";

/** How the gate that serves a data folder is reached from the same machine, by whoever can read that folder. */
export interface OperatorFile {
  readonly url: string;
  /** A key of scope admin, good for as long as the process lives. */
  readonly key: string;
  readonly pid: number;
  /** SHA-256 of the certificate as it is shown, by which it is recognised, whatever it is called; null without TLS. */
  readonly certificate: string | null;
}

/** Where the gate can be reached: `address` as it listens, and its certificate in PEM. */
interface Reachable {
  readonly address: string;
  readonly key: string;
  readonly cert: Buffer | undefined;
}

/** What ends with the gate. */
export interface OperatorDoor {
  close(): Promise<void>;
}

/** Leaves word of how the gate is reached, for its owner alone. Where nothing can be written there is no such door. */
export async function openOperatorDoor(folder: string, reachable: Reachable, log: Logger): Promise<OperatorDoor> {
  try {
    await writeOperatorFile(folder, reachable);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    log.warn(
      `${fileIn(folder)} cannot be written (${code}): \`svc-gate keys\` and \`reload\` take --url and a key here`,
    );
  }
  return {
    close: async () => {
      // Another gate may have begun on the same folder.
      if ((await readOperatorFile(folder))?.key === reachable.key) await rm(fileIn(folder), { force: true });
    },
  };
}

async function writeOperatorFile(folder: string, { address, key, cert }: Reachable): Promise<void> {
  const written: OperatorFile = {
    url: address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]"),
    key,
    pid: process.pid,
    certificate: cert === undefined ? null : new X509Certificate(cert).fingerprint256,
  };
  const file = fileIn(folder);
  await makeFolders(folder, 0o700);
  await writeFile(`${file}.new`, `${JSON.stringify(written)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** Undefined where there is none that can be read. One that a killed gate left behind leads nowhere: nobody answers there. */
export async function readOperatorFile(folder: string): Promise<OperatorFile | undefined> {
  try {
    return JSON.parse(await readFile(fileIn(folder), "utf8")) as OperatorFile;
  } catch {
    return undefined;
  }
}

function fileIn(folder: string): string {
  return join(folder, dataFolder.files.operator);
}
