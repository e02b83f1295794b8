/** One conversation with a server that asks it what it offers: over its standard input and output, or over HTTP. */
import { spawn, type ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { JsonRecord } from "./json.ts";
import { readLines } from "./lines.ts";
import * as messages from "./message.ts";
import { serverEnv } from "./settings.ts";
import { eventsOf, readAnswerText, typeOf, type Upstream } from "./upstream.ts";
import { visible } from "./visible.ts";

/** Why a server did not say what it offers. The message follows the server's name. */
export class ProbeError extends Error {}

export interface ServerLink {
  /**
   * Undefined: the server answered with an error.
   *
   * @throws ProbeError or UpstreamError if it does not answer
   */
  readonly ask: (method: string, params: JsonRecord, waitMs: number) => Promise<JsonRecord | undefined>;
  readonly notify: (method: string, params: JsonRecord) => Promise<void>;
  /** Ends it, with every process that it started. */
  readonly close: () => Promise<void>;
}

interface OpenRequest {
  readonly resolve: (result: JsonRecord | undefined) => void;
  readonly reject: (problem: ProbeError) => void;
}

/** How long a server may take to end by itself. */
const patienceMs = 2000;
const signals = ["SIGHUP", "SIGINT", "SIGTERM"] as const;

/** Starts a server. It gets none of the gate's settings. */
export function childLink([program = "", ...words]: readonly string[]): ServerLink {
  // A group of its own, because a command such as npx starts the server as another process.
  const detached = process.platform !== "win32";
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], env: serverEnv(process.env), detached });
  const waiting = new Map<messages.MessageId, OpenRequest>();
  const said = lastLine(child.stderr);
  let problem: ProbeError | undefined;
  const fail = (why: string): void => {
    problem ??= new ProbeError(why);
    for (const { reject: failed } of waiting.values()) failed(problem);
    waiting.clear();
  };
  const ended = new Promise<void>((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      fail(`cannot be started (${error.code ?? error.message})`);
      resolve();
    });
    child.on("close", (code) => {
      fail(`ended with ${code ?? "a signal"}${said()}`);
      resolve();
    });
  });
  child.stdin.on("error", () => undefined);
  readLines(child.stdout, {
    line: (text) => {
      const message = readable(text);
      if (message?.kind === "response" && message.id !== null) waiting.get(message.id)?.resolve(message.result);
      if (message?.kind === "request")
        child.stdin.write(`${messages.errorText(message.id, messages.errors.method, "not now")}\n`);
    },
    fault: (why) => fail(`sent a message that is ${why}`),
    end: () => undefined,
  });
  const kill = (): void => killGroup(child);
  const leave = (): void => process.exit(1);
  process.once("exit", kill);
  for (const signal of signals) process.once(signal, leave);
  let count = 0;
  return {
    ask: (method, params, waitMs) =>
      new Promise((resolve, reject) => {
        if (problem !== undefined) return reject(problem);
        count += 1;
        const id = count;
        const settle = (): void => {
          clearTimeout(timer);
          waiting.delete(id);
        };
        const rejectRequest = (why: ProbeError): void => (settle(), reject(why));
        const silence = (): string => `did not answer ${method} within ${waitMs / 1000} s${said()}`;
        const timer = setTimeout(() => rejectRequest(new ProbeError(silence())), waitMs);
        waiting.set(id, { resolve: (result) => (settle(), resolve(result)), reject: rejectRequest });
        child.stdin.write(`${messages.requestText({ id, method, params })}\n`);
      }),
    notify: async (method, params) => void child.stdin.write(`${messages.notificationText(method, params)}\n`),
    close: async () => {
      child.stdin.end();
      const timer = setTimeout(kill, patienceMs);
      await ended;
      clearTimeout(timer);
      kill();
      process.off("exit", kill);
      for (const signal of signals) process.off(signal, leave);
    },
  };
}

/** Ends the server and what it started, and stops to read from them. */
function killGroup(child: ChildProcess): void {
  try {
    if (process.platform === "win32") child.kill("SIGKILL");
    else if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch {
    // All of them have ended.
  }
  child.stdout?.destroy();
  child.stderr?.destroy();
}

const saidMax = 2000;

/** Returns a function for the last line so far: servers write there why they do not start. */
function lastLine(stream: Readable): () => string {
  let text = "";
  stream.on("data", (piece: Buffer) => (text = (text + piece.toString("utf8")).slice(-saidMax)));
  return () => {
    const line = text.trim().split("\n").at(-1)?.trim().slice(0, 200) ?? "";
    return line === "" ? "" : `; it wrote: ${visible(line)}`;
  };
}

/** Asks a server with an address. */
export function httpLink(upstream: Upstream, version: string, namesMethod: boolean): ServerLink {
  let session: string | undefined;
  let count = 0;
  const headers = (method: string): Record<string, string> => ({
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": version,
    ...(namesMethod ? { "mcp-method": method } : {}),
    ...(session === undefined ? {} : { "mcp-session-id": session }),
  });
  const ask: ServerLink["ask"] = async (method, params, waitMs) => {
    count += 1;
    const body = messages.requestText({ id: count, method, params });
    const signal = AbortSignal.timeout(waitMs);
    const answer = await upstream.send({ method: "POST", headers: headers(method), body, signal });
    if ([401, 403].includes(answer.statusCode)) {
      answer.destroy();
      throw new ProbeError(
        `answered ${answer.statusCode}: put its token into a file, and name the file in SVC_MCP_UPSTREAM_KEY_FILE`,
      );
    }
    const id = answer.headers["mcp-session-id"];
    if (typeof id === "string") session = id;
    if (typeOf(answer) === "json") return resultIn(await readAnswerText(answer), count);
    if (typeOf(answer) === "other") return void answer.destroy();
    for await (const { data } of eventsOf(answer)) {
      const message = readable(data);
      if (message?.kind === "response" && message.id === count) return message.result;
    }
    return undefined;
  };
  const notify = async (method: string, params: JsonRecord): Promise<void> => {
    const body = messages.notificationText(method, params);
    (await upstream.send({ method: "POST", headers: headers(method), body })).destroy();
  };
  const close = async (): Promise<void> => {
    if (session === undefined) return;
    const answer = await upstream.send({ method: "DELETE", headers: headers("") }).catch(() => undefined);
    answer?.destroy();
  };
  return { ask, notify, close };
}

function resultIn(text: string, id: number): JsonRecord | undefined {
  const message = readable(text);
  return message?.kind === "response" && message.id === id ? message.result : undefined;
}

function readable(text: string): messages.RpcMessage | undefined {
  try {
    return messages.readMessage(text);
  } catch {
    return undefined;
  }
}
