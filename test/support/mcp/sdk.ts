/** Clients of both generations of the official SDK, and what they see of a server with or without the proxy. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { channels } from "../../../packages/agent/src/mcp/channels.ts";
import { atEnd, compiled, key, root, temporaryFolder } from "../gate.ts";
import { agentProgram } from "../agent-program.ts";
import { runAgent } from "./proxy.ts";

const folder = join(root, "adapters", "conformance", "mcp");
export const sdkServer: string = join(folder, "server.mjs");
export const suiteServer: string = join(folder, "suite-server.mjs");
export const everything: string = join(
  folder,
  "node_modules",
  "@modelcontextprotocol",
  "server-everything",
  "dist",
  "index.js",
);
export const suite: string = join(folder, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");

const resolver = createRequire(join(folder, "package.json"));

/** The SDKs are installed in a folder of their own, so that their types are not known here. */
async function load(specifier: string): Promise<any> {
  const path = specifier.includes("/sdk/")
    ? resolver.resolve(specifier)
    : resolver.resolve(specifier).replace(/\.cjs$/, ".mjs");
  return import(pathToFileURL(path).href);
}

export type Generation = "v1" | "v2 legacy" | "v2 auto";

export type Reach =
  | {
      readonly command: readonly string[];
      /** The Node that runs it; by default the present one. */
      readonly node?: string;
      readonly env?: Readonly<Record<string, string>>;
    }
  | { readonly address: string; readonly headers?: Readonly<Record<string, string>> };

export interface SdkClient {
  readonly client: any;
  readonly progress: unknown[];
  readonly logs: unknown[];
}

/** Connects a client that answers elicitations, samplings and questions for roots. */
export async function connect(t: TestContext, generation: Generation, reach: Reach): Promise<SdkClient> {
  const isFirst = generation === "v1";
  const base = isFirst ? "@modelcontextprotocol/sdk/client" : "@modelcontextprotocol/client";
  const { Client, ...client_ } = await load(isFirst ? `${base}/index.js` : base);
  const stdio = isFirst ? `${base}/stdio.js` : `${base}/stdio`;
  const http = isFirst ? await load(`${base}/streamableHttp.js`) : client_;
  const capabilities = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };
  const negotiation = generation === "v2 auto" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities, ...negotiation });
  const logs: unknown[] = [];
  await handle(client, isFirst, logs);
  const transport =
    "command" in reach
      ? new (await load(stdio)).StdioClientTransport({
          command: reach.node ?? process.execPath,
          args: reach.command,
          env: { PATH: process.env["PATH"] ?? "", ...compiled, ...reach.env },
          stderr: "ignore",
        })
      : new http.StreamableHTTPClientTransport(new URL(reach.address), {
          requestInit: { headers: reach.headers ?? {} },
        });
  await client.connect(transport);
  atEnd(t, () => client.close());
  return { client, progress: [], logs };
}

async function handle(client: any, isFirst: boolean, logs: unknown[]): Promise<void> {
  const answers: Readonly<Record<string, () => object>> = {
    "elicitation/create": () => ({ action: "accept", content: { word: "yes", name: "Ann", check: true } }),
    "sampling/createMessage": () => ({ role: "assistant", model: "m", content: { type: "text", text: "hello" } }),
    "roots/list": () => ({ roots: [{ uri: "file:///root", name: "root" }] }),
  };
  const log = (message: any): void => void logs.push(message.params ?? message);
  if (!isFirst) {
    for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);
    client.setNotificationHandler("notifications/message", log);
    return;
  }
  const types = await load("@modelcontextprotocol/sdk/types.js");
  client.setRequestHandler(types.ElicitRequestSchema, answers["elicitation/create"]);
  client.setRequestHandler(types.CreateMessageRequestSchema, answers["sampling/createMessage"]);
  client.setRequestHandler(types.ListRootsRequestSchema, answers["roots/list"]);
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, log);
}

/** Starts a program of Node that prints the address on which it listens. */
export async function startListener(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  node: string = process.execPath,
): Promise<{ readonly address: string; readonly output: () => string }> {
  const child = spawn(node, args, {
    env: { PATH: process.env["PATH"] ?? "", ...compiled, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = new Promise((resolve) => child.on("close", resolve));
  atEnd(t, () => {
    child.kill("SIGKILL");
    return closed;
  });
  let output = "";
  const address = await new Promise<string>((resolve, reject) => {
    const read = (piece: unknown): void => {
      output += String(piece);
      const [, found, port] = /(http:\/\/\S+)\n|listening on port (\d+)/.exec(output) ?? [];
      if (found !== undefined || port !== undefined) resolve(found ?? `http://127.0.0.1:${port}/mcp`);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    void closed.then(() => reject(new Error(`it ended before it listened:\n${output}`)));
  });
  return { address, output: () => output };
}

export const proxyKey = "a-key-of-the-proxy-itself";

/** Accepts a server and returns how a client reaches it through the proxy. */
export async function throughProxy(
  t: TestContext,
  {
    reach,
    gate,
    name,
    flags = [],
  }: { readonly reach: Reach; readonly gate: string; readonly name: string; readonly flags?: readonly string[] },
): Promise<Reach> {
  const pins = join(temporaryFolder(t), "lock.json");
  const allow = channels.flatMap((channel) => ["--allow", channel]);
  const target = "command" in reach ? ["--", process.execPath, ...reach.command] : ["--upstream", reach.address];
  const { code, output } = await runAgent(t, [
    "mcp",
    "accept",
    "--yes",
    "--name",
    name,
    "--pins",
    pins,
    ...allow,
    ...target,
  ]);
  assert.equal(code, 0, output);
  const own = ["mcp", "--name", name, "--pins", pins, ...flags];
  const env = { SVC_URL: gate, SVC_KEY: key, SVC_MCP_KEY: proxyKey };
  const [node, ...first] = agentProgram().command;
  if ("command" in reach) return { node, command: [...first, ...own, ...target], env };
  const { address } = await startListener(t, [...first, ...own, ...target, "--port", "0"], env, node);
  return { address, headers: { authorization: `Bearer ${proxyKey}` } };
}
