/**
 * Goal: over TLS a client talks only to a gate whose certificate it can verify. Method: a server with a certificate
 * made for this test; each client runs with and without that certificate among its trusted ones.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runtimes } from "../../../clients/conformance/runtimes.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const clients = fileURLToPath(new URL("../../../clients", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "svc-gate-tls-"));
const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost";
const parameters = [
  ...request.split(" "),
  "-addext",
  "subjectAltName=DNS:localhost",
  "-keyout",
  key,
  "-out",
  certificate,
];
const made = spawnSync("openssl", parameters);
const skip = made.status === 0 ? false : "openssl is not installed here";

const scripts = {
  python: [
    "import sys; sys.path.insert(0, sys.argv[1] + '/python')",
    "from svc_gate import SvcGate",
    "gate = SvcGate(sys.argv[2], api_key='k', timeout=20.0)",
    "print([gate.check('a', {}).reason for _ in range(2)][1])",
  ].join("\n"),
  context: [
    "import ssl, sys; sys.path.insert(0, sys.argv[1] + '/python')",
    "from svc_gate import SvcGate",
    "context = ssl.create_default_context(cafile=sys.argv[3] if len(sys.argv) > 3 else None)",
    "print(SvcGate(sys.argv[2], api_key='k', timeout=20.0, ssl_context=context).check('a', {}).reason)",
    "try: SvcGate(sys.argv[2], ssl_context=True)",
    "except TypeError as refused: print(refused)",
  ].join("\n"),
  node: [
    "const { SvcGate } = await import(`file://${process.argv[1]}/javascript/svc-gate.mjs`);",
    "const gate = new SvcGate(process.argv[2], { apiKey: 'k', timeoutMs: 20000 });",
    "await gate.check('a', {});",
    "console.log((await gate.check('a', {})).reason);",
  ].join("\n"),
};

suite("the clients over TLS", { skip }, () => {
  let server: Server;
  let port = 0;
  let requests = 0;
  let connections = 0;

  before(async () => {
    server = createServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (message, response) => {
      requests += 1;
      message.resume().on("end", () => response.end('{"verdict":"ALLOW","reason":"Svc: fine","mode":"enforce"}'));
    });
    server.on("secureConnection", () => (connections += 1));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
  });

  after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const { name, command } of runtimes().found) {
    test(`the client under ${name} verifies the gate's certificate`, { tags: ["auth.key-is-boundary"] }, async () => {
      const program = command[0] ?? "";
      requests = connections = 0;
      const trusting = { SSL_CERT_FILE: certificate, NODE_EXTRA_CA_CERTS: certificate };
      assert.equal(await reasonOf(program, { host: "localhost", env: trusting }), "Svc: fine");
      assert.deepEqual({ requests, connections }, { requests: 2, connections: 1 });
      for (const wrong of [
        { host: "localhost", env: {} },
        { host: "127.0.0.1", env: trusting },
      ]) {
        says(`not-verified-at ${wrong.host}`, await reasonOf(program, wrong));
      }
      assert.equal(requests, 2, "a gate that is not verified was sent something");
    });
  }

  const python = runtimes().found.find(({ name }) => name.startsWith("python"))?.command[0];
  const noPython = python === undefined ? "no Python is installed here" : false;

  test("the Python client trusts the authority of its own SSL context", { skip: noPython }, async () => {
    const url = `https://localhost:${port}`;
    const run = (...authority: readonly string[]): Promise<string> =>
      outputOf(python ?? "", ["-c", scripts.context, clients, url, ...authority]);
    const [trusting = "", refused = ""] = (await run(certificate)).split(/\r?\n/);
    assert.equal(trusting, "Svc: fine");
    says("ssl-context-wrong", refused);
    const [distrusting = ""] = (await run()).split(/\r?\n/);
    says("not-verified-at localhost", distrusting);
  });

  async function reasonOf(program: string, about: { host: string; env: Record<string, string> }): Promise<string> {
    const isPython = /python/.test(program);
    const script = isPython ? ["-c", scripts.python] : ["--input-type=module", "-e", scripts.node];
    const url = `https://${about.host}:${port}`;
    return outputOf(program, [...script, clients, url], about.env);
  }

  async function outputOf(
    program: string,
    words: readonly string[],
    env: Record<string, string> = {},
  ): Promise<string> {
    const child = spawn(program, words, { env: { ...process.env, ...env } });
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.stderr.on("data", (chunk) => (text += chunk));
    await once(child, "close");
    return text.trim();
  }
});
