/**
 * Goal: before a vote counts, the ring knows every change of keys that has a row, and reads rows only if there may be one
 * that it does not know. Method: a gate that counts reads and answers late, over a real ledger.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Clock, systemTime } from "../../../../../packages/gate/src/server/policy/clock.ts";
import { noContracts } from "../../../../../packages/gate/src/server/policy/contracts.ts";
import { openGate } from "../../../../../packages/gate/src/server/service/gate.ts";
import { addPerson, changeKey, KeyRing } from "../../../../../packages/gate/src/server/keys/keys.ts";
import { operatorKey } from "../../../../../packages/gate/src/server/keys/known-keys.ts";
import type { KeyRingOptions } from "../../../../../packages/gate/src/server/keys/ring.ts";
import { openLedger } from "../../../../../packages/gate/src/ledger/mod.ts";
import { engine, temporaryFolder } from "../../../../support/ledger-fixture.ts";

const admin = { by: operatorKey, tenant: null };

interface Fixture {
  readonly ring: KeyRing;
  /** How often rows were read. */
  readonly reads: () => number;
  /** The answer to the next change waits for `end`; `appended` resolves when its row is on disk. */
  readonly delay: () => { readonly appended: Promise<void>; readonly end: () => void };
  readonly change: (act: "create" | "revoke", name: string, body: object) => Promise<void>;
}

async function open(t: TestContext, isShared: boolean): Promise<Fixture> {
  const ledger = await openLedger({ folder: temporaryFolder(t), engine });
  const clock = new Clock(systemTime);
  const opened = await openGate({
    ledger,
    policySet: noContracts(),
    mode: "observe",
    clock,
    onDefect: () => undefined,
  });
  assert.ok(opened.ok);
  const { gate } = opened.value;
  let reads = 0;
  let late: { readonly appended: () => void; readonly until: Promise<void> } | undefined;
  const events: KeyRingOptions["gate"] = {
    appendAdminEvent: async (makeEvent) => {
      const done = await gate.appendAdminEvent(makeEvent);
      late?.appended();
      await late?.until;
      return done;
    },
  };
  const rows: KeyRingOptions["ledger"]["rows"] = {
    ...ledger.rows,
    changes: (after) => {
      reads += 1;
      return ledger.rows.changes(after);
    },
  };
  const keyNotes: KeyRingOptions["ledger"]["keyNotes"] = {
    keepFirst: (note) => ledger.keyNotes.keepFirst(note),
    keepUses: () => Promise.resolve(),
    uses: () => ledger.keyNotes.uses(),
  };
  const ring = await KeyRing.open({
    gate: events,
    ledger: { isShared, keyNotes, rows },
    firstKey: undefined,
    isTenant: () => false,
  });
  t.after(() => ring.close().then(() => ledger.close()));
  return {
    ring,
    reads: () => reads,
    delay: () => {
      const [appended, until] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      late = { appended: appended.resolve, until: until.promise };
      return { appended: appended.promise, end: until.resolve };
    },
    change: async (act, name, body) => {
      const changed = await changeKey(ring, admin, { act, name, body: Buffer.from(JSON.stringify(body)) });
      assert.ok(changed.ok, JSON.stringify(changed));
    },
  };
}

const anna = { name: "anna-laptop", scopes: ["approve"], person: "anna" };
const voter = { name: "anna-laptop", tenant: null };

test("a ring that alone writes its ledger reads no rows between its own changes", async (t) => {
  const { ring, reads, change } = await open(t, false);
  assert.ok(
    (await addPerson(ring, { by: operatorKey, tenant: null }, Buffer.from(JSON.stringify({ name: "anna" })))).ok,
  );
  await change("create", anna.name, anna);
  const before = reads();
  await ring.catchUp();
  assert.equal(reads(), before);
  assert.equal(ring.known.voter(voter, Date.now())?.person, "anna");
});

test("a ring on a shared ledger reads the rows of other gates each time", async (t) => {
  const { ring, reads } = await open(t, true);
  const before = reads();
  await ring.catchUp();
  assert.equal(reads(), before + 1);
});

test("a key whose revocation has a row does not vote any more, even before the revocation is answered", async (t) => {
  const { ring, change, delay } = await open(t, false);
  assert.ok(
    (await addPerson(ring, { by: operatorKey, tenant: null }, Buffer.from(JSON.stringify({ name: "anna" })))).ok,
  );
  await change("create", anna.name, anna);
  const { appended, end } = delay();
  const revoking = change("revoke", anna.name, {});
  await appended;
  assert.equal(ring.known.voter(voter, Date.now())?.person, "anna", "positive control: the row is not folded yet");
  await ring.catchUp();
  assert.equal(ring.known.voter(voter, Date.now()), undefined);
  end();
  await revoking;
});
