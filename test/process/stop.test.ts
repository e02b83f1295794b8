/**
 * Goal: a stopping gate answers and records the waiting calls, and a gate with a fault answers nothing more. Method:
 * processes with signals; modules loaded before the gate delay the ledger or break it.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { command } from "../support/command.ts";
import {
  ask,
  check,
  exchange,
  key,
  requestText,
  spawnGate,
  temporaryFolder,
  writeContracts,
  type Spawned,
} from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const call = '{"tool_name":"note.add","tool_input":{}}';

/**
 * Starts a gate whose ledger runs `text` before each batch (`n` is the batch's number), and `first` at its start. The
 * transactions of the start, before any call, pass.
 */
async function gateWith(t: TestContext, text: string, first = ""): Promise<Spawned & { readonly folder: string }> {
  const folder = temporaryFolder(t);
  const ledger = new URL("../../packages/gate/src/ledger/mod.ts", import.meta.url).href;
  const sequencer = new URL("../../packages/gate/src/server/core/sequencer.ts", import.meta.url).href;
  const module = join(folder, "preload.mjs");
  writeFileSync(
    module,
    `import { Ledger } from ${JSON.stringify(ledger)};
import { Sequencer } from ${JSON.stringify(sequencer)};
import { Worker } from "node:worker_threads";
const post = Worker.prototype.postMessage;
const workers = new Set();
Worker.prototype.postMessage = function (...args) { workers.add(this); return post.apply(this, args); };
const start = Ledger.prototype.begin;
let n = 0;
let isAsked = false;
const ask = Sequencer.prototype.submit;
Sequencer.prototype.submit = function (...args) { isAsked = true; return ask.apply(this, args); };
${first}
Ledger.prototype.begin = async function () { if (isAsked) { n += 1; ${text} } return start.call(this); };
`,
  );
  const args = ["--mandate", writeContracts(folder, {}), "--data-dir", join(folder, "data"), "--mode", "enforce"];
  const gate = await spawnGate(t, args, { env: { SVC_API_KEY: key }, preload: [pathToFileURL(module).href] });
  return { ...gate, folder };
}

/** Returns code that delays the first batch until SIGUSR2, and logs every call and the signal to stop. */
function delayed(signal: string): readonly [text: string, first: string] {
  const first = `const released = new Promise((resolve) => process.once("SIGUSR2", resolve));
const submit = Sequencer.prototype.submit;
Sequencer.prototype.submit = function (...args) { process.stderr.write("asked\\n"); return submit.apply(this, args); };
process.once("${signal}", () => setImmediate(() => process.stderr.write("told\\n")));`;
  return ["if (n === 1) await released;", first];
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 20));
}

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`after ${signal} the gate answers and records waiting checks, refuses others and exits with 0`, async (t) => {
    const gate = await gateWith(t, ...delayed(signal));
    const head = ["Content-Type: application/json", `Content-Length: ${call.length}`];
    const neverWhole = exchange(gate.port, requestText("POST /check HTTP/1.1", head, call.slice(0, 9)));
    const waiting = Array.from({ length: 20 }, () => check(gate, call));
    await until(() => gate.stderr().split("asked\n").length > 20);
    gate.kill(signal);
    await until(() => gate.stderr().includes("told\n"));
    const after = await exchange(gate.port, requestText("POST /check HTTP/1.1", head, call));
    assert.match(after, /^HTTP\/1\.1 503 [\s\S]*"code":"stopping"/);
    gate.kill("SIGUSR2");
    const answers = await Promise.all(waiting);
    const verdicts = answers.map(({ json }) => json.verdict);
    assert.deepEqual(
      verdicts,
      Array.from({ length: 20 }, () => "ALLOW"),
    );
    assert.equal(await gate.exit, 0, gate.stderr());
    await neverWhole;
    says("stopped", gate.stdout().trimEnd().split("\n").at(-1) ?? "");
    const walk = await command(["verify", join(gate.folder, "data"), "--json"]);
    assert.deepEqual([walk.code, JSON.parse(walk.stdout).rows], [0, 20]);
  });
}

test("a client that does not read its answer does not keep the gate from stopping", async (t) => {
  const gate = await gateWith(t, "");
  const big = JSON.stringify({ tool_name: "note.add", tool_input: { a: "x".repeat(200_000) } });
  for (let n = 0; n < 60; n += 1) await check(gate, big);
  assert.equal((await ask(gate, "/receipts?limit=1")).status, 200);
  const socket = connect(gate.port, "127.0.0.1", () => socket.write(requestText("GET /receipts?limit=1000 HTTP/1.1")));
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("readable", resolve));
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0, gate.stderr());
  socket.destroy();
});

const faults: readonly (readonly [string, string])[] = [
  ["the ledger's thread ends", "if (n === 2) for (const worker of workers) await worker.terminate();"],
  ["the disk fails", 'if (n === 2) throw Object.assign(new Error("EIO: i/o error, fsync"), { code: "EIO" });'],
  [
    "a row violates a constraint",
    `if (n === 2) {
  const batch = await start.call(this, lookups);
  batch.commit = () => Promise.reject(new Error("UNIQUE constraint failed"));
  return batch;
}`,
  ],
];

for (const [title, text] of faults) {
  test(`if ${title}, the gate answers nothing more and exits with code 1`, async (t) => {
    const gate = await gateWith(t, text);
    assert.equal((await check(gate, call)).json.receipt.seq, 1);
    const unanswered = await Promise.allSettled(Array.from({ length: 5 }, () => check(gate, call)));
    assert.ok(unanswered.every(({ status }) => status === "rejected"));
    assert.equal(await gate.exit, 1);
    const fault = /^svc-gate: .*$/m.exec(gate.stderr())?.[0] ?? gate.stderr();
    says("a fault", fault.replace(/ \w*Error: .*/, ""));
    await assert.rejects(ask(gate, "/health"));
    const args = ["--mandate", join(gate.folder, "mandate.yaml"), "--data-dir", join(gate.folder, "data")];
    const next = await spawnGate(t, args, { env: { SVC_API_KEY: key } });
    assert.equal((await check(next, call)).json.receipt.seq, 2);
    next.kill("SIGTERM");
    assert.equal(await next.exit, 0);
  });
}

test("after a kill the next start has every answered check and continues at once", async (t) => {
  const gate = await gateWith(t, "");
  const answers = await Promise.all(Array.from({ length: 30 }, () => check(gate, call)));
  const seqs = answers.map(({ json }) => json.receipt.seq as number);
  gate.kill("SIGKILL");
  assert.equal(await gate.exit, "SIGKILL");
  const args = ["--mandate", join(gate.folder, "mandate.yaml"), "--data-dir", join(gate.folder, "data")];
  const next = await spawnGate(t, args, { env: { SVC_API_KEY: key } });
  for (const { json } of answers) {
    assert.equal((await ask(next, `/receipts/${json.receipt.seq}`)).json.hash, json.receipt.hash);
  }
  assert.equal((await check(next, call)).json.receipt.seq, Math.max(...seqs) + 1);
});
