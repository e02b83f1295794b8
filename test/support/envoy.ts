/** The real Envoy with the configuration of docs/hosts/envoy.md, an MCP server behind it, and what both saw. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request as send, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { freePort } from "./free-port.ts";
import { listenLocally } from "../../packages/agent/src/listening.ts";
import { atEnd, key, root, temporaryFolder } from "./gate.ts";

const program = join(root, "adapters", "conformance", "envoy", ".venv", "bin", "envoy");

/** Returns why the tests cannot run here. */
export function missingEnvoy(): string | undefined {
  if (existsSync(program)) return undefined;
  return "Envoy is not installed: run node tools/setup.mjs adapters/conformance/envoy; it needs python3 and Linux on x64";
}

/** The page's configuration. */
export function documentedConfig(): string {
  const page = readFileSync(join(root, "docs", "hosts", "envoy.md"), "utf8");
  const [, config] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  if (config === undefined) throw new Error("docs/hosts/envoy.md has no configuration");
  return config;
}

export interface EnvoyOptions {
  /** The gate's address. */
  readonly gate: string;
  /** The MCP server's address; by default a witness that pays. */
  readonly server?: string;
  /** A part of the configuration, and its replacement. */
  readonly change?: readonly [part: string, replacement: string];
  /** The gate's key in Envoy's environment. */
  readonly key?: string;
}

/** A request that the MCP server got. */
export interface Arrived {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface EnvoyReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface EnvoyBench {
  readonly address: string;
  /** Everything that reached the witness. */
  readonly arrived: readonly Arrived[];
  readonly ask: (
    body: string | Buffer | undefined,
    asked?: {
      readonly method?: string;
      readonly path?: string;
      readonly headers?: Readonly<Record<string, string | readonly string[]>>;
    },
  ) => Promise<EnvoyReply>;
}

export async function startEnvoy(t: TestContext, options: EnvoyOptions): Promise<EnvoyBench> {
  const arrived: Arrived[] = [];
  const server = options.server ?? (await startWitness(t, arrived));
  const port = await freePort();
  const folder = temporaryFolder(t);
  const file = join(folder, "envoy.yaml");
  writeFileSync(file, configFor({ ...options, server, port }));
  const words = ["-c", file, "--log-level", "warning", "--disable-hot-restart", "--concurrency", "1"];
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, SVC_KEY: options.key ?? key };
  const child = spawn(program, words, { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (piece) => (said += String(piece)));
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => child.on("close", () => ((hasEnded = true), resolve())));
  atEnd(t, () => {
    child.kill("SIGKILL");
    return ended;
  });
  while (!(await accepts(port))) {
    if (hasEnded) throw new Error(`Envoy ended before it listened:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const ask: EnvoyBench["ask"] = (body, { method = "POST", path = "/mcp", headers = {} } = {}) =>
    askOnce({ port, method, path, body, headers: { "content-type": "application/json", ...headers } });
  return { address: `http://127.0.0.1:${port}/mcp`, arrived, ask };
}

function configFor({
  gate,
  server,
  port,
  change,
}: EnvoyOptions & { readonly server: string; readonly port: number }): string {
  const [part, replacement] = change ?? ["", ""];
  const text = documentedConfig();
  if (!text.includes(part)) throw new Error(`the configuration of docs/hosts/envoy.md lacks ${part}`);
  const ports: Readonly<Record<string, string>> = {
    10000: String(port),
    8787: new URL(gate).port,
    9000: new URL(server).port,
  };
  return text.replace(part, replacement).replaceAll(/\b(?:10000|8787|9000)\b/g, (found) => ports[found] ?? found);
}

/** A server of MCP without an SDK, which answers everything. */
async function startWitness(t: TestContext, arrived: Arrived[]): Promise<string> {
  const witness = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      arrived.push({ method, path, headers, body: Buffer.concat(pieces).toString() });
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"paid"}]}}');
    });
  });
  const { url, stop } = await listenLocally(witness);
  atEnd(t, stop);
  return url;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.on("connect", () => end(true)).on("error", () => end(false));
  });
}

interface RequestOptions {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | Buffer | undefined;
}

function askOnce({ body, headers, ...target }: RequestOptions): Promise<EnvoyReply> {
  return new Promise((resolve, reject) => {
    const own = {
      host: "127.0.0.1",
      agent: false,
      ...target,
      headers: { ...headers } as Record<string, string | string[]>,
    };
    const outgoing = send(own, (response) => {
      let text = "";
      response.on("data", (piece) => (text += String(piece)));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
