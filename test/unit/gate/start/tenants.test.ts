/**
 * Goal: a tenant is open exactly while a request waits for it or works on it, and the number of open tenants is
 * bounded. Method: the tenants of a process without HTTP, requested by the test's own replies.
 */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { ServerResponse } from "node:http";
import pino from "pino";
import { QueueBudget } from "../../../../packages/gate/src/server/admission/queue.ts";
import { Metrics } from "../../../../packages/gate/src/server/telemetry/metrics.ts";
import { Tenants } from "../../../../packages/gate/src/server/service/tenants.ts";
import type { GateSource } from "../../../../packages/gate/src/server/service/gate-source.ts";
import { good } from "../../../../packages/core/src/wire/mod.ts";
import { temporaryFolder } from "../../../support/gate.ts";

function sourceIn(folder: string, tenant: string): GateSource {
  mkdirSync(join(folder, tenant), { recursive: true });
  const mandate = join(folder, tenant, "desk.yaml");
  writeFileSync(
    mandate,
    "contract: desk\ntools:\n  door.open: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }\n",
  );
  const ledger = { folder: join(folder, tenant), engine: "svc-gate/0.0.1" };
  return { tenant, mandate, mode: "enforce", ledger, acceptClock: false, acceptChange: false };
}

function start(
  t: TestContext,
  ids: readonly string[],
): { readonly tenants: Tenants; readonly sources: readonly GateSource[] } {
  const folder = temporaryFolder(t);
  const sources = ids.map((id) => sourceIn(folder, id));
  const shared = { log: pino({ level: "silent" }), observer: new Metrics(), budget: new QueueBudget() };
  const tenants = new Tenants(sources, { ...shared, openMax: 1, idleMs: 60_000 });
  t.after(() => tenants.close());
  return { tenants, sources };
}

/** Returns an answer whose caller waits or has disconnected. */
function response(destroyed: boolean): ServerResponse {
  return Object.assign(new EventEmitter(), { destroyed }) as unknown as ServerResponse;
}

test("a waiting client keeps a tenant open, and a client that disconnected does not", async (t) => {
  const { tenants } = start(t, ["acme", "blue", "cyan"]);
  assert.ok((await tenants.gateFor("acme", response(true))).ok);
  const waits = response(false);
  assert.ok((await tenants.gateFor("blue", waits)).ok, "nobody waits for acme, so it gives way");
  assert.deepEqual([...tenants.open.keys()], ["blue"], "one may be open");
  const refused = await tenants.gateFor("cyan", response(false));
  assert.equal(refused.ok ? "" : refused.problem.code, "tenant-unavailable", "positive control");
  waits.emit("close");
  assert.ok((await tenants.gateFor("cyan", response(false))).ok);
});

test("a tenant stays open while an operator works on it", async (t) => {
  const { tenants } = start(t, ["acme", "blue"]);
  const done = await tenants.workOn("acme", async (gate) => {
    const refused = await tenants.gateFor("blue", response(true));
    assert.equal(refused.ok ? "" : refused.problem.code, "tenant-unavailable");
    return good(gate.ledger.head.seq);
  });
  assert.ok(done.ok);
  assert.ok((await tenants.gateFor("blue", response(true))).ok, "positive control: the work is done");
});

test("a tenant that is removed from the file while it opens is not served", async (t) => {
  const { tenants, sources } = start(t, ["acme"]);
  const opening = tenants.gateFor("acme", response(false));
  await tenants.redefine([]);
  const refused = await opening;
  assert.equal(refused.ok ? "" : refused.problem.code, "not-found");
  assert.equal(tenants.open.size, 0);
  await tenants.redefine(sources);
  assert.ok((await tenants.gateFor("acme", response(true))).ok, "positive control: its ledger was let go");
});
