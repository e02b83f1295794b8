/**
 * The process that has the client under test: cases go in and results come out, one line of JSON each. Promises that
 * every case gets a result, also when the process ends early.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { Json } from "./case.ts";
import type { ClientResult } from "./compare.ts";

/** A case's calls, and the options for the client. */
export type Asked = { readonly id: string; readonly [name: string]: Json };

export type Adapter = {
  readonly ask: (one: Asked) => Promise<ClientResult>;
  readonly end: () => Promise<void>;
};

/** Starts the command with every proxy variable pointing to `proxy`, which no client may visit. */
export function startAdapter([program = "", ...parameters]: readonly string[], proxy: string): Adapter {
  const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  const proxies = { ...Object.fromEntries(names.map((name) => [name, proxy])), NO_PROXY: "", no_proxy: "" };
  const env = { ...process.env, ...proxies, NODE_USE_ENV_PROXY: "1" };
  return talking(spawn(program, parameters, { env, stdio: ["pipe", "pipe", "pipe"] }));
}

function talking(child: ChildProcessByStdio<Writable, Readable, Readable>): Adapter {
  const asked = new Map<string, (result: ClientResult) => void>();
  let errors = "";
  let ended = false;
  const lost = (id: string): ClientResult => ({ id, results: [{ raised: `the adapter ended: ${errors}` }] });
  const closed = new Promise<void>((resolve) => {
    child.on("error", (error) => (errors += error.message));
    child.on("close", () => {
      ended = true;
      for (const [id, give] of asked) give(lost(id));
      resolve();
    });
  });
  child.stdin.on("error", () => {}); // "close" reports it
  child.stderr.on("data", (text) => (errors = `${errors}${text}`.slice(-2000)));
  eachLine(child.stdout, (line) => {
    const result: ClientResult = JSON.parse(line);
    asked.get(result.id)?.(result);
    asked.delete(result.id);
  });
  const ask = (one: Asked): Promise<ClientResult> => {
    const { id } = one;
    if (ended) return Promise.resolve(lost(id));
    return new Promise((resolve) => {
      asked.set(id, resolve);
      child.stdin.write(`${asciiJson(one)}\n`);
    });
  };
  const end = async (): Promise<void> => {
    child.stdin.end();
    await closed;
  };
  return { ask, end };
}

/** Lines end only in a line feed: other line readers also split at Unicode separators. */
function eachLine(stream: Readable, take: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  });
}

function asciiJson(value: Json): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, escaped);
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
