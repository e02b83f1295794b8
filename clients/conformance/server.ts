/**
 * The scripted server of one case. It handles each request as the script says, byte by byte if needed, and records the
 * requests. It promises to listen on 127.0.0.1 alone and to close every connection when it is stopped.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Exchange } from "./case.ts";

export type SeenRequest = {
  readonly line: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
};

export type ScriptedServer = {
  readonly url: string;
  /** The requests whose head arrived completely. */
  readonly requests: readonly SeenRequest[];
  /** The number of exchanges of the script that were started. */
  readonly attempts: () => number;
  /** The connections that carried bytes: some clients open one in advance and leave it silent. */
  readonly connections: () => number;
  readonly stop: () => Promise<void>;
};

type Pending = { readonly request: SeenRequest; readonly length: number };

const endOfHead = Buffer.from("\r\n\r\n");
const none: SeenRequest = { line: "", headers: new Map(), body: Buffer.alloc(0) };

/** Starts the server. The last exchange of the script repeats. `other` is the address for `$other`. */
export async function startServer(script: readonly Exchange[], other: string): Promise<ScriptedServer> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let begun = 0;
  let connections = 0;
  const planned = (): Exchange => script[Math.min(begun, script.length - 1)] ?? {};

  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once("data", () => (connections += 1));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    const first = planned();
    if (first.at === "accept") {
      if (first.then === "hang") socket.once("data", () => (begun += 1));
      else begun += 1;
      void play(socket, first, { request: none, other });
      return;
    }
    readRequests(socket, {
      isEarly: () => planned().at === "head",
      take: (request) => {
        const exchange = planned();
        begun += 1;
        requests.push(request);
        void play(socket, exchange, { request, other });
      },
    });
  });
  const url = await listening(server);
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { url, requests, attempts: () => begun, connections: () => connections, stop };
}

/** Listens on a free port and returns the address. */
export async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return `http://127.0.0.1:${address.port}`;
}

function readRequests(
  socket: Socket,
  each: { readonly isEarly: () => boolean; readonly take: (request: SeenRequest) => void },
): void {
  let bytes: Buffer = Buffer.alloc(0);
  let taken = false;
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (let pending = headOf(bytes); pending !== undefined; pending = headOf(bytes)) {
      if (!taken && each.isEarly()) {
        taken = true;
        each.take(pending.request);
      }
      if (bytes.length < pending.length) return;
      const body = bytes.subarray(pending.length - contentLength(pending.request), pending.length);
      bytes = bytes.subarray(pending.length);
      if (!taken) each.take({ ...pending.request, body });
      taken = false;
    }
  });
}

function headOf(bytes: Buffer): Pending | undefined {
  const end = bytes.indexOf(endOfHead);
  if (end < 0) return undefined;
  const [line = "", ...fields] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Map(fields.map((field) => [field.split(":")[0]!.toLowerCase(), field.replace(/^[^:]*:\s*/, "")]));
  const request = { line, headers, body: Buffer.alloc(0) };
  return { request, length: end + endOfHead.length + contentLength(request) };
}

function contentLength(request: SeenRequest): number {
  return Number(request.headers.get("content-length") ?? "0");
}

async function play(
  socket: Socket,
  exchange: Exchange,
  about: { readonly request: SeenRequest; readonly other: string },
): Promise<void> {
  if (exchange.delay_ms !== undefined) await pause(exchange.delay_ms);
  const bytes = exchange.send === undefined ? builtAnswer(exchange, about) : rawBytes(exchange.send, exchange.fill);
  if (exchange.each_ms === undefined) socket.write(bytes);
  else await trickle(socket, bytes, exchange.each_ms);
  if (exchange.then === "close") socket.end();
  if (exchange.then === "reset") {
    await pause(30); // so that the bytes before it arrive first
    socket.resetAndDestroy();
  }
}

async function trickle(socket: Socket, bytes: Buffer, eachMs: number): Promise<void> {
  for (const byte of bytes) {
    if (socket.destroyed) return;
    socket.write(Buffer.of(byte));
    await pause(eachMs);
  }
}

function rawBytes(send: string, fill: number | undefined): Buffer {
  return Buffer.from(send + " ".repeat(fill ?? 0), "latin1");
}

function builtAnswer(exchange: Exchange, about: { readonly request: SeenRequest; readonly other: string }): Buffer {
  const body = bodyOf(exchange, about.request);
  const framing = exchange.chunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`;
  const given = Object.entries(exchange.headers ?? {}).map(
    ([name, value]) => `${name}: ${value.replaceAll("$other", about.other)}`,
  );
  const head = [`HTTP/1.1 ${exchange.status ?? 200} Said`, "Content-Type: application/json", framing, ...given, "", ""];
  const framed = exchange.chunked ? chunks(body) : body;
  return Buffer.concat([
    Buffer.from(head.join("\r\n"), "latin1"),
    framed,
    Buffer.from(exchange.append ?? "", "latin1"),
  ]);
}

function chunks(body: Buffer): Buffer {
  const pieces = [body.subarray(0, 7), body.subarray(7)].filter((piece) => piece.length > 0);
  const framed = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}\r\n`),
    piece,
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...framed, Buffer.from("0\r\n\r\n")]);
}

function bodyOf(exchange: Exchange, request: SeenRequest): Buffer {
  if (exchange.base64 !== undefined) return Buffer.from(exchange.base64, "base64");
  const text = exchange.text ?? (exchange.json === undefined ? "" : JSON.stringify(exchange.json));
  const filled = exchange.fill === undefined ? "" : " ".repeat(Math.max(0, exchange.fill - text.length));
  return Buffer.from(text.replace("$digest", digestOf(request)).replace("$n", () => numberIn(request)) + filled);
}

function digestOf(request: SeenRequest): string {
  return createHash("sha256").update(request.body).digest("hex");
}

/** Returns `tool_input.n` of the request, which shows to which request an answer belongs. */
function numberIn(request: SeenRequest): string {
  try {
    const body: { tool_input?: { n?: number } } = JSON.parse(request.body.toString("utf8"));
    return String(body.tool_input?.n);
  } catch {
    return "none";
  }
}
