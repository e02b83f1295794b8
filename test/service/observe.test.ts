/**
 * Goal: a gate can be monitored. Metrics and readiness need a key on the main port and none on the second listener; log
 * lines name their request; a gate without telemetry loads no telemetry packages. Method: gates get requests, and a
 * hook in the process records the modules that it loads.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { Server } from "node:net";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { readExposition, type Family } from "../support/exposition.ts";
import { readOperatorFile } from "../../packages/gate/src/server/start/operator-file.ts";
import { apiKey, spawnGate, startGate as startProcess } from "../support/gate-process.ts";
import { startCollector } from "../support/otlp-collector.ts";
import { ask, check, exchange, startGate, temporaryFolder, writeContracts, type Running } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

async function metricsOf({ ops }: Pick<Running, "ops">): Promise<ReadonlyMap<string, Family>> {
  return readExposition(await (await fetch(`${ops}/metrics`)).text());
}

function valueOf(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ""));
  return family?.samples.find(
    (sample) => sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
  )?.value;
}

/** Makes a monitoring system's key: it may read metrics and nothing else. */
async function metricsKey({ folder, address }: Pick<Running, "folder" | "address">): Promise<Record<string, string>> {
  const operator = await readOperatorFile(join(folder, "data"));
  const headers = { authorization: `Bearer ${operator?.key}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: "prometheus", scopes: ["metrics"] });
  const made = await ask({ address }, "/admin/keys", { method: "POST", headers, body });
  return { authorization: `Bearer ${made.json.key}` };
}

suite("GET /metrics and GET /ready", () => {
  test("GET /metrics and GET /ready need a key on the main port only", async (t) => {
    const gate = await startGate(t, { flags: { "ops-port": "0" } });
    const headers = await metricsKey(gate);
    for (const path of ["/metrics", "/ready"]) {
      assert.equal((await ask(gate, path, { headers: { authorization: "" } })).status, 401, path);
      assert.equal((await ask(gate, path)).status, 403, `${path}: the key is for checks`);
      assert.equal((await ask(gate, path, { headers })).status, 200, path);
      assert.equal((await fetch(gate.ops + path)).status, 200, path);
    }
    assert.deepEqual((await ask(gate, "/ready", { headers })).json, { status: "ready" });
    const metrics = await ask(gate, "/metrics", { headers });
    assert.equal(metrics.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert.equal((await ask(gate, "/receipts", { headers })).status, 403, "and the other is for metrics");
  });

  test("the second listener serves only operational routes and is off unless a port is set", async (t) => {
    const gate = await startGate(t, { flags: { "ops-port": "0" } });
    assert.match(gate.ops ?? "", /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal((await fetch(`${gate.ops}/health`)).status, 200);
    for (const path of [
      "/",
      "/check",
      "/rules",
      "/receipts",
      "/receipts/1",
      "/ledger/verify",
      "/admin/reload",
      "/metrics/x",
    ]) {
      for (const method of ["GET", "POST"]) {
        const headers = { authorization: "Bearer a-key-that-only-this-test-knows" };
        assert.equal((await fetch(gate.ops + path, { method, headers })).status, 404, `${method} ${path}`);
      }
    }
    assert.equal((await startGate(t)).ops, undefined);
  });

  test(
    "on a loopback address, the second listener refuses every Host header that a web page can send",
    { tags: ["attack-14"] },
    async (t) => {
      const gate = await startGate(t, { flags: { "ops-port": "0" } });
      const port = Number(new URL(gate.ops ?? "").port);
      const statusFor = async (host: string, path = "/metrics"): Promise<number> => {
        const text = await exchange(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
        return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
      };
      const own = ["localhost", "LocalHost:1", "127.0.0.1", `127.0.0.1:${port}`, "127.9.9.9", "[::1]", `[::1]:${port}`];
      for (const host of own) assert.equal(await statusFor(host), 200, host);
      const others = [
        "evil.example",
        `evil.example:${port}`,
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example/localhost",
        "localhost@evil.example",
        "127.0.0.evil.example",
        "10.0.0.1",
        "",
      ];
      for (const host of others) {
        for (const path of ["/metrics", "/ready", "/health", "/nothing"])
          assert.equal(await statusFor(host, path), 421, host);
      }
      const old = await exchange(port, "GET /metrics HTTP/1.0\r\n\r\n");
      assert.match(old, /^HTTP\/1\.1 200 /, "a scraper of HTTP/1.0 may send no Host");
      t.mock.method(Server.prototype, "address", () => ({ address: "0.0.0.0", family: "IPv4", port }));
      assert.equal(
        await statusFor("evil.example"),
        200,
        "positive control: a listener for every address takes any Host",
      );
    },
  );

  test("no tenant has the routes /metrics and /ready", async (t) => {
    const folder = temporaryFolder(t);
    const tenants = join(folder, "tenants.yaml");
    writeFileSync(tenants, `tenants: { acme: { mandate: ${writeContracts(folder, {})} } }\n`);
    const gate = await startGate(t, { folder, flags: { tenants } });
    const headers = await metricsKey(gate);
    for (const path of ["/t/acme/metrics", "/t/acme/ready", "/t/nobody/metrics"])
      assert.equal((await ask(gate, path, { headers })).status, 404, path);
  });

  test("the gate refuses to start if SVC_OPS_PORT is in use", async (t) => {
    const gate = await startGate(t, { flags: { "ops-port": "0" } });
    const flags = { "ops-port": new URL(gate.ops ?? "").port };
    await assert.rejects(startGate(t, { flags }), (error) => {
      assert.ok(error instanceof Error);
      says("SVC_OPS_PORT is in use", error.message, { PORT: flags["ops-port"] });
      return true;
    });
  });

  test("the metrics count the checks and refusals that happened", async (t) => {
    const gate = await startGate(t, { flags: { "ops-port": "0" } });
    await check(gate, { tool_name: "note.add", tool_input: {} });
    await check(gate, { tool_name: "door.open", tool_input: {} });
    for (const made of ["up.1", "up.2", "up.3"]) await check(gate, { tool_name: made, tool_input: {} });
    await check(gate, "{");
    await ask(gate, "/rules", { headers: { authorization: "Bearer not-a-key-of-this-gate" } });
    const families = await metricsOf(gate);
    const checks = (tool: string, verdict: string): number | undefined =>
      valueOf(families, "svc_gate_checks_total", { tool, verdict, mode: "enforce" });
    assert.deepEqual([checks("note.add", "ALLOW"), checks("door.open", "BLOCK"), checks("other", "BLOCK")], [1, 1, 3]);
    assert.equal(valueOf(families, "svc_gate_answers_total", { verdict: "BLOCK", mode: "enforce" }), 4);
    assert.equal(valueOf(families, "svc_gate_refusals_total", { code: "invalid-json" }), 1);
    assert.equal(valueOf(families, "svc_gate_refusals_total", { code: "unauthorized" }), 1);
    assert.equal(valueOf(families, "svc_gate_check_seconds_count"), 5);
    assert.equal(valueOf(families, "svc_gate_stage_seconds_count", { stage: "commit" }), 5);
    assert.equal(valueOf(families, "svc_gate_batch_calls_sum"), 5);
    assert.equal(valueOf(families, "svc_gate_ledger_rows"), gate.ledger.head.seq);
    assert.equal(valueOf(families, "svc_gate_queue_calls"), 0);
    const contract = gate.gate.policy.contract;
    assert.equal(valueOf(families, "svc_gate_contract_info", { contract, mode: "enforce" }), 1);
    const stages = families.get("svc_gate_stage_seconds")?.samples.filter(({ name }) => name.endsWith("_sum")) ?? [];
    assert.ok(stages.every(({ value }) => value >= 0) && stages.length === 6, "no stage ends before it starts");
  });

  test("a stopping gate reports that it is not ready before it stops listening", async (t) => {
    const gate = await startGate(t, { flags: { "ops-port": "0" } });
    const headers = await metricsKey(gate);
    await gate.gate.drain();
    const ready = await ask(gate, "/ready", { headers });
    assert.equal(ready.status, 503);
    assert.deepEqual(ready.json, { status: "not-ready", reason: "the gate is stopping" });
    assert.equal((await fetch(`${gate.ops}/ready`)).status, 503);
    assert.equal(valueOf(await metricsOf(gate), "svc_gate_ready"), 0);
    await gate.stop();
    await assert.rejects(fetch(`${gate.ops}/ready`), "and then it listens no more");
  });
});

/** Starts a gate in its own process, with its log. */
async function loggingGate(t: TestContext, settings: Readonly<Record<string, string>>) {
  const folder = temporaryFolder(t);
  const mandate = writeContracts(folder, {});
  const paths = { SVC_MANDATE: mandate, SVC_DATA_DIR: join(folder, "data") };
  const child = spawnGate(["serve"], { settings: { ...paths, ...settings } });
  t.after(() => child.kill("SIGKILL"));
  let stderr = "";
  child.stderr?.on("data", (piece: Buffer) => (stderr += piece.toString()));
  const ended = once(child, "close");
  let stdout = "";
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout?.on("data", (piece: Buffer) => {
      stdout += piece.toString();
      const [, url] = /listens on (\S+)\n/.exec(stdout) ?? [];
      if (url !== undefined) resolve(url);
    });
    child.once("close", () => reject(new Error(stderr)));
  });
  return {
    folder,
    address,
    /** Ends the gate and returns the lines of its log. */
    lines: async (): Promise<readonly Readonly<Record<string, unknown>>[]> => {
      child.kill("SIGTERM");
      await ended;
      return stderr
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const bearer = { authorization: `Bearer ${apiKey}` };

suite("the log of the gate", () => {
  test("at level info, the log names the request, key and trace of refused requests only", async (t) => {
    const gate = await loggingGate(t, { SVC_LOG: "info" });
    const sent = { ...bearer, "x-request-id": "mine-1", traceparent };
    const refused = await check(gate, "{", sent);
    assert.equal(refused.headers.get("x-request-id"), "mine-1");
    const answered = await check(gate, { tool_name: "note.add", tool_input: {} }, bearer);
    assert.match(answered.headers.get("x-request-id") ?? "", /^[\w-]{12}-[0-9a-z]+$/);
    const stranger = await ask(gate, "/rules", { headers: { authorization: "", "x-request-id": "mine 2" } });
    const lines = (await gate.lines()).filter(({ msg }) => msg === "refused");
    assert.equal(lines.length, 2);
    const [one, two] = lines;
    const { request, key, trace, code, status } = one ?? {};
    assert.deepEqual(
      { request, key, trace, code, status },
      { request: "mine-1", key: "default", trace: traceparent.slice(3, 35), code: "invalid-json", status: 400 },
    );
    assert.equal(two?.["code"], "unauthorized");
    assert.equal(two?.["request"], stranger.headers.get("x-request-id"));
    assert.notEqual(two?.["request"], "mine 2");
    assert.ok(!("key" in (two ?? {})));
  });

  test("at level debug, the log has a line with the receipt of each answered check", async (t) => {
    const gate = await loggingGate(t, { SVC_LOG: "debug" });
    await check(gate, { tool_name: "note.add", tool_input: {} }, { ...bearer, "x-request-id": "mine-3" });
    const line = (await gate.lines()).find(({ msg }) => msg === "answered");
    assert.deepEqual([line?.["request"], line?.["verdict"], line?.["seq"]], ["mine-3", "ALLOW", 1]);
  });
});

/** Records the modules that the process loads in a file that the environment names. */
const recorder = `import { registerHooks } from "node:module";
import { appendFileSync } from "node:fs";
registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + "\\n"); return next(url, context); } });`;

async function loadedBy(t: TestContext, settings: Readonly<Record<string, string>>): Promise<string> {
  const folder = temporaryFolder(t);
  const file = join(folder, "loaded");
  const gate = await startProcess({
    settings: {
      SVC_MANDATE: writeContracts(folder, {}),
      SVC_DATA_DIR: join(folder, "data"),
      NODE_OPTIONS: `--import=data:text/javascript;base64,${Buffer.from(recorder).toString("base64")}`,
      LOADED: file,
      ...settings,
    },
  });
  try {
    const answer = await check({ address: gate.url }, { tool_name: "note.add", tool_input: {} }, bearer);
    assert.equal(answer.status, 200);
  } finally {
    await gate.stop();
  }
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

suite("the telemetry packages that a gate loads", () => {
  test("a gate without telemetry loads neither OpenTelemetry nor prom-client", async (t) => {
    const loaded = await loadedBy(t, {});
    assert.match(loaded, /src\/server\/telemetry\/traces\.ts/, "the hook sees what is loaded");
    assert.doesNotMatch(loaded, /@opentelemetry|prom-client/);
  });

  test("a gate whose traces are turned off does not load OpenTelemetry", async (t) => {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
    assert.doesNotMatch(await loadedBy(t, { ...endpoint, OTEL_SDK_DISABLED: "true" }), /@opentelemetry/);
    assert.doesNotMatch(await loadedBy(t, { ...endpoint, OTEL_TRACES_EXPORTER: "none" }), /@opentelemetry/);
  });

  test("a gate with an OTLP endpoint loads the OpenTelemetry SDK", async (t) => {
    const collector = await startCollector(t);
    const loaded = await loadedBy(t, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    assert.match(loaded, /@opentelemetry\/sdk-trace/);
  });
});
