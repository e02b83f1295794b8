import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { freePort } from "../free-port.ts";
import { publicBytes, signatureTypes, verifierKey } from "../../../packages/core/src/record/tree/note.ts";
import { temporaryFolder } from "../gate.ts";
import { needPrograms, runProgram, startProgram } from "./programs.ts";
import { eventually } from "../patience.ts";

/** An independent witness on this machine, with a new key and one log that it knows. */
export interface RunningWitness {
  readonly url: string;
  /** Its key, of the cosigning type. */
  readonly vkey: string;
}

export interface KnownLog {
  readonly origin: string;
  readonly vkey: string;
}

/** Starts a witness's program; undefined if it is not installed, and then the test is skipped. */
export type StartWitness = (t: TestContext, log: KnownLog) => Promise<RunningWitness | undefined>;

const address = "127.0.0.1";

/** It prints that it listens a moment before it does. */
async function untilReached(port: number): Promise<void> {
  const isReached = (): Promise<boolean> =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, address, () => resolve(true));
      socket.on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
  await eventually(`a program that listens on ${address}:${port}`, isReached);
}

/**
 * Starts the witness of transparency.dev. It hears nothing of the logs that it knows by default, because logs contact
 * it.
 */
async function startOmniwitness(t: TestContext, { origin, vkey }: KnownLog): Promise<RunningWitness | undefined> {
  const found = needPrograms(t, "omniwitness");
  if (found === undefined) return undefined;
  const folder = temporaryFolder(t);
  const name = "omni.example";
  const { privateKey } = generateKeyPairSync("ed25519");
  const publicKey = publicBytes(privateKey);
  const seed = Buffer.from(privateKey.export({ format: "jwk" }).d ?? "", "base64url");
  const material = Buffer.concat([Buffer.of(signatureTypes.ed25519), seed]).toString("base64");
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, `PRIVATE+KEY+${name}+${verifierKey(name, publicKey).id}+${material}`, { mode: 0o600 });
  const logs = join(folder, "logs.yaml");
  writeFileSync(logs, `Logs:\n  - Origin: ${origin}\n    PublicKey: ${vkey}\n`);
  const port = await freePort();
  const flags = {
    listen: `${address}:${port}`,
    metrics_listen: "",
    db_file: join(folder, "db"),
    additional_logs: logs,
  };
  const args = Object.entries({ ...flags, private_key_path: keyFile }).map(([flag, value]) => `--${flag}=${value}`);
  await startProgram(t, found.omniwitness, args, /HTTP server goroutine started/);
  await untilReached(port);
  const cosigning = verifierKey(name, publicKey, signatureTypes.cosignature);
  return { url: `http://${address}:${port}`, vkey: cosigning.text };
}

/** Starts the witness of filippo.io/torchwood: its key is in an agent, and its list of logs in a database. */
async function startLitewitness(t: TestContext, { origin, vkey }: KnownLog): Promise<RunningWitness | undefined> {
  const found = needPrograms(t, "litewitness", "witnessctl", "sshAgent", "sshAdd", "sshKeygen");
  if (found === undefined) return undefined;
  const folder = temporaryFolder(t);
  const [db, socket, keyFile] = ["db", "agent", "key"].map((name) => join(folder, name)) as [string, string, string];
  const run = async (program: string, ...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await runProgram(program, args, { env: { SSH_AUTH_SOCK: socket } });
    if (code !== 0) throw new Error(`${program} ended with ${code}: ${stderr}`);
    return stdout;
  };
  await startProgram(t, found.sshAgent, ["-D", "-a", socket], /SSH_AUTH_SOCK/);
  await run(found.sshKeygen, "-q", "-t", "ed25519", "-N", "", "-f", keyFile);
  await run(found.sshAdd, "-q", keyFile);
  const fingerprint = /SHA256:\S+/.exec(await run(found.sshKeygen, "-l", "-f", keyFile))?.[0] ?? "";
  await run(found.witnessctl, "add-log", "-db", db, "-origin", origin);
  await run(found.witnessctl, "add-key", "-db", db, "-origin", origin, "-key", vkey);
  const port = await freePort();
  const flags = { name: "lite.example", db, key: fingerprint, "ssh-agent": socket, listen: `${address}:${port}` };
  const args = Object.entries(flags).flatMap(([flag, value]) => [`-${flag}`, value]);
  const said = await startProgram(t, found.litewitness, args, /listening/);
  await untilReached(port);
  return { url: `http://${address}:${port}`, vkey: /vkey=(\S+)/.exec(said)?.[1] ?? "" };
}

export const witnesses: Readonly<Record<string, StartWitness>> = {
  OmniWitness: startOmniwitness,
  litewitness: startLitewitness,
};
