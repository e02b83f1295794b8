/**
 * Goal: a caller that asks too often, too slowly or too much gets a cheap refusal and takes nothing from the others.
 * Method: gates in this process with a ledger that waits, keys with rates, and slow raw connections.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { limits } from "../../packages/core/src/wire/mod.ts";
import {
  ask,
  check,
  exchange,
  pauseLedger,
  key,
  post,
  requestText,
  send,
  spawnGate,
  startGate,
  submit,
  temporaryFolder,
  writeContracts,
  type Running,
} from "../support/gate.ts";
import { standingClock } from "../support/standing-clock.ts";

const call = { tool_name: "note.add", tool_input: {} };

test("answers to a key with a rate show the rate, and 429 says when to retry", async (t) => {
  const gate = await startGate(t, { flags: { rate: "1/s burst 3" } });
  const clock = standingClock(t); // The bucket of a rate limit never refills in between.
  const first = await check(gate, call);
  assert.equal(first.status, 200);
  assert.equal(first.headers.get("ratelimit-policy"), '"key";q=3;w=3');
  assert.match(first.headers.get("ratelimit") ?? "", /^"key";r=2;t=1$/);
  const rest = await Promise.all(Array.from({ length: 20 }, () => check(gate, call)));
  const limited = rest.filter(({ status }) => status === 429);
  assert.equal(limited.length, 18);
  for (const { headers, json } of limited) {
    assert.equal(json.code, "rate-limited");
    assert.equal(headers.get("retry-after"), "1");
    assert.equal(headers.get("ratelimit"), '"key";r=0;t=3');
  }
  assert.equal(gate.ledger.head.seq, 3, "a request that is refused is in no ledger");
  clock.pass(1000);
  assert.deepEqual([(await check(gate, call)).status, (await check(gate, call)).status], [200, 429]);
  assert.equal((await ask(gate, "/health", { headers: { authorization: "" } })).status, 200, "the open route is free");
  assert.equal((await ask(gate, "/rules", { headers: { authorization: "Bearer wrong" } })).status, 401);
});

test("a gate without rates sends no rate limit headers", async (t) => {
  const { headers } = await check(await startGate(t), call);
  assert.deepEqual([headers.get("ratelimit"), headers.get("ratelimit-policy")], [null, null]);
});

test("the gate applies the rate limit before it reads the body", async (t) => {
  const gate = await startGate(t, { flags: { rate: "1/s" } });
  standingClock(t);
  await check(gate, call);
  const never = requestText("POST /check HTTP/1.1", ["Content-Type: application/json", "Content-Length: 99"], "{");
  assert.equal((await send(gate, never)).status, 429);
});

test("a tenant can have its own rate limit", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, {});
  writeFileSync(
    join(folder, "tenants.yaml"),
    "tenants:\n  a: { mandate: mandate.yaml, rate: 1/s }\n  b: { mandate: mandate.yaml }\n",
  );
  const gate = await startGate(t, { folder, flags: { tenants: join(folder, "tenants.yaml"), rate: "100/s" } });
  const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")) as { readonly key: string };
  const policyOf = async (tenant: string): Promise<string | null> => {
    const body = JSON.stringify({ name: "n", tenant, scopes: ["rules"] });
    const headers = { "content-type": "application/json", authorization: `Bearer ${operator.key}` };
    const made = await ask(gate, "/admin/keys", { method: "POST", headers, body });
    const answer = await ask(gate, `/t/${tenant}/rules`, { headers: { authorization: `Bearer ${made.json.key}` } });
    return answer.headers.get("ratelimit-policy");
  };
  assert.equal(await policyOf("a"), '"key";q=1;w=1');
  assert.equal(await policyOf("b"), '"key";q=100;w=1');
});

/** Sends the head of a check without its body: the gate can answer at once only if it refuses by the headers alone. */
function refusedByHeaders(gate: Running): Promise<{ readonly status: number }> {
  return send(gate, requestText("POST /check HTTP/1.1", ["Content-Type: application/json", "Content-Length: 99"]));
}

test("a full queue refuses requests by their headers and keeps room for another key", async (t) => {
  const gate = await startGate(t);
  const release = pauseLedger(gate, t);
  const waiting = [submit(gate, 0)];
  await release.started;
  waiting.push(submit(gate, limits.queueBytesMax * 0.8));
  assert.equal(gate.gate.admission.refusalFor("default", 99), undefined, "one key alone may hold all of it");
  waiting.push(submit(gate, 99, "another"));
  assert.equal((await refusedByHeaders(gate)).status, 503, "with two, the one over its half is refused");
  waiting.push(submit(gate, 99, "another"));
  release.go();
  assert.ok(
    (await Promise.all(waiting)).every(({ ok }) => ok),
    "what was let in is decided",
  );
});

test("the gate answers every refused request of a flood and logs most of them as a count", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, {});
  const gate = await spawnGate(t, [
    "--mandate",
    join(folder, "mandate.yaml"),
    "--data-dir",
    join(folder, "data"),
    "--api-key",
    key,
  ]);
  const from = performance.now();
  const flood = await Promise.all(
    Array.from({ length: 300 }, () => exchange(gate.port, requestText("GET /no HTTP/1.1"))),
  );
  assert.ok(
    flood.every((text) => text.startsWith("HTTP/1.1 404 ")),
    "each is answered",
  );
  const told = (): { readonly one: number; readonly more: readonly number[] } => {
    const lines = gate
      .stderr()
      .split("\n")
      .filter((line) => line.includes('"not-found"'));
    const one = lines.filter((line) => line.includes('"msg":"refused"')).length;
    return { one, more: lines.flatMap((line) => /(?<="more":)\d+/.exec(line) ?? []).map(Number) };
  };
  const all = (): number => told().more.reduce((sum, n) => sum + n, told().one);
  while (all() < 300) await new Promise((resolve) => setTimeout(resolve, 50));
  const { one } = told();
  assert.equal(all(), 300);
  // The length of a flood depends on the machine. The log names ten refusals of each second and counts the others.
  const seconds = (performance.now() - from) / 1000;
  assert.ok(one <= 10 * (seconds + 1), `${one} lines in ${seconds} s`);
});

test("the gate times out headers that never end and serves other requests meanwhile", async (t) => {
  const gate = await startGate(t);
  const slow = exchange(gate.port, `POST /check HTTP/1.1\r\nHost: gate\r\nX-A: `);
  assert.equal((await send(gate, post(JSON.stringify(call)))).status, 200);
  assert.match(await slow, /^HTTP\/1\.1 408 /);
});

test("a start refuses a malformed rate and a limit of zero connections", async (t) => {
  await assert.rejects(startGate(t, { flags: { rate: "fast" } }), /\bSVC_RATE: "fast".*\b200\/s/);
  await assert.rejects(startGate(t, { flags: { connections: "0" } }), /SVC_CONNECTIONS is "0"/);
});
