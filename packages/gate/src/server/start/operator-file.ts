import { X509Certificate } from "node:crypto";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { dataFolder, makeFolders } from "../../ledger/mod.ts";

/** The URL and a key of the gate that serves a data folder, for anyone on the same machine who can read the folder. */
export interface OperatorFile {
  readonly url: string;
  /** A key of scope admin, which ends with the process. */
  readonly key: string;
  readonly pid: number;
  /**
   * The fingerprint (SHA-256) of the certificate, which the client compares instead of the host name; null without TLS.
   */
  readonly certificate: string | null;
}

/** The gate's address, the key, and its certificate in PEM. */
interface GateAddress {
  readonly address: string;
  readonly key: string;
  readonly cert: Buffer | undefined;
}

/** Removes the operator file when the gate stops. */
export interface OperatorDoor {
  close(): Promise<void>;
}

/** Writes the operator file, which only its owner can read. If the file cannot be written, logs a warning. */
export async function openOperatorDoor(folder: string, address: GateAddress, log: Logger): Promise<OperatorDoor> {
  try {
    await writeOperatorFile(folder, address);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    log.warn(
      `${fileIn(folder)} cannot be written (${code}): run \`svc-gate keys\` and \`svc-gate reload\` with --url and a key`,
    );
  }
  return {
    close: async () => {
      // Another gate may have started on the same folder.
      if ((await readOperatorFile(folder))?.key === address.key) await rm(fileIn(folder), { force: true });
    },
  };
}

async function writeOperatorFile(folder: string, { address, key, cert }: GateAddress): Promise<void> {
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

/**
 * Reads the operator file; undefined if there is none or it cannot be read. After a gate was killed, its file remains,
 * but nobody answers at the URL.
 */
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
