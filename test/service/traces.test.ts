/**
 * Goal: a check is a span on its caller's trace with a child for each stage, and a missing collector costs nothing but
 * spans. Method: a collector on this machine decodes the spans of a gate.
 */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { join } from "node:path";
import { once } from "node:events";
import { suite, test, type TestContext } from "node:test";
import { apiKey, runGate, startGate, type GateProcess } from "../support/gate-process.ts";
import { startCollector, type ArrivedSpan } from "../support/otlp-collector.ts";
import { check, temporaryFolder, writeContracts } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const caller = "00f067aa0ba902b7";
const stages = ["parse", "prepare", "queue", "decide", "commit", "answer"];

function paths(t: TestContext): Readonly<Record<string, string>> {
  const folder = temporaryFolder(t);
  return { SVC_MANDATE: writeContracts(folder, {}), SVC_DATA_DIR: join(folder, "data"), SVC_MODE: "enforce" };
}

async function tracedGate(t: TestContext, settings: Readonly<Record<string, string>>): Promise<GateProcess> {
  const gate = await startGate({ settings: { ...paths(t), ...settings } });
  t.after(() => gate.kill());
  return gate;
}

const checked = (gate: GateProcess, body: object | string, headers: Record<string, string> = {}) =>
  check({ address: gate.url }, body, { authorization: `Bearer ${apiKey}`, ...headers });

const isServer = ({ kind }: ArrivedSpan): boolean => kind === 2;

suite("traces", () => {
  test("a check is a span in its caller's trace, with one child span for each stage", async (t) => {
    const collector = await startCollector(t);
    const gate = await tracedGate(t, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: "payments-gate",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    const headers = { traceparent: `00-${trace}-${caller}-01`, tracestate: "vendor=1" };
    await checked(gate, { tool_name: "door.open", tool_input: { secret: "sesame" }, session_id: "run-7" }, headers);
    assert.equal(await gate.stop(), 0);
    const span = await collector.arrived(isServer);
    assert.deepEqual(
      { name: span.name, traceId: span.traceId, parentId: span.parentId, traceState: span.traceState },
      { name: "POST /check", traceId: trace, parentId: caller, traceState: "vendor=1" },
    );
    assert.deepEqual(span.attributes, {
      "http.request.method": "POST",
      "http.route": "/check",
      "url.path": "/check",
      "url.scheme": "http",
      "http.response.status_code": 200,
      "gen_ai.tool.name": "door.open",
      "gen_ai.conversation.id": "run-7",
      "svc_gate.verdict": "BLOCK",
      "svc_gate.answered": "BLOCK",
      "svc_gate.mode": "enforce",
      "svc_gate.rule": "desk.shut",
      "svc_gate.seq": 1,
    });
    assert.equal(span.resource["service.name"], "payments-gate");
    assert.equal(span.resource["deployment.environment.name"], "test");
    const children = collector.spans.filter(({ parentId }) => parentId === span.spanId);
    assert.deepEqual(
      children.map(({ name }) => name),
      stages,
    );
    let from = span.start;
    for (const child of children) {
      assert.equal(child.traceId, trace);
      assert.equal(child.start, from, `${child.name} starts where the one before ended`);
      assert.ok(child.end >= child.start, child.name);
      from = child.end;
    }
    assert.equal(from, span.end);
    assert.equal(collector.spans.length, 1 + stages.length);
    assert.doesNotMatch(
      JSON.stringify(collector.spans, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
      /sesame/,
    );
  });

  test("a refused request without a traceparent starts a trace, and one without a key has no span", async (t) => {
    const collector = await startCollector(t);
    const gate = await tracedGate(t, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` });
    await checked(gate, "{");
    await checked(gate, { tool_name: "note.add", tool_input: {} }, { authorization: "Bearer not-a-key-of-this-gate" });
    assert.equal(await gate.stop(), 0);
    const span = await collector.arrived(isServer);
    assert.match(span.traceId, /^[0-9a-f]{32}$/);
    assert.equal(span.parentId, "");
    assert.equal(span.attributes["error.type"], "invalid-json");
    assert.equal(span.attributes["http.response.status_code"], 400);
    assert.equal(span.status, 0, "a caller's error is not an error of the server");
    assert.equal(collector.spans.length, 1);
  });

  test("the gate sends no span that its caller did not sample", async (t) => {
    const collector = await startCollector(t);
    const gate = await tracedGate(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await checked(gate, { tool_name: "note.add", tool_input: {} }, { traceparent: `00-${trace}-${caller}-00` });
    await checked(gate, { tool_name: "door.open", tool_input: {} }, { traceparent: `00-${trace}-${caller}-01` });
    assert.equal(await gate.stop(), 0);
    await collector.arrived(isServer);
    const tools = collector.spans.filter(isServer).map(({ attributes }) => attributes["gen_ai.tool.name"]);
    assert.deepEqual(tools, ["door.open"]);
  });

  test("the gate obeys OTEL_TRACES_SAMPLER", async (t) => {
    const collector = await startCollector(t);
    const sampler = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" };
    const gate = await tracedGate(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...sampler });
    await checked(gate, { tool_name: "note.add", tool_input: {} });
    assert.equal(await gate.stop(), 0);
    assert.equal(collector.spans.length, 0);
  });

  test("the gate answers checks without a collector, and the log reports the missing collector once", async (t) => {
    const away = await closedPort();
    const settings = { ...paths(t), OTEL_EXPORTER_OTLP_ENDPOINT: away, OTEL_BSP_SCHEDULE_DELAY: "1", SVC_LOG: "warn" };
    const quick = {
      OTEL_EXPORTER_OTLP_TIMEOUT: "50",
      OTEL_BSP_MAX_QUEUE_SIZE: "16",
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "8",
    };
    const gate = await startGate({ settings: { ...settings, ...quick } });
    t.after(() => gate.kill());
    for (let n = 0; n < 40; n += 1) {
      const answer = await checked(gate, { tool_name: "note.add", tool_input: { n } });
      assert.equal(answer.json.verdict, "ALLOW");
    }
    assert.equal(await gate.stop(), 0);
    const told = gate
      .stderr()
      .split("\n")
      .filter((line) => /\bspans\b/.test(line));
    assert.equal(told.length, 1, gate.stderr());
    const { msg } = JSON.parse(told[0] ?? "") as { readonly msg: string };
    says("logged once: the collector takes no spans", msg, { CAUSE: /\(([^)]+)\)/.exec(msg)?.[1] ?? "" });
  });

  test("the gate refuses to start if the packages of OpenTelemetry are missing", async (t) => {
    const gone = `import { registerHooks } from "node:module";
registerHooks({ resolve(name, context, next) {
  if (name !== "@opentelemetry/sdk-trace") return next(name, context);
  throw Object.assign(new Error("gone"), { code: "ERR_MODULE_NOT_FOUND" });
} });`;
    const preload = `--import=data:text/javascript;base64,${Buffer.from(gone).toString("base64")}`;
    const settings = { ...paths(t), OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", NODE_OPTIONS: preload };
    const ended = await runGate(["serve"], { settings });
    assert.ok(ended !== "served");
    says("without the packages", complaint(ended.stderr));
  });

  for (const [what, settings, fact] of [
    ["endpoint", { OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318" }, /"localhost:4318"/],
    ["protocol", { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /OTEL_EXPORTER_OTLP_PROTOCOL\b.*"grpc"/],
    ["sampler", { OTEL_TRACES_SAMPLER: "sometimes" }, /OTEL_TRACES_SAMPLER\b.*"sometimes".*\balways_on\b/],
    ["ratio", { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "1.5" }, /\b0\b.*\b1\b/],
  ] as const) {
    test(`the gate refuses to start with a wrong ${what}`, async (t) => {
      const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
      const ended = await runGate(["serve"], { settings: { ...paths(t), ...endpoint, ...settings } });
      assert.ok(ended !== "served");
      assert.equal(ended.code, 2);
      assert.match(complaint(ended.stderr), fact);
      says(`a wrong ${what}`, complaint(ended.stderr));
    });
  }
});

/** Returns the error line of a gate that does not start. */
function complaint(stderr: string): string {
  return /^svc-gate: .*$/m.exec(stderr)?.[0] ?? stderr;
}

/** Returns an address where nobody listens. */
async function closedPort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}
