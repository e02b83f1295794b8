/**
 * Goal: one key cannot keep the others out, however it uses its connections. Method: raw sockets that never close their
 * own side fill a small gate in every way there is; then another key asks once on each of 20 connections of its own,
 * and the gate never keeps more connections than its setting says. The gate destroys a connection that it refuses.
 * Positive control: each scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { runScenarios, startDesk, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, temporaryFolder } from "../support/gate.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { fill, isOpen, type Line } from "../support/lines.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { eventually } from "../support/patience.ts";

const max = 50;
const call = '{"tool_name":"note.add","tool_input":{}}';
const options = {
  env: { SVC_CONNECTIONS: String(max) },
  contract: `contract: notes
tools:
  note.add: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
  mail.send: { input: { type: object, additionalProperties: true }, otherwise: ESCALATE }
`,
};

/** Keys have no shares. */
const noShares: Mutation = { within: "Shares.pastShare", first: "return [];" };

const portOf = ({ address }: Desk): number => Number(new URL(address).port);

interface Sent {
  readonly key: string;
  readonly headers?: readonly string[];
  readonly body?: string;
}

/** Writes a request whose connection stays open. */
function request(line: string, { key, headers = [], body }: Sent): string {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const all = ["Host: gate", `Authorization: Bearer ${key}`, "Content-Type: application/json", ...length, ...headers];
  return `${line} HTTP/1.1\r\n${all.join("\r\n")}\r\n\r\n${body ?? ""}`;
}

const check = (key: string, body = call): string => request("POST /check", { key, body });

async function keyOf(desk: Desk, body: object): Promise<string> {
  const made = await desk.operates("/admin/keys", body);
  assert.equal(made.status, 201, made.text);
  return made.json.key;
}

/** Keys of an agent's host, of an agent and of a reader. */
async function keysOf(desk: Desk): Promise<Readonly<Record<"agent" | "host" | "reader", string>>> {
  return {
    host: await keyOf(desk, { name: "host", kind: "host" }),
    agent: await keyOf(desk, { name: "agent", scopes: ["check"] }),
    reader: await keyOf(desk, { name: "reader", scopes: ["receipts", "rules"] }),
  };
}

/** Lets another key ask once on each of 20 new connections, which stay open. */
async function asksAnew(t: TestContext, desk: Desk, key: string, way: string): Promise<readonly Line[]> {
  const lines = await fill(t, { port: portOf(desk), count: 20, bytes: check(key) });
  const statuses = await Promise.all(lines.map((line) => line.status()));
  assert.deepEqual([...new Set(statuses)], [200], way);
  return lines;
}

/** Waits until no more connections are open than the setting says. */
async function assertBounded(desk: Desk, lines: readonly Line[], way: string): Promise<void> {
  const until = performance.now() + desk.patienceMs;
  while (lines.filter(isOpen).length > max) {
    assert.ok(performance.now() < until, `${way}: ${lines.filter(isOpen).length} are open`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Waits until each read has a place, or waits for a person. Before that, its connection may be closed for others. */
async function noReadWaits(desk: Desk, scraper: string): Promise<void> {
  const headers = { authorization: `Bearer ${scraper}` };
  const isTrue = async (): Promise<boolean> =>
    /^svc_gate_waiting_reads 0$/m.test((await ask(desk, "/metrics", { headers })).text);
  await eventually("no read waits for a place", isTrue, desk.patienceMs);
}

/** Fills the gate with connections that send these bytes and never end; asserts that another key is answered. */
async function crowds(t: TestContext, desk: Desk, key: string, ways: Readonly<Record<string, string>>): Promise<void> {
  const scraper = await keyOf(desk, { name: "scraper", scopes: ["metrics"] });
  for (const [way, bytes] of Object.entries(ways)) {
    const lines = await fill(t, { port: portOf(desk), count: max + 10, bytes });
    await assertBounded(desk, lines, way);
    await noReadWaits(desk, scraper);
    const all = [...lines, ...(await asksAnew(t, desk, key, way))];
    await assertBounded(desk, all, way);
    for (const { socket } of all) socket.destroy();
  }
}

runScenarios("what the gate refuses, it ends", [
  {
    rule: "a refusal that ends a connection ends it also if the client never ends its side",
    defect: { within: "destroySoon", first: "return;" },
    run: async (desk, t) => {
      const { agent, reader } = await keysOf(desk);
      const tooLong = `X-Long: ${"x".repeat(limits.headerBytesMax)}`;
      const ways = {
        "data that is not HTTP": ["nothing\r\n\r\n", 400],
        "data that is not HTTP after a check": [`${check(agent)}nothing\r\n\r\n`, undefined],
        "a head that is too large": [request("POST /check", { key: agent, headers: [tooLong] }), 431],
        "a head without a key": ["POST /check HTTP/1.1\r\nHost: gate\r\nContent-Length: 9\r\n\r\n", 401],
        "an old head with chunks": ["POST /check HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 401],
        "a key that may not": [request("POST /check", { key: reader, headers: ["Content-Length: 9"] }), 403],
        "a path": [request("POST /nothing", { key: agent, headers: ["Content-Length: 9"] }), 404],
        "a length": [request("POST /check", { key: agent, headers: ["Content-Length: 999999"] }), 413],
        "an encoding": [
          request("POST /check", { key: agent, headers: ["Content-Length: 9", "Content-Encoding: gzip"] }),
          415,
        ],
        "a body that an answer does not wait for": [
          request("GET /rules", { key: reader, headers: ["Content-Length: 9"] }),
          200,
        ],
      } as const;
      for (const [way, [bytes, status]] of Object.entries(ways)) {
        const [line] = await fill(t, { port: portOf(desk), count: 1, bytes });
        assert.equal(await line?.status(), status, way);
        assert.ok(await line?.destroyed(desk.patienceMs), way);
      }
    },
  },
]);

runScenarios("one key holds all connections that it gets, and another key is answered", [
  {
    rule: "requests whose body never ends",
    options,
    defect: noShares,
    run: async (desk, t) => {
      const { agent, host, reader } = await keysOf(desk);
      const open = { headers: ["Content-Length: 2000"] };
      await crowds(t, desk, agent, {
        "a check of a host": request("POST /check", { key: host, ...open }),
        "a hook": request("POST /hooks/codex", { key: host, ...open }),
        chunks: request("POST /check", { key: host, headers: ["Transfer-Encoding: chunked"] }) + "1\r\n{\r\n",
        "a read with a body": request("GET /rules", { key: reader, ...open }),
        "a second request": check(host) + request("POST /check", { key: host, ...open }),
        "a second head": `${check(host)}POST /che`,
      });
    },
  },
  {
    rule: "requests that are refused",
    options,
    defect: noShares,
    run: async (desk, t) => {
      const { agent, host, reader } = await keysOf(desk);
      const ways = {
        "403": request("GET /receipts", { key: host }),
        "403 before the body": request("POST /check", { key: reader, headers: ["Content-Length: 2000"] }),
        "404": request("GET /nothing", { key: host }),
        "404 of an escape": request("GET /%61", { key: host }),
        "405": request("DELETE /check", { key: host }),
        "413": request("POST /check", { key: host, headers: ["Content-Length: 999999"] }),
        "415": request("POST /check", { key: host, headers: ["Content-Encoding: gzip", "Content-Length: 9"] }),
        "400 of a body": check(host, "{"),
        "400 of a head": request("POST /check", { key: host, headers: ["Host: again"] }),
        "401 of a tenant": request("POST /t/acme/check", { key: host, body: call }),
        "a wrong approval": request("GET /approvals/1-0000000000000000?wait=9", { key: host }),
        "an expectation": request("POST /check", { key: host, headers: ["Content-Length: 9", "Expect: 100-continue"] }),
      };
      await crowds(t, desk, agent, ways);
    },
  },
  {
    rule: "idle connections after an answer",
    options,
    defect: noShares,
    run: async (desk, t) => {
      const { agent, host, reader } = await keysOf(desk);
      await crowds(t, desk, agent, { "a check": check(host), "a read": request("GET /rules", { key: reader }) });
    },
  },
  {
    rule: "answers that nobody reads",
    options,
    defect: noShares,
    run: async (desk, t) => {
      const { agent, reader } = await keysOf(desk);
      const text = "x".repeat(200_000);
      const long = check(agent, JSON.stringify({ tool_name: "note.add", tool_input: { text } }));
      const [writer] = await fill(t, { port: portOf(desk), count: 1, bytes: "" });
      for (let n = 0; n < 20; n += 1) assert.equal(await writer?.ask(long), 200);
      const lines = await fill(t, { port: portOf(desk), count: max + 10, bytes: "" });
      for (const { socket } of lines) {
        socket.pause();
        socket.write(request("GET /receipts", { key: reader }));
      }
      const own = await asksAnew(t, desk, agent, "pages");
      for (const { socket } of lines) socket.resume(); // A socket that does not read does not see its end either.
      await assertBounded(desk, [...lines, ...own], "pages");
    },
  },
  {
    rule: "requests that wait for a person, and streams of events",
    options,
    defect: { within: "quarterOf", find: "connections / 4", put: "connections * 4" },
    run: async (desk, t) => {
      const { agent, host, reader } = await keysOf(desk);
      const body = JSON.stringify({ tool_name: "mail.send", tool_input: {}, session_id: "s" });
      const { approval } = await desk.asks(JSON.parse(body), host);
      await crowds(t, desk, agent, {
        waits: request(`GET /approvals/${approval.id}?wait=50`, { key: host }),
        streams: request("GET /events", { key: reader }),
      });
    },
  },
]);

runScenarios("what the gate closes at the limit", [
  {
    rule: "each call that is decided is answered, also if one key asks on more connections than there are",
    options,
    defect: { within: "keep", find: "connection.isClosed", put: "false" },
    run: async (desk, t) => {
      const { agent } = await keysOf(desk);
      const before = await desk.rows();
      let answered = 0;
      const loop = async (): Promise<void> => {
        let line: Line | undefined;
        for (let round = 0; round < 60; round += 1) {
          if (line === undefined || !isOpen(line)) [line] = await fill(t, { port: portOf(desk), count: 1, bytes: "" });
          if ((await line?.ask(check(agent))) === 200) answered += 1;
        }
      };
      await Promise.all(Array.from({ length: max + 10 }, loop));
      assert.ok(answered > max, "positive control: most are answered");
      assert.equal((await desk.rows()) - before, answered);
    },
  },
  {
    rule: "if streams or waits take all their places, a key with less than its share gets one, and nothing is lost",
    options: { ...options, env: { SVC_CONNECTIONS: "16" } },
    defect: { within: "Places.enter", find: "oldest?.leave === undefined", put: "true" },
    run: async (desk, t) => {
      const { agent, host, reader } = await keysOf(desk);
      const other = await keyOf(desk, { name: "other", scopes: ["receipts"] });
      const opens = async (bytes: string): Promise<Line> => {
        const [line] = await fill(t, { port: portOf(desk), count: 1, bytes });
        return line as Line;
      };
      const streams: Line[] = [];
      for (let n = 0; n < 4; n += 1) streams.push(await opens(request("GET /events?after=0", { key: reader })));
      for (const line of streams) assert.equal(await line.status(), 200);
      assert.equal(await (await opens(request("GET /events", { key: reader }))).status(), 503, "it has its share");
      assert.equal(await (await opens(request("GET /events", { key: other }))).status(), 200);
      assert.equal(await streams[0]?.finds(/(\r\n0\r\n\r\n)$/), "\r\n0\r\n\r\n", "its oldest has ended");
      const parked = async (key: string): Promise<string> => {
        const { approval } = await desk.asks({ tool_name: "mail.send", tool_input: {}, session_id: "s" }, key);
        return request(`GET /approvals/${approval.id}?wait=50`, { key });
      };
      const waits: Line[] = [];
      for (let n = 0; n < 4; n += 1) waits.push(await opens(await parked(host)));
      assert.equal(await (await opens(await parked(host))).status(), 503, "it has its share");
      await opens(await parked(agent));
      assert.equal(
        await waits[0]?.finds(/"status":"(\w+)"/),
        "pending",
        "its oldest is answered as if its time were over",
      );
    },
  },
  {
    rule: "a stream whose client has left before it started leaves its place",
    options: { ...options, env: { SVC_CONNECTIONS: "1000" } },
    defect: [
      { within: "findStreamStart", first: "await new Promise((resolve) => setTimeout(resolve, 50));" },
      {
        within: "stream",
        module: "http/events",
        find: "gate.events.follow(from, heartbeatMs, read.signal, replay)",
        put: "gate.events.follow(from, heartbeatMs, read.signal.aborted ? new AbortController().signal : read.signal)",
      },
      // Without these, most of the clients would have left in line.
      { within: "RequestQueue.#hasPlace", first: "return true;" },
      { within: "Turns.start", first: "this.#isFree = true;" },
    ],
    run: async (desk, t) => {
      const { host, reader } = await keysOf(desk);
      await desk.asks({ tool_name: "mail.send", tool_input: {}, session_id: "s" }, host);
      const fromStart = request("GET /events?after=0", { key: reader });
      const [first] = await fill(t, { port: portOf(desk), count: 1, bytes: fromStart });
      const id = await first?.finds(/^id: (\S+)$/m);
      // The gate reads the ledger before it starts a stream after an event.
      const stream = request(`GET /events?after=${id}`, { key: reader });
      for (let n = 0; n < 300; n += 1) {
        const [line] = await fill(t, { port: portOf(desk), count: 1, bytes: stream });
        await new Promise((resolve) => setTimeout(resolve, n % 3));
        line?.socket.resetAndDestroy();
      }
      const until = performance.now() + desk.patienceMs;
      for (;;) {
        const [line] = await fill(t, { port: portOf(desk), count: 1, bytes: stream });
        if ((await line?.status()) === 200) return;
        assert.ok(performance.now() < until, "all places of the key stay taken");
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
  },
]);

/**
 * Lets five keys of a tenant use all connections, then a key of the root ask.
 *
 * @returns how many connections the tenant keeps
 */
async function tenantKeeps(t: TestContext, defects: readonly Mutation[]): Promise<number> {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "tenants.yaml"), "tenants:\n  acme: { mandate: mandate.yaml }\n");
  const env = { ...options.env, SVC_TENANTS: join(folder, "tenants.yaml") };
  const desk = await startDesk(t, { ...options, folder, env, defects });
  const agent = await keyOf(desk, { name: "agent", scopes: ["check"] });
  const lines: Line[] = [];
  for (let at = 0; at < 5; at += 1) {
    const key = await keyOf(desk, { name: `acme-${at}`, scopes: ["check"], tenant: "acme" });
    const bytes = request("POST /t/acme/check", { key, body: call });
    lines.push(...(await fill(t, { port: portOf(desk), count: 12, bytes })));
  }
  const own: Line[] = [];
  for (let n = 0; n < 20; n += 1) {
    const [line] = await fill(t, { port: portOf(desk), count: 1, bytes: "" });
    assert.equal(await line?.ask(check(agent)), 200);
    own.push(line as Line);
  }
  await assertBounded(desk, [...lines, ...own], "a tenant");
  assert.ok(own.every(isOpen), "its one key has less than the root's share");
  return lines.filter(isOpen).length;
}

test("a tenant with many keys has one share, and keeps it", async (t) => {
  const kept = await tenantKeeps(t, []);
  assert.ok(kept >= 23 && kept <= 30, `${kept} connections`);
});

control("positive control: a tenant without a share is noticed", async (t) => {
  await assert.rejects(tenantKeeps(t, [noShares]));
});
