import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { InputError } from "../bad-input.ts";

/** The file of a host's key. Only its owner can read it, and it is in no project. */
export function keyFileFor(agent: string): string {
  return join(homedir(), ".config", "svc-gate", `${agent}.key`);
}

/**
 * Makes a key of the kind `host` at the gate and writes it to a file.
 *
 * @throws {InputError} if the gate does not make it, or the file cannot be written
 */
export async function makeKey(request: {
  readonly url: string;
  readonly adminKeyFile: string;
  readonly name: string;
  readonly keyFile: string;
}): Promise<void> {
  const { url, adminKeyFile, name, keyFile } = request;
  const authorization = `Bearer ${readKey(adminKeyFile)}`;
  // Before the gate makes the key, so that no key is lost.
  const descriptor = openNew(keyFile);
  let isWritten = false;
  try {
    const response = await fetch(`${url.replace(/\/+$/, "")}/admin/keys`, {
      method: "POST",
      redirect: "manual",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ name, kind: "host" }),
      signal: AbortSignal.timeout(10_000),
    });
    const { key, detail } = (await response.json()) as { readonly key?: unknown; readonly detail?: unknown };
    if (response.status !== 201 || typeof key !== "string")
      throw new InputError(
        `the gate made no key: ${typeof detail === "string" ? detail : `status ${response.status}`}`,
      );
    writeFileSync(descriptor, `${key}\n`);
    isWritten = true;
  } finally {
    closeSync(descriptor);
    if (!isWritten) rmSync(keyFile, { force: true });
  }
}

/** Opens a file that only its owner can read. It must not exist, also not as a link that leads nowhere. */
function openNew(file: string): number {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    return openSync(file, "wx", 0o600);
  } catch (error) {
    throw new InputError(`the key file ${file} cannot be made (${(error as NodeJS.ErrnoException).code ?? "error"})`);
  }
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new InputError(`the key file ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? "error"})`);
  }
}
