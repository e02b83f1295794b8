/** What the commands read from the environment. */
import { readFileSync, statSync } from "node:fs";
import { SvcGate } from "../../../../clients/javascript/svc-gate.mjs";
import { UsageError } from "./pins.ts";

/** Returns a function that makes a client of the gate for one session. */
export function gateOf(env: NodeJS.ProcessEnv): (sessionId?: string) => SvcGate {
  const { SVC_URL: url, SVC_TIMEOUT: seconds } = env;
  if (!url) throw new UsageError("svc-gate mcp: set SVC_URL to the gate's address");
  const apiKey = secretOf(env, "SVC_KEY");
  return (sessionId) => {
    try {
      const timeoutMs = seconds ? Number(seconds) * 1000 : undefined;
      return new SvcGate(url, { apiKey, sessionId: sessionId ?? env["SVC_SESSION"], timeoutMs, idempotent: true });
    } catch (error) {
      throw new UsageError(`svc-gate mcp: SVC_URL, SVC_KEY, SVC_SESSION or SVC_TIMEOUT: ${describeError(error)}`);
    }
  };
}

/** Reads a secret from a variable, or from the file that `NAME_FILE` names. */
export function secretOf(env: NodeJS.ProcessEnv, name: string): string | null {
  const file = env[`${name}_FILE`];
  if (!file) return env[name] || null;
  try {
    const others = process.platform === "win32" ? 0 : statSync(file).mode & 0o077;
    if (others !== 0) throw new UsageError(`svc-gate mcp: others can read the file of ${name}_FILE; run: chmod 600`);
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`svc-gate mcp: the file of ${name}_FILE cannot be read: ${describeError(error)}`);
  }
}

/** A server gets none of the gate's settings, above all no key. */
export function serverEnv(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^SVC_/i.test(name)));
}

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : "unknown error";
}
