/**
 * Goal: many clients that wait for each answer are answered and not refused, and what they send fills no memory: the gate
 * reads the next request of a connection when it can decide it. A call that would wait too long is refused, and only
 * that. Method: a gate in this process whose batches go on when the test says so, and raw connections. Controls: a gate
 * that pauses no connection, and one that pauses all.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { AdmissionQueue } from "../../packages/gate/src/server/admission/queue.ts";
import type { Gate } from "../../packages/gate/src/server/service/gate.ts";
import { Service } from "../../packages/gate/src/server/service/service.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { control } from "../support/controls/control.ts";
import {
  ask,
  atEnd,
  pauseLedger,
  key,
  post,
  send,
  startGate,
  submit,
  temporaryFolder,
  writeContracts,
  type Running,
} from "../support/gate.ts";
import { fill, type Line } from "../support/lines.ts";
import { standingClock } from "../support/standing-clock.ts";

const closing = post('{"tool_name":"note.add","tool_input":{}}');
/** A call on a connection that stays open. */
const call = closing.replace("Connection: close\r\n", "");
const count = 3 * limits.quickBatchCallsMax;

/** Makes each batch wait for the ledger until the test lets it go on. */
function stepping(gate: Running, t: TestContext): { readonly next: () => Promise<void>; readonly all: () => void } {
  const paused: (() => void)[] = [];
  let isFree = false;
  const begin = gate.ledger.begin.bind(gate.ledger);
  t.mock.method(gate.ledger, "begin", async () => {
    if (!isFree) await new Promise<void>((resolve) => paused.push(resolve));
    return begin();
  });
  const next = async (): Promise<void> => {
    await becomes(() => paused.length > 0);
    paused.shift()?.();
  };
  const all = (): void => {
    isFree = true;
    for (const release of paused.splice(0)) release();
  };
  return { next, all };
}

async function becomes(isSo: () => boolean): Promise<void> {
  const until = Date.now() + 60_000;
  while (!isSo()) {
    assert.ok(Date.now() < until, `not so after a minute: ${String(isSo)}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

interface Crowd {
  readonly gate: Running;
  readonly lines: readonly Line[];
  /** Those that have an answer, and have sent a second call. */
  readonly answered: readonly Line[];
  readonly batches: ReturnType<typeof stepping>;
  /** Of a key that reads metrics. */
  readonly authorization: string;
}

/** Sends a call on each connection, and again on each that the first batch has answered. */
async function crowd(t: TestContext, pause?: Gate["admission"]["pause"]): Promise<Crowd> {
  const gate = await startGate(t);
  const authorization = `Bearer ${await keyFor(gate, '{"name":"prometheus","scopes":["metrics"]}')}`;
  standingClock(t); // The test delays a batch for longer than one takes, and no call is refused for that.
  if (pause !== undefined) t.mock.method(gate.gate.admission, "pause", pause);
  const batches = stepping(gate, t);
  atEnd(t, batches.all);
  const lines = await fill(t, { port: gate.port, count, bytes: call });
  await becomes(() => gate.gate.admission.queued.calls === count);
  await batches.next();
  const isAnswered = ({ text }: Line): boolean => text.startsWith("HTTP/1.1 200");
  await becomes(() => lines.filter(isAnswered).length === limits.quickBatchCallsMax);
  const answered = lines.filter(isAnswered);
  for (const line of answered) {
    line.text = "";
    line.socket.write(call);
  }
  // What is written is read in the next turn of the event loop, unless it is paused.
  for (let n = 0; n < 3; n += 1) assert.equal((await ask(gate, "/health")).status, 200);
  return { gate, lines, answered, batches, authorization };
}

async function keyFor(gate: Running, body: string): Promise<string> {
  const operator = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")) as {
    readonly key: string;
  };
  const headers = { "content-type": "application/json", authorization: `Bearer ${operator.key}` };
  return (await ask(gate, "/admin/keys", { method: "POST", headers, body })).json.key;
}

async function statuses(lines: readonly Line[]): Promise<readonly (number | undefined)[]> {
  return [...new Set(await Promise.all(lines.map((line) => line.status())))];
}

suite("connections of a key with many undecided calls", () => {
  test("their next calls are not read before there is room, and all are answered", async (t) => {
    const { gate, lines, answered, batches, authorization } = await crowd(t);
    assert.deepEqual(
      [gate.gate.admission.queued.calls, gate.gate.admission.queued.paused],
      [count - answered.length, answered.length],
      "nothing more is read",
    );
    const rows = gate.ledger.head.seq;
    const metrics = await ask(gate, "/metrics", { headers: { authorization } });
    assert.match(metrics.text, /^svc_gate_paused_connections 128$/m);
    batches.all();
    assert.deepEqual(await statuses(lines), [200]);
    assert.equal(gate.ledger.head.seq, rows + count);
    assert.equal(gate.gate.admission.queued.paused, 0);
  });

  control("positive control: a gate that pauses no connection reads everything", async (t) => {
    const { gate, batches } = await crowd(t, () => false);
    await becomes(() => gate.gate.admission.queued.calls === count);
    batches.all();
  });

  test("a stop reads them, and all are answered", async (t) => {
    const { gate, lines, batches } = await crowd(t);
    const stopped = gate.stop();
    await becomes(() => gate.gate.admission.queued.calls === count);
    batches.all();
    assert.deepEqual(await statuses(lines), [200]);
    await stopped;
  });

  control("positive control: connections that are never read again are noticed at a stop", async (t) => {
    const { gate, answered, batches } = await crowd(t, () => true);
    batches.all();
    await gate.stop();
    assert.deepEqual(await statuses(answered), [undefined]);
  });

  test("a connection that carries the calls of several keys is not paused", async (t) => {
    const gate = await startGate(t);
    standingClock(t);
    const other = call.replace(key, await keyFor(gate, '{"name":"other","scopes":["check"]}'));
    const [proxy] = await fill(t, { port: gate.port, count: 1, bytes: "" });
    assert.equal(await proxy?.ask(other), 200);
    const batches = stepping(gate, t);
    atEnd(t, batches.all);
    const before = proxy?.ask(call);
    await becomes(() => gate.gate.admission.queued.calls === 1);
    const lines = await fill(t, { port: gate.port, count, bytes: call });
    await becomes(() => gate.gate.admission.queued.calls === count + 1);
    await batches.next();
    assert.equal(await before, 200);
    await becomes(() => gate.gate.admission.queued.paused === limits.quickBatchCallsMax - 1);
    const { calls } = gate.gate.admission.queued;
    const after = proxy?.ask(call);
    await becomes(() => gate.gate.admission.queued.calls === calls + 1);
    batches.all();
    assert.equal(await after, 200);
    assert.deepEqual(await statuses(lines), [200]);
  });
});

/** Pauses a connection at a tenant, sends a call on it and stops the gate; returns the status of its answer. */
async function readsAtStop(t: TestContext): Promise<number | undefined> {
  const folder = temporaryFolder(t);
  writeContracts(folder, {});
  const tenants = join(folder, "tenants.yaml");
  writeFileSync(tenants, "tenants:\n  acme: { mandate: mandate.yaml }\n");
  const gate = await startGate(t, { folder, flags: { tenants } });
  const own = await keyFor(gate, '{"name":"acme","tenant":"acme","scopes":["check"]}');
  const paused: (() => void)[] = [];
  t.mock.method(AdmissionQueue.prototype, "pause", (_key: string, resume: () => void) => paused.push(resume) > 0);
  t.mock.method(AdmissionQueue.prototype, "endPauses", () => {
    const resumed = paused.splice(0);
    for (const resume of resumed) resume();
    return resumed.length > 0;
  });
  const [line] = await fill(t, { port: gate.port, count: 1, bytes: "" });
  const ofTenant = call.replace("/check", "/t/acme/check").replace(key, own);
  assert.equal(await line?.ask(ofTenant), 200);
  await becomes(() => paused.length === 1);
  const status = line?.ask(ofTenant);
  await gate.stop();
  return status;
}

test("a stop also reads the paused connections of tenants", async (t) => {
  assert.equal(await readsAtStop(t), 200);
});

control("positive control: a stop that only ends the pauses of the root is noticed", async (t) => {
  t.mock.method(Service.prototype, "drain", async () => undefined);
  assert.equal(await readsAtStop(t), undefined);
});

suite("a store that is slow", () => {
  test("calls are refused from a wait of SVC_QUEUE_MS on, and not before; admitted calls are answered", async (t) => {
    const gate = await startGate(t, { env: { SVC_QUEUE_MS: "700" } });
    const clock = standingClock(t);
    const release = pauseLedger(gate, t);
    const admitted = Array.from({ length: 2 * limits.queueCallsMin }, () => submit(gate, 0));
    await release.started;
    clock.pass(700);
    admitted.push(submit(gate, 0));
    clock.pass(1);
    const refused = await send(gate, closing);
    assert.equal(refused.status, 503);
    assert.match(refused.body, /"code":"queue-full".*another would wait longer than SVC_QUEUE_MS/);
    admitted.push(submit(gate, 0, "another"));
    release.go();
    assert.ok((await Promise.all(admitted)).every(({ ok }) => ok));
    assert.equal((await send(gate, closing)).status, 200, "nothing waits any more");
  });

  for (const isSlow of [true, false])
    test(`after a ${isSlow ? "slow" : "quick"} full batch the next one takes ${isSlow ? "512" : "128"} calls`, async (t) => {
      const gate = await startGate(t);
      const begin = gate.ledger.begin.bind(gate.ledger);
      let at = performance.now();
      t.mock.method(performance, "now", () => (at += 0.01));
      const transactions = t.mock.method(gate.ledger, "begin", async () => {
        const transaction = await begin();
        const commit = transaction.commit.bind(transaction);
        t.mock.method(transaction, "commit", async (...args: Parameters<typeof commit>) => {
          if (isSlow) at += 100;
          return commit(...args);
        });
        return transaction;
      });
      const burst = (calls: number): Promise<unknown> =>
        Promise.all(Array.from({ length: calls }, () => submit(gate, 0)));
      await burst(limits.quickBatchCallsMax);
      await burst(limits.batchCallsMax);
      assert.equal(transactions.mock.callCount(), isSlow ? 2 : 1 + limits.batchCallsMax / limits.quickBatchCallsMax);
    });
});
