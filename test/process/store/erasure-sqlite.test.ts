/**
 * Goal: no file of the embedded engine contains an erased text, the chain and all proofs are valid, and a missing part
 * without a lawful row is reported at its row. Method: the suite of both engines. Random sessions contain unique texts.
 * The test searches every byte of every file for them, in each stored form, before and after. Further cases: a reader
 * that keeps the log open, and a process that ended before it had erased anything.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import { openLedger, type Ledger } from "../../../packages/gate/src/ledger/mod.ts";
import { erasureBody } from "../../../packages/core/src/record/entry/mod.ts";
import { encodings, positionsOf } from "../../support/erased-bytes.ts";
import { enactOn, eraseOn, erasureSuite } from "../../support/erasure-suite.ts";
import { append, contracts, engine, entry, temporaryFolder } from "../../support/ledger-fixture.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const folders = new WeakMap<Ledger, string>();

async function openIn(t: TestContext, folder: string): Promise<Ledger> {
  const ledger = await openLedger({ folder, engine });
  t.after(() => ledger.close().catch(() => undefined));
  folders.set(ledger, folder);
  return ledger;
}

erasureSuite("SQLite", {
  open: (t) => openIn(t, temporaryFolder(t)),
  alter: (ledger, seq, set) => {
    const database = new DatabaseSync(join(folders.get(ledger) ?? "", "ledger.db"));
    database.exec(`UPDATE receipts SET ${set} WHERE seq = ${seq}`);
    database.close();
    return Promise.resolve();
  },
});

/** Repeatable, so that pages split alike each time. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
}

const secret = "KESTREL";
const other = "SPARROW";

/** Checks in random sessions; every second one belongs to a person who is erased later; some are large. */
async function fillAtRandom(ledger: Ledger, rows: number): Promise<void> {
  await ledger.keepContract(contracts[0]);
  const random = randomFrom(4711);
  for (let left = rows; left > 0;) {
    const size = Math.min(left, 1 + Math.floor(random() * 40));
    const checks = Array.from({ length: size }, () => {
      const who = random() < 0.5 ? secret : other;
      const text = `${who} ${"x".repeat(random() < 0.03 ? 20_000 : Math.floor(random() * 300))}`;
      return entry({
        sessionId: `${Math.floor(random() * 1e6)} ${who}`,
        toolName: `${Math.floor(random() * 1000)} ${who}`,
        routed: false,
        inputText: `{"note":"${text}"}`,
        platformText: `{"payee":"${who}"}`,
        reason: `Svc: ${who} may`,
        outcome: { counters: {}, errors: { rule: who }, fired: [] },
      });
    });
    await append(ledger, checks.map((check) => [check, []])); // prettier-ignore
    left -= size;
  }
}

/** Returns the salts of the parts in one person's rows. */
async function saltsOf(ledger: Ledger, who: string): Promise<readonly string[]> {
  const rows = (await Array.fromAsync(ledger.rows.scan(1))).flat().filter(({ tool }) => tool.includes(who));
  return rows.slice(0, 8).flatMap(({ evidence }) =>
    evidence
      .split("~")
      .slice(0, 5)
      .map((part) => Buffer.from(part, "base64url").toString("latin1").slice(2, 24)),
  );
}

async function rowsOf(ledger: Ledger, who: string): Promise<readonly (readonly [number, number])[]> {
  const rows = (await Array.fromAsync(ledger.rows.scan(1))).flat();
  return rows.filter(({ tool }) => tool.includes(who)).map(({ seq }) => [seq, seq] as const);
}

const everything = ["call", "input", "outcome", "platform", "reason"] as const;

suite("SQLite: the bytes of erased parts", () => {
  test("the search finds every encoding of a text", () => {
    for (const before of ["", "a", "ab", "abc", '["salt","input",']) {
      const stored = Buffer.from(`${before}${secret}, and more`).toString("base64url");
      assert.ok(encodings(secret).some((needle) => stored.includes(needle)), before); // prettier-ignore
    }
  });

  test("erased bytes are nowhere in the folder, and all other bytes are still there", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openIn(t, folder);
    await fillAtRandom(ledger, 3000);
    const [gone, kept] = [await saltsOf(ledger, secret), await saltsOf(ledger, other)];
    const rows = await rowsOf(ledger, secret);
    assert.deepEqual(Object.keys(positionsOf(folder, [secret])), ["ledger.db", "ledger.db-wal"], "positive control");
    assert.equal(positionsOf(folder, gone)["ledger.db"], gone.length, "each salt in the one way in which it is stored");
    for (let from = 0; from < rows.length; from += 1000)
      assert.equal(
        (await eraseOn(ledger, { target: { rows: rows.slice(from, from + 1000) }, parts: everything })).remains,
        null,
      );
    assert.deepEqual(positionsOf(folder, [secret, ...gone]), {}, "served");
    assert.equal(positionsOf(folder, [other])["ledger.db"], 4, "plain, and at each of three places");
    assert.equal(positionsOf(folder, kept)["ledger.db"], kept.length);
    assert.equal((await ledger.verify()).broken, undefined);
    await ledger.close();
    assert.deepEqual(positionsOf(folder, [secret, ...gone]), {}, "closed");
    assert.notDeepEqual(positionsOf(folder, [other]), {});
  });

  test("the bytes of one erased row with large texts are gone from the folder", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openIn(t, folder);
    await fillAtRandom(ledger, 300);
    const note = `ALBATROSS ${"z".repeat(60_000)}`;
    await append(ledger, [[entry({ inputText: `{"note":"${note}"}`, sessionId: "ALBATROSS" }), []]]);
    assert.notDeepEqual(positionsOf(folder, ["ALBATROSS", "zzzzzzzzz"]), {}, "positive control");
    await eraseOn(ledger, { target: { session: "ALBATROSS", key: "default" }, parts: ["call", "input"] });
    assert.deepEqual(positionsOf(folder, ["ALBATROSS", "zzzzzzzzz"]), {});
  });

  test("erased bytes stay in the write-ahead log while another program reads, and the erasure says so", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openIn(t, folder);
    await fillAtRandom(ledger, 200);
    const reader = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
    reader.exec("BEGIN");
    reader.prepare("SELECT count(*) FROM receipts").get();
    const erased = await eraseOn(ledger, { target: { rows: await rowsOf(ledger, secret) }, parts: everything });
    says("what-a-reader-keeps", String(erased.remains));
    assert.ok("ledger.db-wal" in positionsOf(folder, [secret]), "positive control");
    reader.close();
    assert.equal(await ledger.scrub(true), "clean");
    assert.deepEqual(positionsOf(folder, [secret]), {});
  });

  test("the next start clears erased bytes that an earlier process left", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openIn(t, folder);
    await fillAtRandom(ledger, 3000);
    const erases = { parts: everything, rows: await rowsOf(ledger, secret) };
    await enactOn(ledger, { by: "dpo", act: "erase", body: erasureBody(erases), reason: "why", erases });
    assert.equal(await ledger.scrub(false), "later", "older copies of index keys are still in their pages");
    await ledger.close();
    assert.ok("ledger.db" in positionsOf(folder, [secret]), "positive control");
    const next = await openIn(t, folder);
    assert.deepEqual(positionsOf(folder, [secret]), {});
    assert.equal(await next.scrub(true), "clean");
  });

  test("an erasure also removes bytes that were deleted before secure deletion was on", async (t) => {
    const folder = temporaryFolder(t);
    await (await openIn(t, folder)).close();
    const database = new DatabaseSync(join(folder, "ledger.db"));
    database.exec("PRAGMA user_version = 0");
    database.exec(`CREATE TABLE before (text TEXT); INSERT INTO before VALUES ('${`${secret} `.repeat(100_000)}')`);
    database.exec("PRAGMA secure_delete = OFF; DROP TABLE before");
    database.close();
    const ledger = await openIn(t, folder);
    await fillAtRandom(ledger, 50);
    const rows = await rowsOf(ledger, secret);
    assert.ok("ledger.db" in positionsOf(folder, [`${secret} ${secret} ${secret}`]), "positive control");
    await eraseOn(ledger, { target: { rows }, parts: everything });
    assert.deepEqual(positionsOf(folder, [secret]), {});
    assert.equal((await ledger.verify()).broken, undefined);
  });
});
