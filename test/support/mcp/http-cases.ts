/** Cases of the proxy over Streamable HTTP, before a server without an SDK. Each can also run on a broken proxy. */
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  request as send,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startDesk, type Desk } from "../approvals.ts";
import { ask, atEnd, key, temporaryFolder } from "../gate.ts";
import type { Mutation } from "../mutation/mutate.ts";
import { agentProgram } from "../agent-program.ts";
import { bank, runAgent } from "./proxy.ts";
import { proxyKey, startListener } from "./sdk.ts";
import { eventually } from "../patience.ts";

export interface HttpOptions {
  readonly mutations?: readonly Mutation[];
  /** How long it waits for what the proxy does. */
  readonly patienceMs?: number;
}

export type HttpRun = (t: TestContext, options?: HttpOptions) => Promise<void>;

interface Seen {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  isAborted: boolean;
}

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: any;
}

interface Bench {
  readonly desk: Desk;
  readonly port: number;
  readonly seen: readonly Seen[];
  /** Tools that ran. */
  readonly ran: () => readonly string[];
  readonly post: (body: object | string, headers?: Readonly<Record<string, string>>) => Promise<Reply>;
  readonly ask: (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ) => Promise<Reply>;
  readonly call: (amount: number, headers?: Readonly<Record<string, string>>, more?: object) => Promise<Reply>;
}

/** The server closes a connection that is idle for this time; here at the moment of the next request. */
const idleAtServerMs = 3000;
const upstreamKey = "the-key-of-the-server-itself";
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** A server of both generations. It asks for a key, and does odd things for some amounts. */
function answer(request: IncomingMessage, response: ServerResponse, body: string): void {
  const json = (value: object, status = 200, headers: Record<string, string> = {}): void =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
  if (request.headers.authorization !== `Bearer ${upstreamKey}`) return json({}, 401);
  if (request.method === "DELETE") return void response.writeHead(204).end();
  if (request.method === "GET") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const question = '{"resultType":"input_required","requestState":"s","inputRequests":{}}';
    const repeated = request.headers["last-event-id"] === "9" ? question : '{"content":[]}';
    return void response.end(`id: 8\nretry: 100\ndata: {"jsonrpc":"2.0","id":3,"result":${repeated}}\n\n`);
  }
  const { id, method, params } = JSON.parse(body);
  const result = (value: object): object => ({ jsonrpc: "2.0", id, result: { resultType: "complete", ...value } });
  switch (method) {
    case "initialize":
      return json(result({ protocolVersion: "2025-11-25", capabilities: { tools: {} } }), 200, {
        "mcp-session-id": `s-${id}`,
      });
    case "server/discover":
      return json(result({ supportedVersions: ["2026-07-28"], capabilities: { tools: {} } }));
    case "tools/list":
      if (request.headers["mcp-protocol-version"] === "odd")
        return json({ jsonrpc: "2.0", id: "x", method: "sampling/createMessage", params: {} });
      return json(result({ tools: [{ name: "pay", inputSchema: { type: "object" } }] }));
    case "tools/call":
      if (params.arguments.amount === 2) return json({ ...result({ content: [] }), id: 4 });
      if (params.arguments.amount === 3 && params.requestState === undefined) {
        response.writeHead(200, { "content-type": "text/event-stream", "x-accel-buffering": "no" });
        return void response.end("id: 7\nretry: 50\ndata: \n\n");
      }
      if (params.arguments.amount === 4)
        return void response.writeHead(307, { location: "http://127.0.0.1:9/mcp" }).end();
      if (params.arguments.amount === 8)
        return response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      return json(result({ content: [{ type: "text", text: `paid ${params.arguments.amount}` }] }));
    default:
      return void response.writeHead(id === undefined ? 202 : 404).end();
  }
}

/** Starts the server. @returns its address */
async function startUpstream(t: TestContext, seen: Seen[]): Promise<string> {
  const answeredAt = new WeakMap<object, number>();
  const upstream = createServer((request, response) => {
    const { socket } = request;
    if (performance.now() - (answeredAt.get(socket) ?? Infinity) > idleAtServerMs) {
      socket.destroy();
      return;
    }
    response.on("finish", () => answeredAt.set(socket, performance.now()));
    const each: Seen = { method: request.method ?? "", headers: request.headers, body: "", isAborted: false };
    let body = "";
    request.on("data", (piece) => (body += String(piece)));
    response.on("close", () => (each.isAborted = !response.writableFinished));
    request.on("end", () => {
      seen.push(Object.assign(each, { body }));
      answer(request, response, body);
    });
  });
  upstream.keepAliveTimeout = 0; // It does not say, either, when it closes connections.
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  atEnd(t, () => {
    upstream.closeAllConnections();
    upstream.close();
  });
  return `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/mcp`;
}

/** Starts a server, a gate, and the proxy between them. */
async function startBench(
  t: TestContext,
  { mutations = [] }: HttpOptions = {},
  flags: readonly string[] = [],
): Promise<Bench> {
  const seen: Seen[] = [];
  const address = await startUpstream(t, seen);
  const desk = await startDesk(t, { contract: bank });
  const own = ["--name", "bank", "--pins", join(temporaryFolder(t), "lock.json"), "--upstream", address];
  const env = { SVC_MCP_UPSTREAM_KEY: upstreamKey };
  const { code, output } = await runAgent(t, ["mcp", "accept", "--yes", ...own], env);
  assert.equal(code, 0, output);
  const { command, env: planted } = agentProgram(mutations);
  const [node, ...first] = command;
  const keys = { SVC_URL: desk.address, SVC_KEY: key, SVC_MCP_KEY: proxyKey };
  const words = [...first, "mcp", ...own, "--port", "0", ...flags];
  const listening = await startListener(t, words, { ...env, ...planted, ...keys }, node);
  seen.length = 0;
  const port = Number(new URL(listening.address).port);
  const request: Bench["ask"] = (method, path, headers, body) =>
    new Promise((resolve, reject) => {
      const outgoing = send({ host: "127.0.0.1", port, method, path, headers }, (response) => {
        let text = "";
        response.on("data", (piece) => (text += String(piece)));
        response.on("error", reject);
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) }),
        );
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  const post: Bench["post"] = (body, headers = {}) =>
    request("POST", "/mcp", { ...keyed, ...headers }, typeof body === "string" ? body : JSON.stringify(body));
  return {
    desk,
    port,
    seen,
    ran: () => seen.filter(({ body }) => body.includes("tools/call")).map(({ body }) => body),
    post,
    ask: request,
    call: (amount, headers, more = {}) => post(callOf(amount, more), headers),
  };
}

const keyed = {
  authorization: `Bearer ${proxyKey}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

const callOf = (amount: number, more: object = {}): object => ({
  jsonrpc: "2.0",
  id: 3,
  method: "tools/call",
  params: { name: "pay", arguments: { amount }, _meta: meta, ...more },
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const refusedBy =
  (status: number, headers: Readonly<Record<string, string>>, body: object | string = callOf(5)): HttpRun =>
  async (t, options) => {
    const bench = await startBench(t, options);
    const reply = await bench.post(body, headers);
    assert.equal(reply.status, status, reply.text);
    assert.deepEqual(bench.seen, []);
    assert.equal((await bench.call(5)).json.result.content[0].text, "paid 5");
  };

export const httpCases: Readonly<Record<string, HttpRun>> = {
  "H1: a call without the key is refused": refusedBy(401, { authorization: "Bearer another-key-of-someone" }),
  "H2: another Host is refused": refusedBy(403, { host: "evil.example" }),
  "H3: another Origin is refused": refusedBy(403, { origin: "https://evil.example" }),
  "H4: another content type is refused": refusedBy(415, { "content-type": "text/plain" }),
  "H5: a body that is too long is refused": refusedBy(413, {}, callOf(5, { _meta: { long: "x".repeat(4_194_304) } })),
  "H6: a batch is refused": refusedBy(400, {}, JSON.stringify([callOf(5)])),
  "H7: a method in the headers that is not the body's is refused": refusedBy(400, { "mcp-method": "tools/list" }),
  "H8: a name in the headers that is not the body's is refused": refusedBy(400, { "mcp-name": "read" }),
  "H9: a version in the headers that is not the body's is refused": refusedBy(400, {
    "mcp-protocol-version": "2025-11-25",
  }),
  "H10: the server gets what the gate judged, its own key, and headers that equal the body": async (t, options) => {
    const bench = await startBench(t, options);
    const text = `{ "jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"p\\u0061y","arguments":{"amount":5.0}}}`;
    const reply = await bench.post(text, {
      "mcp-method": "tools/call",
      "mcp-name": "=?base64?cGF5?=",
      cookie: "a=b",
      "mcp-param-amount": "5",
    });
    assert.equal(reply.json.result.content[0].text, "paid 5");
    const [own, last] = bench.seen;
    assert.match(own?.body ?? "", /"tools\/list"/);
    assert.equal(
      last?.body,
      '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay","arguments":{"amount":5}}}',
    );
    const { authorization, cookie } = last.headers;
    assert.deepEqual(
      [authorization, cookie, last.headers["mcp-param-amount"]],
      [`Bearer ${upstreamKey}`, undefined, "5"],
    );
  },
  "H11: a blocked call does not reach the server": async (t, options) => {
    const bench = await startBench(t, options);
    const { status, json } = await bench.call(900);
    assert.deepEqual([status, json.result.isError], [200, true]);
    assert.match(json.result.content[0].text, /900 is too much/);
    assert.deepEqual(bench.ran(), []);
  },
  "H12: a redirect is not followed": async (t, options) => {
    const bench = await startBench(t, options);
    const { status, json } = await bench.call(4);
    assert.equal(status, 502);
    assert.match(json.error.message, /redirect \(307\), which is never followed/);
    assert.equal(bench.ran().length, 1);
  },
  "H13: a stream can be taken up in its session": async (t, options) => {
    const bench = await startBench(t, options);
    const started = await bench.post({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {} },
    });
    const session = {
      "mcp-session-id": String(started.headers["mcp-session-id"]),
      "mcp-protocol-version": "2025-11-25",
    };
    assert.equal(session["mcp-session-id"], "s-1");
    const first = await bench.call(3, session, { _meta: {} });
    assert.equal(first.text, "id: 7\nretry: 50\ndata: \n\n");
    const again = await bench.ask("GET", "/mcp", { ...keyed, ...session, "last-event-id": "7" });
    assert.equal(again.text, 'id: 8\nretry: 100\ndata: {"jsonrpc":"2.0","id":3,"result":{"content":[]}}\n\n');
    assert.equal(bench.seen.at(-1)?.headers["last-event-id"], "7");
    const twice = await bench.ask("GET", "/mcp", { ...keyed, ...session, "last-event-id": "7" });
    assert.equal(twice.text, again.text, "a repeated answer passes on a stream that is taken up");
    const other = await bench.ask("GET", "/mcp", { ...keyed, ...session });
    assert.equal(other.text, "", "the answer of no open request does not pass");
    assert.equal((await bench.ask("DELETE", "/mcp", { ...keyed, ...session })).status, 204);
  },
  "H14: two sessions are two sessions of the gate": async (t, options) => {
    const bench = await startBench(t, options);
    for (const id of [1, 2]) {
      await bench.post({
        jsonrpc: "2.0",
        id,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {} },
      });
      await bench.call(5, { "mcp-session-id": `s-${id}` });
    }
    const { json } = await ask(bench.desk, "/receipts");
    assert.equal(new Set(json.receipts.map(({ session_id }: { readonly session_id: string }) => session_id)).size, 2);
  },
  "H15: a caller that leaves ends the call at the server": async (t, options) => {
    const bench = await startBench(t, options);
    const outgoing = send({ host: "127.0.0.1", port: bench.port, method: "POST", path: "/mcp", headers: keyed });
    outgoing.on("error", () => undefined);
    outgoing.end(JSON.stringify(callOf(8)));
    await once(outgoing, "response");
    outgoing.destroy();
    await eventually("the end at the server", () => bench.seen.at(-1)?.isAborted === true, options?.patienceMs);
  },
  "H16: a caller that leaves while a person decides has not made the call": async (t, options) => {
    const bench = await startBench(t, options, ["--wait", "20"]);
    const outgoing = send({ host: "127.0.0.1", port: bench.port, method: "POST", path: "/mcp", headers: keyed });
    outgoing.on("error", () => undefined);
    outgoing.end(JSON.stringify(callOf(75, { _meta: { ...meta, progressToken: 1 } })));
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    assert.match(response.headers["content-type"] ?? "", /event-stream/);
    outgoing.destroy();
    await bench.call(5); // The proxy hears of the end of that connection before this call comes back.
    const { json } = await bench.desk.as("anna", "/approvals?state=pending");
    await bench.desk.decides("anna", json.approvals[0].id, "approve");
    await pause(1500); // The call must not run.
    assert.equal(bench.ran().length, 1);
  },
  "H18: an argument in the headers that is not the body's is refused": refusedBy(400, { "mcp-param-amount": "900" }),
  "H19: an answer with another id becomes an error": async (t, options) => {
    const bench = await startBench(t, options);
    const { status, json } = await bench.call(2);
    assert.deepEqual([status, json?.id, json?.error.message], [502, 3, "Svc: the MCP server did not answer."]);
  },
  "H20: a question in place of the list reaches nobody, and the call is blocked": async (t, options) => {
    const bench = await startBench(t, options);
    const { json } = await bench.call(5, { "mcp-protocol-version": "odd" }, { _meta: {} });
    assert.match(json.result.content[0].text, /does not list the tool "pay" now/);
    await pause(200); // No other request must come.
    assert.equal(bench.seen.length, 1, JSON.stringify(bench.seen));
  },
  "H21: an answer that a stream repeats permits one round": async (t, options) => {
    const bench = await startBench(t, options);
    const initialize = {
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {} },
    };
    await bench.post(initialize);
    const session = { "mcp-session-id": "s-1" };
    await bench.call(3, session, { _meta: {} });
    for (const _ of [1, 2]) {
      const { text } = await bench.ask("GET", "/mcp", { ...keyed, ...session, "last-event-id": "9" });
      assert.match(text, /input_required/);
    }
    const more = { _meta: {}, requestState: "s", inputResponses: {} };
    assert.equal((await bench.call(3, session, more)).json.result.content[0].text, "paid 3");
    assert.match((await bench.call(3, session, more)).json.result.content[0].text, /no open call has/);
  },
  "H22: a call is not sent on a connection that was idle, which the server may be closing": async (t, options) => {
    const bench = await startBench(t, options);
    assert.equal((await bench.call(5)).json.result.content[0].text, "paid 5");
    await pause(idleAtServerMs + 500); // The connection must be idle.
    assert.equal((await bench.call(6)).json.result?.content[0].text, "paid 6");
  },
  "H17: a call that a person approves runs, and its progress and result are one stream": async (t, options) => {
    const bench = await startBench(t, options, ["--wait", "20"]);
    const reply = bench.call(75, {}, { _meta: { ...meta, progressToken: 1 } });
    const approval = await eventually("a call that waits", async () => {
      const { json } = await bench.desk.as("anna", "/approvals?state=pending");
      return json.approvals[0]?.id as string | undefined;
    });
    await bench.desk.decides("anna", approval, "approve");
    const { text } = await reply;
    assert.match(text, /waiting for a person to decide[^]*paid 75/);
    assert.equal(bench.ran().length, 1);
  },
};
