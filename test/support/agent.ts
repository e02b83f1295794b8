/** The commands of packages/agent as processes. */
import { spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { agentProgram } from "./agent-program.ts";
import type { Mutation } from "./mutation/mutate.ts";

export interface AgentRun {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface AgentOptions {
  readonly stdin?: string;
  /** All variables but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Another user of the machine. */
  readonly uid?: number;
  /** A command that starts it. */
  readonly wrapper?: readonly string[];
  readonly defects?: readonly Mutation[];
}

/** Runs `svc-gate` of the agent's package to its end, without this process's variables. */
export async function runAgent(words: readonly string[], options: AgentOptions = {}): Promise<AgentRun> {
  const { stdin = "", env = {}, cwd, uid, wrapper = [], defects = [] } = options;
  const program = agentProgram(defects);
  const [command = "", ...all] = [...wrapper, ...program.command, ...words];
  const child = spawn(command, all, {
    env: { PATH: process.env["PATH"] ?? "", ...program.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (piece) => (output.stdout += String(piece)));
  child.stderr.on("data", (piece) => (output.stderr += String(piece)));
  child.stdin.on("error", () => undefined); // the command may end before it has read its input
  child.stdin.end(stdin);
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  return { code: code ?? signal ?? "unknown", ...output };
}

/** A server on loopback instead of a gate. It ends with the test. */
export async function startFakeGate(
  t: Pick<TestContext, "after">,
  handle: Parameters<typeof createServer>[1],
): Promise<string> {
  const server: Server = createServer(handle as never);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
