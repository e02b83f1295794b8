/**
 * Goal: the official conformance suite says the same with and without the proxy. Method: the suite runs against a server
 * that passes it, first directly, then through the proxy. The suite has no key, so a listener in between adds it.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { ask, atEnd, startGate, temporaryFolder } from "../../support/gate.ts";
import { proxyKey, startListener, suite, suiteServer, throughProxy } from "../../support/mcp/sdk.ts";

const any = "{ input: { type: object, additionalProperties: true }, otherwise: ALLOW }";
const tools =
  "test_simple_text test_image_content test_audio_content test_embedded_resource test_multiple_content_types " +
  "test_tool_with_logging test_tool_with_progress test_error_handling test_sampling test_elicitation " +
  "test_elicitation_sep1034_defaults test_elicitation_sep1330_enums test_reconnection json_schema_2020_12_tool " +
  "mcp.sampling mcp.elicitation mcp.resources.read mcp.prompts.get mcp.completion";
const contract = `contract: suite\ntools:\n${tools
  .split(" ")
  .map((name) => `  suite.${name}: ${any}\n`)
  .join("")}`;

test("the official suite says the same with and without the proxy", async (t) => {
  const server = await startListener(t, [suiteServer]);
  const gate = await startGate(t, { contracts: { "suite.yaml": contract } });
  const proxy = await throughProxy(t, { reach: server, gate: gate.address, name: "suite" });
  assert.ok("address" in proxy);
  const keyed = await startKeyed(t, new URL(proxy.address));
  const [direct, proxied] = [await results(t, server.address), await results(t, keyed)];
  assert.equal(direct.filter((line) => line.endsWith(" SUCCESS")).length, 44);
  assert.ok(!direct.some((line) => line.endsWith(" FAILURE")));
  assert.deepEqual(proxied, direct);
  const { json } = await ask(gate, "/receipts?limit=1000");
  assert.ok(json.receipts.length > 20, `${json.receipts.length} checks`);
});

/** Runs the suite and returns each check with its status. */
async function results(t: TestContext, address: string): Promise<readonly string[]> {
  const folder = temporaryFolder(t);
  const args = [suite, "server", "--url", address, "--suite", "all", "--output-dir", folder];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: "ignore" });
  await once(child, "close");
  return globSync("**/checks.json", { cwd: folder })
    .toSorted()
    .flatMap((path) => {
      const [scenario = ""] =
        path
          .split("/")
          .slice(-2)[0]
          ?.split(/-\d{4}-/) ?? [];
      const checks = JSON.parse(readFileSync(join(folder, path), "utf8")) as readonly {
        readonly id: string;
        readonly status: string;
      }[];
      return checks.map(({ id, status }) => `${scenario}: ${id} ${status}`);
    });
}

/** Listens on another port, and adds the proxy's key to each request. */
async function startKeyed(t: TestContext, target: URL): Promise<string> {
  const listener = createServer((request, response) => {
    const own = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const renamed = (text: string | undefined): string | undefined => text?.replace(own, target.host);
    const { host, origin } = request.headers;
    const headers = { ...request.headers, host: renamed(host), authorization: `Bearer ${proxyKey}` };
    const forwarded = send(target, {
      method: request.method,
      headers: origin === undefined ? headers : { ...headers, origin: renamed(origin) },
    });
    forwarded.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    forwarded.on("error", () => response.destroy());
    response.on("close", () => forwarded.destroy());
    request.pipe(forwarded);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  atEnd(t, () => {
    listener.closeAllConnections();
    listener.close();
  });
  return `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`;
}
