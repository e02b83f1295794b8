/**
 * Goal: a sign-in changes only the groups that a provider states, and does not make a key young. Method: a ring over a
 * real ledger whose time the test moves. Positive control: the same change by an administrator makes the key young.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Clock } from "../../../../../packages/gate/src/server/policy/clock.ts";
import { noContracts } from "../../../../../packages/gate/src/server/policy/contracts.ts";
import { openGate } from "../../../../../packages/gate/src/server/service/gate.ts";
import { addPerson, changeKey, KeyRing } from "../../../../../packages/gate/src/server/keys/keys.ts";
import { withOidcGroups } from "../../../../../packages/gate/src/server/keys/oidc-groups.ts";
import { operatorKey } from "../../../../../packages/gate/src/server/keys/known-keys.ts";
import { openLedger } from "../../../../../packages/gate/src/ledger/mod.ts";
import { engine, temporaryFolder } from "../../../../support/ledger-fixture.ts";

const dayMs = 86_400_000;
const laptop = { name: "anna-laptop", tenant: null };

interface Fixture {
  readonly ring: KeyRing;
  readonly time: { now: number };
  /** @returns the sentence of a refusal */
  readonly change: (act: "create" | "revoke" | "rotate" | "update", body: object) => Promise<string | undefined>;
  readonly groups: () => readonly string[] | undefined;
  readonly rows: () => Promise<number>;
}

/** A ring with the key of anna, which is two days old. */
async function open(t: TestContext): Promise<Fixture> {
  const time = { now: Date.UTC(2026, 0, 1) };
  const ledger = await openLedger({ folder: temporaryFolder(t), engine });
  const clock = new Clock({ wall: () => time.now, monotonic: () => time.now });
  const opened = await openGate({
    ledger,
    policySet: noContracts(),
    mode: "observe",
    clock,
    onDefect: () => undefined,
  });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  const ring = await KeyRing.open({ gate, ledger, firstKey: undefined, isTenant: () => false, now: () => time.now });
  t.after(() => ring.close().then(() => ledger.close()));
  const fixture: Fixture = {
    ring,
    time,
    change: async (act, body) => {
      const request = { act, name: laptop.name, body: Buffer.from(JSON.stringify(body)) };
      const changed = await changeKey(ring, { by: operatorKey, tenant: null }, request);
      return changed.ok ? undefined : changed.problem.detail;
    },
    groups: () => ring.known.voter(laptop, time.now)?.groups,
    rows: async () => (await ledger.rows.changes(0)).length,
  };
  for (const person of ["anna", "bob"])
    assert.ok(
      (await addPerson(ring, { by: operatorKey, tenant: null }, Buffer.from(JSON.stringify({ name: person })))).ok,
    );
  const body = { name: laptop.name, scopes: ["approve"], person: "anna", groups: ["finance"] };
  assert.equal(await fixture.change("create", body), undefined);
  time.now += 2 * dayMs;
  return fixture;
}

test("a sign-in does not make a key young, and an administrator's change of groups does", async (t) => {
  const { ring, time, change } = await open(t);
  assert.ok((await ring.stateGroups(laptop, ["legal"])).ok);
  assert.deepEqual(ring.known.voter(laptop, time.now), {
    person: "anna",
    groups: ["finance", "oidc:legal"],
    makers: [],
  });
  assert.equal(await change("update", { groups: ["finance", "legal"] }), undefined);
  assert.deepEqual(ring.known.voter(laptop, time.now)?.makers, ["key operator"]);
});

test("a sign-in replaces the groups of the last one, leaves the others, and writes a row only for a difference", async (t) => {
  const { ring, groups, rows } = await open(t);
  assert.ok((await ring.stateGroups(laptop, ["legal", "audit", "legal"])).ok);
  assert.deepEqual(groups(), ["finance", "oidc:audit", "oidc:legal"]);
  const before = await rows();
  assert.ok((await ring.stateGroups(laptop, ["legal", "audit"])).ok);
  assert.equal(await rows(), before);
  assert.ok((await ring.stateGroups(laptop, [])).ok);
  assert.deepEqual(groups(), ["finance"]);
  assert.equal(await rows(), before + 1);
});

test("two sign-ins at once write one row", async (t) => {
  const { ring, rows } = await open(t);
  const before = await rows();
  const both = await Promise.all([ring.stateGroups(laptop, ["legal"]), ring.stateGroups(laptop, ["legal"])]);
  assert.ok(both.every(({ ok }) => ok));
  assert.equal(await rows(), before + 1);
});

test("only a sign-in sets a group of the provider, an administrator can remove it, and another person does not get it", async (t) => {
  const { ring, change, groups } = await open(t);
  const sentence = 'the group "oidc:legal" can only come from the provider of the sign-in: leave it out';
  assert.equal(await change("update", { groups: ["finance", "oidc:legal"] }), sentence);
  const body = { name: "forged", scopes: ["approve"], person: "anna", groups: ["oidc:legal"] };
  assert.equal(await change("create", body), sentence);
  assert.ok((await ring.stateGroups(laptop, ["legal"])).ok);
  assert.equal(await change("rotate", {}), undefined);
  assert.deepEqual(groups(), ["finance", "oidc:legal"]);
  assert.equal(await change("update", { groups: ["finance"] }), undefined);
  assert.deepEqual(groups(), ["finance"]);
  assert.ok((await ring.stateGroups(laptop, ["legal"])).ok);
  assert.equal(await change("update", { person: "bob" }), undefined);
  assert.deepEqual(groups(), ["finance"]);
});

test("a row of a sign-in changes nothing but groups with the prefix, also on a key that was revoked", async (t) => {
  const { ring, change } = await open(t);
  const record = ring.known.findState(laptop)?.record ?? assert.fail();
  const forged = { ...laptop, groups: ["legal", "oidc:audit"], scopes: ["admin"], revoked: false, digest: "0" };
  assert.deepEqual(withOidcGroups({ ...record, revoked: true }, forged), {
    ...record,
    revoked: true,
    groups: ["finance", "oidc:audit"],
  });
  assert.equal(await change("revoke", {}), undefined);
  assert.ok((await ring.stateGroups(laptop, ["legal"])).ok);
  assert.equal(ring.known.findState(laptop)?.record.revoked, true);
  assert.equal(ring.known.voter(laptop, Date.now()), undefined);
});
