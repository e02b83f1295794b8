/**
 * Goal: with the configuration of docs/hosts/envoy.md, an MCP server gets only what the gate allowed. Method: the real
 * Envoy, with the configuration that the test reads from the page, a witness behind it, and a real gate or a broken one.
 * Positive control: with `failure_mode_allow: true` a call runs without a verdict, and the witness sees it.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { startBadGate } from "../../../adapters/conformance/bad-gate.ts";
import { limits } from "../../../packages/core/src/wire/mod.ts";
import { startDesk, type Desk } from "../../support/approvals.ts";
import { documentedConfig, missingEnvoy, startEnvoy, type EnvoyBench, type EnvoyReply } from "../../support/envoy.ts";
import { ask, atEnd, key } from "../../support/gate.ts";
import { bank } from "../../support/mcp/proxy.ts";
import { connect, sdkServer, startListener, type Generation } from "../../support/mcp/sdk.ts";

const paying = (amount: number, more: object = {}): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 7,
    method: "tools/call",
    params: { name: "pay", arguments: { amount } },
    ...more,
  });

/** The text that the model reads. */
const reasonOf = ({ status, text }: EnvoyReply): string => {
  const { id, result } = JSON.parse(text);
  assert.deepEqual([status, id, result.isError], [200, 7, true], text);
  return result.content[0].text;
};

const rowsOf = async ({ address }: Desk): Promise<readonly any[]> =>
  (await ask({ address }, "/receipts?limit=1000")).json.receipts;

/** Runs a test if Envoy is installed. */
function envoyTest(title: string, run: (t: TestContext) => Promise<void>): void {
  test(title, async (t) => {
    const missing = missingEnvoy();
    if (missing !== undefined) return t.skip(missing);
    await run(t);
    return undefined;
  });
}

async function startBench(t: TestContext, mode = "enforce"): Promise<{ desk: Desk; envoy: EnvoyBench }> {
  const desk = await startDesk(t, { contract: bank, mode });
  return { desk, envoy: await startEnvoy(t, { gate: desk.address }) };
}

type Hostile = readonly [
  what: string,
  body: string | Buffer,
  headers?: Readonly<Record<string, string | readonly string[]>>,
];

/** Messages with a call that the gate would allow, in a form that it cannot judge. */
const hostile: readonly Hostile[] = [
  ["a batch", `[${paying(5)}]`],
  ["a repeated member", paying(5).replace('"name"', '"name":"nothing","name"')],
  ["a member in other letters", paying(5).replace('"method"', '"Method":"ping","method"')],
  ["a notification that is a call", paying(5, { id: undefined })],
  ["an answer to the server", '{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}'],
  ["a method that is not listed", paying(5).replace("tools/call", "tools/call2")],
  ["a continued call", paying(5).replace('"name"', '"inputResponses":{},"name"')],
  ["a byte order mark", `\uFEFF${paying(5)}`],
  ["a byte that is not UTF-8", Buffer.from(paying(5).replace("pay", "pa\u00FF"), "latin1")],
  ["a number that programs read differently", paying(9007199254740992).replace("992", "993")],
  ["no body", ""],
  ["Mcp-Method that differs", paying(5), { "mcp-method": "tools/list" }],
  ["Mcp-Name that differs", paying(5), { "mcp-name": "nothing" }],
  ["Mcp-Name twice", paying(5), { "mcp-name": ["pay", "nothing"] }],
  ["an encoded body", paying(5), { "content-encoding": "br" }],
  ["another charset", paying(5), { "content-type": "application/json; charset=utf-16le" }],
  ["another type", paying(5), { "content-type": "text/plain" }],
  [
    "an upgrade to HTTP/2",
    paying(900),
    { connection: "upgrade, http2-settings", upgrade: "h2c", "http2-settings": "" },
  ],
  ["an upgrade to WebSocket", paying(900), { connection: "upgrade", upgrade: "websocket" }],
];

/** Envoy sends some of these on as /mcp. Each must be judged. */
const paths = [
  "//mcp",
  "/./mcp",
  "/other/../mcp",
  "/mcp/../mcp",
  "/%6dcp",
  "/mcp?x=1",
  "/mcp?/../other",
  "/mcp#x",
  "/mcp/",
  "/MCP",
  "/mcp;x",
  "/mcp/../../check",
  "/mcp%2f..%2fother",
  "/mcp%5c..",
  "/mcp%00",
  "/..%2fmcp",
  "/mcp/x",
  "/other",
  "/hooks/envoy/bank",
  "http://other.example/mcp",
];

suite("Envoy before an MCP server, with the documented configuration", { concurrency: 2 }, () => {
  envoyTest(
    "the server gets an allowed call as it was sent, and the model reads why another was refused",
    async (t) => {
      const { desk, envoy } = await startBench(t);
      const passed = await envoy.ask(paying(5));
      assert.match(passed.text, /"paid"/);
      assert.deepEqual(
        envoy.arrived.map(({ body }) => body),
        [paying(5)],
      );
      assert.equal(reasonOf(await envoy.ask(paying(900))), "Svc: 900 is too much");
      const parked = await envoy.ask(paying(75));
      assert.match(reasonOf(parked), /^Svc: 75 is a lot; a person decides/);
      assert.match(reasonOf(await envoy.ask(paying(5).replace('"pay"', '"steal"'))), /unknown tool/);
      assert.equal(envoy.arrived.length, 1);
      await desk.decides("anna", String(parked.headers["svc-approval"]), "approve");
      assert.match((await envoy.ask(paying(75))).text, /"paid"/);
      assert.match(reasonOf(await envoy.ask(paying(75))), /a person decides/, "an approval is for one call");
      assert.equal(envoy.arrived.length, 2);
      const names = new Set((await rowsOf(desk)).map(({ tool_name }) => tool_name));
      assert.ok(names.has("bank.steal"));
    },
  );

  envoyTest("a message that the gate cannot judge does not reach the server", async (t) => {
    const { envoy } = await startBench(t);
    for (const [what, body, headers = {}] of hostile) {
      const { status, text } = await envoy.ask(body, { headers });
      assert.deepEqual(envoy.arrived, [], what);
      assert.doesNotMatch(text, /paid/, what);
      if (status === 200) assert.match(text, /"Svc: /, what);
    }
    for (const method of ["initialize", "tools/list", "notifications/initialized"])
      await envoy.ask(JSON.stringify({ jsonrpc: "2.0", method, ...(!method.startsWith("n") && { id: 1 }) }));
    assert.equal(envoy.arrived.length, 3);
  });

  envoyTest("a body over the gate's limit is refused, and Envoy's limit is the gate's", async (t) => {
    assert.ok(documentedConfig().includes(`max_request_bytes: ${limits.bodyBytesMax},`));
    const { envoy } = await startBench(t);
    const fill = (bytes: number): string => paying(5, { id: "x".repeat(bytes) });
    for (const headers of [{}, { "transfer-encoding": "chunked" }]) {
      const { status } = await envoy.ask(fill(limits.bodyBytesMax), { headers });
      assert.equal(status, 413);
    }
    assert.equal(envoy.arrived.length, 0);
    assert.match((await envoy.ask(fill(limits.bodyBytesMax - 1000))).text, /paid/);
  });

  envoyTest("GET, DELETE and other methods do not reach the server", async (t) => {
    const { envoy } = await startBench(t);
    for (const method of ["GET", "DELETE", "PUT", "OPTIONS", "PATCH"]) {
      const { status } = await envoy.ask(undefined, { method, headers: { accept: "text/event-stream" } });
      assert.equal(status, 405, method);
    }
    assert.equal((await envoy.ask(paying(5), { method: "PUT" })).status, 405);
    assert.deepEqual(envoy.arrived, []);
  });

  envoyTest("no spelling of the path leads around the gate, or to another route of it", async (t) => {
    const { desk, envoy } = await startBench(t);
    for (const path of paths) await envoy.ask(paying(900), { path });
    assert.deepEqual(envoy.arrived, []);
    const before = (await rowsOf(desk)).length;
    for (const path of paths) await envoy.ask(paying(5), { path });
    const rows = (await rowsOf(desk)).slice(0, -before);
    assert.ok(envoy.arrived.length > 0);
    assert.equal(rows.length, envoy.arrived.length);
    assert.ok(rows.every(({ tool_name }) => tool_name === "bank.pay"));
    assert.ok(envoy.arrived.every(({ path }) => /^\/mcp(?:\?|$)/.test(path)));
  });

  envoyTest("a client's own headers do not change the verdict, and the gate's key stays at Envoy", async (t) => {
    const { envoy } = await startBench(t);
    const headers = {
      authorization: "Bearer of-the-client",
      "x-envoy-auth-partial-body": "false",
      "x-envoy-original-path": "/hooks/envoy/other",
      "x-envoy-internal": "true",
      "x-envoy-upstream-rq-timeout-ms": "1",
      "x-envoy-external-address": "127.0.0.1",
      "x-forwarded-for": "127.0.0.1",
      "x-http-method-override": "GET",
      "svc-approval": "apr_1_0",
      host: "gate.example",
    };
    assert.equal(reasonOf(await envoy.ask(paying(900), { headers })), "Svc: 900 is too much");
    assert.match((await envoy.ask(paying(5), { headers })).text, /paid/);
    const [arrived, ...others] = envoy.arrived;
    assert.deepEqual(others, []);
    assert.equal(arrived?.headers.authorization, "Bearer of-the-client", "the server's own token passes");
    assert.ok(!JSON.stringify(arrived).includes(key));
  });

  for (const kind of ["closed", "hangs", "status-500"] as const)
    envoyTest(`a gate that gives no verdict (${kind}) lets nothing through`, async (t) => {
      const gate = await startBadGate(kind);
      atEnd(t, gate.stop);
      const envoy = await startEnvoy(t, { gate: gate.url });
      for (const body of [paying(5), '{"jsonrpc":"2.0","id":1,"method":"ping"}']) {
        const { status, text } = await envoy.ask(body);
        assert.deepEqual([status, text], [503, "Svc: the gate gave no verdict, so the message was not sent on.\n"]);
      }
      assert.deepEqual(envoy.arrived, []);
    });

  envoyTest(
    "the client does not read what the gate says to Envoy: a wrong key, and a wrong name of the server",
    async (t) => {
      const desk = await startDesk(t, { contract: bank });
      const gate = desk.address;
      for (const options of [
        { gate, key: "a-key-of-nobody-at-all" },
        { gate, key: "" },
        { gate, change: ["path_override: /hooks/envoy/bank", "path_override: /hooks/envoy/a.b"] as const },
        { gate, change: ["path_override: /hooks/envoy/bank", "path_prefix: /hooks/envoy/bank"] as const },
        { gate, change: ["path_override: /hooks/envoy/bank", "path_override: /check"] as const },
      ]) {
        const envoy = await startEnvoy(t, options);
        const { status, text } = await envoy.ask(paying(5));
        assert.deepEqual([status, text], [503, "Svc: the gate gave no verdict, so the message was not sent on.\n"]);
        assert.deepEqual(envoy.arrived, []);
      }
    },
  );

  envoyTest("without the whole body the gate refuses each message", async (t) => {
    const desk = await startDesk(t, { contract: bank });
    const whole = "with_request_body: { max_request_bytes: 262144, allow_partial_message: false }";
    for (const other of ["", "with_request_body: { max_request_bytes: 20, allow_partial_message: true }"]) {
      const envoy = await startEnvoy(t, { gate: desk.address, change: [whole, other] });
      assert.match((await envoy.ask(paying(5))).text, /Svc: Envoy did not send the whole body/);
      assert.deepEqual(envoy.arrived, []);
    }
  });

  envoyTest("while the gate observes, every message passes, and the receipts have the verdicts", async (t) => {
    const { desk, envoy } = await startBench(t, "observe");
    for (const body of [paying(900), `[${paying(5)}]`]) assert.match((await envoy.ask(body)).text, /paid/);
    assert.equal(envoy.arrived.length, 2);
    const [batch, call] = await rowsOf(desk);
    assert.deepEqual([batch.tool_name, call.tool_name], ["bank.mcp.refused", "bank.pay"]);
    assert.deepEqual([batch.verdict, call.verdict], ["BLOCK", "BLOCK"]);
  });

  envoyTest("positive control: with failure_mode_allow, a call runs although the gate is down", async (t) => {
    const gate = await startBadGate("closed");
    atEnd(t, gate.stop);
    const change = ["failure_mode_allow: false", "failure_mode_allow: true"] as const;
    const envoy = await startEnvoy(t, { gate: gate.url, change });
    assert.match((await envoy.ask(paying(900))).text, /paid/);
    for (const [, body, headers = {}] of hostile) await envoy.ask(body, { headers });
    for (const path of paths) await envoy.ask(paying(900), { path });
    assert.ok(envoy.arrived.length > 20, `only ${envoy.arrived.length} requests could reach the server`);
  });

  envoyTest("positive control: Envoy believes each 200, so the gate's address must be the gate's", async (t) => {
    const gate = await startBadGate("junk");
    atEnd(t, gate.stop);
    const envoy = await startEnvoy(t, { gate: gate.url });
    assert.match((await envoy.ask(paying(900))).text, /paid/);
  });

  for (const generation of ["v1", "v2 legacy", "v2 auto"] as const) envoyTest(...official(generation));
});

/** Clients of the official SDK list tools, call one, and read a refusal as a result. */
function official(generation: Generation): [title: string, run: (t: TestContext) => Promise<void>] {
  return [
    `the official SDK (${generation}) calls tools through Envoy, and its refused call is a result`,
    async (t) => {
      const number = "{ type: object, additionalProperties: true, properties: { a: { type: number } } }";
      const contract = `contract: sums
tools: { bank.add: { input: ${number}, otherwise: ALLOW } }
rules: [{ rule: large, on: bank.add, when: has(input.a) && input.a > 100, verdict: BLOCK, reason: "{input.a} is too much" }]
`;
      const desk = await startDesk(t, { contract });
      const { address: server } = await startListener(t, [sdkServer, "http"]);
      const envoy = await startEnvoy(t, { gate: desk.address, server });
      const { client } = await connect(t, generation, { address: envoy.address });
      const names = (await client.listTools()).tools.map(({ name }: any) => name);
      assert.ok(names.includes("add"));
      const add = (a: number): Promise<any> => client.callTool({ name: "add", arguments: { a, b: 2 } });
      assert.equal((await add(1)).content[0].text, "3");
      const refused = await add(900);
      assert.deepEqual([refused.isError, refused.content[0].text], [true, "Svc: 900 is too much"]);
      assert.equal((await add(2)).content[0].text, "4", "the run goes on");
      await assert.rejects(client.readResource({ uri: "file:///open" }), /bank\.mcp\.resources\.read/);
    },
  ];
}
