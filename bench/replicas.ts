import { generateKeyPairSync } from "node:crypto";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { start, type Server } from "./check.ts";
import { send } from "./peers/measure.ts";
import { placeholder, type Load } from "./peers/load.ts";
import { startDatabase, type Database } from "./peers/postgres.ts";
import { atLeast, atMost, conclude, median, printTable, round } from "./report.ts";
import { paymentBody } from "./requests.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const key = "bench-key-bench-key-bench-key";
const rounds = 5;
const seconds = Number(process.env["BENCH_SECONDS"] ?? 3);

interface Round {
  readonly one: readonly Load[];
  readonly two: readonly Load[];
}

/**
 * Compares two gates on one tenant in PostgreSQL with one gate, the same connections spread over them, in turn. The
 * contract counts payments of each wallet, so that every batch reads and updates counters; afterwards the ledger is
 * verified.
 */
export async function benchReplicas(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const database = await startDatabase();
  const gates: Server[] = [];
  try {
    for (const name of ["one", "two"]) gates.push(await startGate(join(folder, name), database));
    const found: Round[] = [];
    for (let transaction = 0; transaction <= rounds; transaction += 1) {
      const one = await loads(gates.slice(0, 1), 64);
      const two = await loads(gates, 32);
      if (transaction > 0) found.push({ one, two }); // the first transaction warms both up
    }
    report(found, await verified(database));
  } finally {
    for (const { child } of gates) child.kill("SIGKILL");
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Gates that share a ledger share the key that signs its heads. */
const signingKey = generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" });

function startGate(folder: string, { url }: Database): Promise<Server> {
  return start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], {
    SVC_MODE: "enforce",
    SVC_API_KEY: key,
    SVC_MANDATE: "contracts/payments.yaml",
    SVC_PORT: "0",
    SVC_DATA_DIR: folder,
    SVC_DATABASE_URL: url,
    SVC_SIGNING_KEY: signingKey,
    SVC_LOG: "warn",
  });
}

/** Wallets with few payments: each payment has its own session, and the budget is never used up. */
const bodies = Array.from({ length: 64 }, (_, at) =>
  paymentBody(at).replace(/"session_id":"[^"]*"/, `"session_id":"${placeholder}"`),
);

function loads(gates: readonly Server[], connections: number): Promise<readonly Load[]> {
  return Promise.all(
    gates.map(({ url }) =>
      send({
        url: `${url}/check`,
        headers: { authorization: `Bearer ${key}` },
        bodies,
        marker: '"receipt":{"seq"',
        connections,
        seconds,
        sessions: 10_000,
        once: false,
      }),
    ),
  );
}

function verified({ url }: Database): Promise<string> {
  return new Promise((resolve) => {
    const walk = spawn(process.execPath, ["bin/svc-gate.mjs", "verify", "--database"], {
      cwd: root,
      env: { ...process.env, SVC_DATABASE_URL: url },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    walk.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    walk.once("exit", () => resolve(said.split("\n")[0] ?? ""));
  });
}

function report(found: readonly Round[], walk: string): void {
  const sum = (all: readonly Load[]): number => all.reduce((total, { perSecond }) => total + perSecond, 0);
  const worst = (all: readonly Load[]): number => Math.max(...all.map(({ p99 }) => p99));
  const failed = found.flatMap(({ one, two }) => [...one, ...two]).reduce((total, load) => total + load.failed, 0);
  console.log(`\n64 connections in all, ${rounds} rounds in turn, medians. After it: ${walk}`);
  printTable([
    ["", "one gate", "two gates"],
    ["answers/s", round(median(found.map(({ one }) => sum(one)))), round(median(found.map(({ two }) => sum(two))))],
    ["p99 ms", round(median(found.map(({ one }) => worst(one)))), round(median(found.map(({ two }) => worst(two))))],
  ]);
  conclude("replicas", {
    two_of_one: atLeast(median(found.map(({ one, two }) => sum(two) / sum(one))), 0.9),
    ledger_verified: atLeast(walk.startsWith("ok:") ? 1 : 0, 1),
    failed: atMost(failed, 0),
  });
}
