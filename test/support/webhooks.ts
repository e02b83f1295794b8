import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { eventually, patienceMs } from "./patience.ts";

/** A message as it came. */
export interface Received {
  readonly id: string;
  readonly headers: Record<string, string>;
  readonly text: string;
  readonly body: any;
}

/** A server that receives webhooks. */
export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** The messages that it answered with an error. */
  readonly refused: Received[];
  /** How long it waits for a message. */
  patienceMs: number;
  /** The status of each answer. */
  status: number;
  /** Answers instead of the server. */
  answer?: (response: ServerResponse) => void;
  /** Waits until a message satisfies a test. */
  readonly until: (test: (message: Received) => boolean) => Promise<Received>;
}

/** Starts a server that receives webhooks. */
export async function receive(t: TestContext, answerHeaders: Record<string, string> = {}): Promise<Receiver> {
  const received: Received[] = [];
  const server: Server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece) => (text += String(piece)));
    request.on("end", () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const messages = receiver.status < 300 ? received : receiver.refused;
      messages.push({ id: headers["webhook-id"] ?? "", headers, text, body: JSON.parse(text) });
      if (receiver.answer !== undefined) receiver.answer(response);
      else response.writeHead(receiver.status, answerHeaders).end("x");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    refused: [],
    patienceMs,
    status: 200,
    until: (wanted) => eventually("a message", () => received.find(wanted), receiver.patienceMs),
  };
  return receiver;
}

/** A secret of an endpoint, and the one before it. */
export const secret: string = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
export const older: string = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;

/** Members of an endpoint whose server is on this machine. */
export const local = { allow_private: true, allow_http: true };

/** Writes a file of endpoints. */
export function fileOf(folder: string, endpoints: readonly object[], mode = 0o600): string {
  const file = join(folder, "notify.json");
  writeFileSync(file, JSON.stringify({ endpoints }), { mode });
  chmodSync(file, mode);
  return file;
}

/** Tests a message for its type. */
export const isOf: (type: string) => (message: Received) => boolean = (type: string) => (message: Received) =>
  message.body.type === type;
