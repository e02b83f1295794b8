/**
 * `npm run schemathesis`: schemathesis generates calls from spec/openapi.json for a new gate, and compares every answer
 * with the document. The arguments go to `schemathesis run`.
 *
 * OPENAPI names another document, SCHEMATHESIS the program. Exit code 0: no finding. 1: findings. 3: it is not
 * installed.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const document = resolve(process.env["OPENAPI"] ?? join(root, "spec", "openapi.json"));
const program = process.env["SCHEMATHESIS"] ?? "schemathesis";
const command = join(root, "bin", "svc-gate.mjs");
const scopes = "check,rules,receipts,outcome,approve,admin,metrics";

const accepted = `positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "422", "429", "5xx"]\n`;
/**
 * Reasons to refuse a request that no schema can state: bytes, visible characters, the gate's names, times, missing rows,
 * contracts that do not compile.
 */
const beyondSchemas = [
  "GET /report",
  "POST /admin/erase",
  "POST /admin/keys",
  "POST /admin/keys/{name}/rotate",
  "POST /admin/stop",
  "POST /admin/stop/lift",
  "POST /explain",
]
  .map((name) => `[[operations]]\ninclude-name = "${name}"\n[operations.checks]\n${accepted}`)
  .join("\n");

const version = spawnSync(program, ["--version"], { encoding: "utf8" });
if (version.status !== 0) {
  console.error("skipped: schemathesis is not installed; `pip install schemathesis`, or name it in SCHEMATHESIS");
  process.exit(3);
}
console.log(version.stdout.trim());

const folder = mkdtempSync(join(tmpdir(), "svc-gate-schemathesis-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const data = join(folder, "data");
writeFileSync(join(folder, "schemathesis.toml"), beyondSchemas);
const named = ["keys", "create", "schemathesis", "--scopes", scopes, "--data-dir", data, "--quiet"];
const { gate, address: url } = await startGate();
const key = execFileSync(process.execPath, [command, ...named], { encoding: "utf8" }).trim();
const options = ["run", document, "--url", url, "--header", `Authorization: Bearer ${key}`];
const strictly = ["--checks", "all", "--mode", "all", "--continue-on-failure", "--no-color"];
const found = spawn(program, [...options, ...strictly, ...process.argv.slice(2)], { cwd: folder, stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => found.kill(signal));
const [status]: (number | null)[] = await once(found, "close");
gate.kill("SIGTERM");
const [stopped]: (number | null)[] = await once(gate, "close");
if (stopped !== 0) console.error(`the gate ended with ${stopped}`);
process.exit(status === 0 && stopped === 0 ? 0 : 1);

/** Starts the gate of the worked example on a free port, with an empty ledger. */
async function startGate(): Promise<{ readonly gate: ReturnType<typeof spawn>; readonly address: string }> {
  const settings = { SVC_PORT: "0", SVC_DATA_DIR: data, SVC_LOG: "error" };
  const started = spawn(process.execPath, [command, "serve"], {
    cwd: root,
    env: { ...process.env, ...settings, SVC_MODE: "enforce" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  const listening = new Promise<string>((resolveAddress, reject) => {
    started.stdout.on("data", (piece) => {
      printed += String(piece);
      const [, address] = /svc-gate listens on (\S+)/.exec(printed) ?? [];
      if (address !== undefined) resolveAddress(address);
    });
    started.on("close", () => reject(new Error(`the gate did not start:\n${printed}`)));
  });
  return { gate: started, address: await listening };
}
