import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { BadInput } from "../bad-input.ts";

/** The file of a host's key. Only its owner can read it, and it is in no project. */
export function keyFileFor(agent: string): string {
  return join(homedir(), ".config", "svc-gate", `${agent}.key`);
}

/**
 * Makes a key of the kind `host` at the gate and writes it to a file.
 *
 * @throws {BadInput} if the gate does not make it, or the file cannot be written
 */
export async function makeKey(asked: {
  readonly url: string;
  readonly adminKeyFile: string;
  readonly name: string;
  readonly keyFile: string;
}): Promise<void> {
  const { url, adminKeyFile, name, keyFile } = asked;
  const response = await fetch(`${url.replace(/\/+$/, "")}/admin/keys`, {
    method: "POST",
    redirect: "manual",
    headers: { authorization: `Bearer ${readKey(adminKeyFile)}`, "content-type": "application/json" },
    body: JSON.stringify({ name, kind: "host" }),
    signal: AbortSignal.timeout(10_000),
  });
  const { key, detail } = (await response.json()) as { readonly key?: unknown; readonly detail?: unknown };
  if (response.status !== 201 || typeof key !== "string")
    throw new BadInput(`the gate made no key: ${typeof detail === "string" ? detail : `status ${response.status}`}`);
  mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 });
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600, flag: "wx" });
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new BadInput(`the key file ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? "error"})`);
  }
}
