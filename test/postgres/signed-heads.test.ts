/**
 * Goal: gates that share a ledger sign one history, whichever of them is asked, and never sign a row that was not
 * committed. Method: gates as processes and ledgers in this process, on the run's PostgreSQL. Proofs from tiles
 * compare every served head with the last one; connections are cut around a COMMIT.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { openLedger, type Ledger } from "../../packages/gate/src/ledger/mod.ts";
import { openPostgres, type DatabaseOptions } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import type { Database } from "../../packages/gate/src/ledger/store/store.ts";
import { NotKept } from "../../packages/gate/src/ledger/errors.ts";
import { openCheckpoint, type Checkpoint } from "../../packages/core/src/record/tree/checkpoint.ts";
import { isIncluded } from "../../packages/core/src/record/tree/merkle.ts";
import type { VerifierKey } from "../../packages/core/src/record/tree/note.ts";
import {
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeSigningKeys,
} from "../../packages/gate/src/ledger/signing/signing-key.ts";
import {
  consistencyProof,
  inclusionProof,
  tilePath,
  type HashReader,
} from "../../packages/core/src/record/tree/tiles.ts";
import { isConsistent, readerOfTiles } from "../support/tree-proofs.ts";
import { sentencesOf } from "../support/sentences.ts";
import { command } from "../support/command.ts";
import { ask, check, desk, finish, key, spawnGate, temporaryFolder, type ProcessOptions } from "../support/gate.ts";
import { append, contracts, engine, entry } from "../support/ledger-fixture.ts";
import { startProxy } from "../support/postgres-proxy.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";

const says = sentencesOf(import.meta.filename);

const origin = "example.org/shared";
const server = await sharedPostgres({ after });

if (typeof server === "string") test("PostgreSQL: signed heads", { skip: server }, () => undefined);
else signedHeads(server);

/** Returns the error line of a gate that ends. */
function complaint(stderr: string): string {
  return /^svc-gate: .*$/m.exec(stderr)?.[0] ?? stderr;
}

/** A database of one test, and the key of the gates that share it. */
interface Setup {
  readonly folder: string;
  readonly keyFile: string;
  /** The URLs for the superuser and for gates. */
  readonly owner: string;
  readonly url: string;
}

async function newSetup(t: TestContext, there: Databases): Promise<Setup> {
  const database = await there.create();
  const folder = temporaryFolder(t);
  const keyFile = join(folder, "shared.key");
  await writeSigningKeys(keyFile, { current: makeSigningKey(), before: undefined });
  writeFileSync(join(folder, "desk.yaml"), desk);
  return { folder, keyFile, owner: database.url(), url: database.gateUrl };
}

function settingsOf({ folder, url, keyFile }: Setup, name: string, signingKey = keyFile): ProcessOptions {
  mkdirSync(join(folder, name), { recursive: true });
  const env = {
    SVC_API_KEY: key,
    SVC_MODE: "enforce",
    SVC_LOG: "error",
    SVC_MANDATE: join(folder, "desk.yaml"),
    SVC_DATA_DIR: join(folder, name),
    SVC_DATABASE_URL: url,
    SVC_LEDGER_NAME: origin,
    SVC_SIGNING_KEY: signingKey,
  };
  return { env };
}

const note = { tool_name: "note.add", tool_input: {} };

async function keysOf(file: string): Promise<readonly VerifierKey[]> {
  const keys = await readSigningKeys(file);
  assert.ok(keys);
  return new Signer(origin, keys).verifiers;
}

interface Head {
  readonly size: number;
  readonly root: Buffer;
  /** The number of keys that signed the head. */
  readonly signed: number;
}

function headOf(text: string, keys: readonly VerifierKey[]): Head {
  const opened = openCheckpoint(text, keys);
  assert.ok(opened.ok, opened.ok ? "" : `${opened.problem}\n${text}`);
  return { ...opened.value, signed: opened.value.signed.length };
}

async function headAt(gate: { readonly address: string }, keys: readonly VerifierKey[]): Promise<Head> {
  const { status, text } = await ask(gate, "/checkpoint");
  assert.equal(status, 200, text);
  return headOf(text, keys);
}

/** Returns the tiles of a gate's tree, as a stranger reads them, each once. */
function tilesAt({ address }: { readonly address: string }, size: number): HashReader {
  const read = new Map<string, Promise<Buffer>>();
  const fetched = async (path: string): Promise<Buffer> => {
    const answer = await fetch(`${address}/${path}`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(answer.status, 200, path);
    return Buffer.from(await answer.arrayBuffer());
  };
  return readerOfTiles(size, (tile) => {
    const path = tilePath(tile);
    const found = read.get(path) ?? fetched(path);
    read.set(path, found);
    return found;
  });
}

async function grows(read: HashReader, from: Head, to: Head): Promise<boolean> {
  if (from.size === to.size) return from.root.equals(to.root);
  if (from.size === 0) return true;
  const proof = await consistencyProof(read, from.size, to.size);
  return isConsistent({ from: from.size, fromRoot: from.root, size: to.size, root: to.root, proof });
}

async function query<Row extends object>(url: string, sql: string, values: readonly unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql, [...values])).rows;
  } finally {
    await client.end();
  }
}

interface KeptHead {
  readonly seq: number;
  readonly checkpoint: string | null;
  readonly signer: string | null;
}

async function keptHead({ owner }: Setup, ledger = "root"): Promise<KeptHead> {
  const sql = "SELECT seq::int AS seq, checkpoint, signer FROM svc_gate.ledgers WHERE ledger = $1";
  const [row] = await query<KeptHead>(owner, sql, [ledger]);
  assert.ok(row);
  return row;
}

async function actsOf({ owner }: Setup): Promise<readonly unknown[]> {
  const rows = await query<{ leaf: string }>(
    owner,
    "SELECT leaf FROM svc_gate.receipts WHERE verdict = 'CHANGE' ORDER BY seq",
  );
  return rows.map(({ leaf }) => (JSON.parse(leaf) as { readonly act: string }).act);
}

async function open(t: TestContext, options: DatabaseOptions): Promise<Database> {
  const database = await openPostgres(options);
  t.after(() => database.close());
  return database;
}

/** Opens a ledger as a gate in this process. */
async function ledgerOn(at: Setup, database: Database, ledger = "root"): Promise<Ledger> {
  const shared = { database, ledger };
  const opened = await openLedger({ folder: at.folder, shared, engine, name: origin, signingKeyFile: at.keyFile });
  await opened.keepContract(contracts[0]);
  return opened;
}

/** Records the heads signed from now on. */
function watchSigning(t: TestContext): () => readonly string[] {
  const signed: string[] = [];
  const sign: (this: Signer, head: Checkpoint) => string = Reflect.get(Signer.prototype, "sign");
  t.mock.method(Signer.prototype, "sign", function signing(this: Signer, head: Checkpoint) {
    const made = sign.call(this, head);
    signed.push(made);
    return made;
  });
  return () => signed;
}

const notCommitted = (error: unknown): boolean => error instanceof NotKept && error.why === "not-committed";

function signedHeads(there: Databases): void {
  suite("PostgreSQL: heads of two replicas under load", () => {
    test("all heads that replicas serve under load are of one history and cover the answered rows", async (t) => {
      const at = await newSetup(t, there);
      const keys = await keysOf(at.keyFile);
      const gates = await Promise.all(["one", "other"].map((name) => spawnGate(t, [], settingsOf(at, name))));
      const [one] = gates;
      assert.ok(one);
      const loaded = new AbortController();
      const polled = gates.map(async (gate) => {
        const seen: Head[] = [];
        while (!loaded.signal.aborted) seen.push(await headAt(gate, keys));
        return seen;
      });
      const receipts: { readonly seq: number; readonly hash: string; readonly head: Head }[] = [];
      const client = async (of: number): Promise<void> => {
        for (let count = 0; count < 40; count += 1) {
          const gate = gates[(of + count) % 2] ?? one;
          const { json, status, text } = await check(gate, note);
          assert.equal(status, 200, text);
          const head = await headAt(gates[count % 2] ?? one, keys);
          receipts.push({ ...json.receipt, head });
        }
      };
      await Promise.all(Array.from({ length: 8 }, (_, of) => client(of)));
      loaded.abort();
      const seen = await Promise.all(polled);
      const last = await headAt(one, keys);
      assert.equal(last.size, receipts.length);
      for (const heads of seen)
        for (const [index, head] of heads.entries())
          assert.ok(head.size >= (heads[index - 1]?.size ?? 0), "it went back");
      const read = tilesAt(one, last.size);
      for (const { seq, hash: of, head } of receipts) {
        const { size, root } = head;
        assert.ok(size >= seq, `row ${seq} was answered, and the next head had ${size} rows`);
        const proof = await inclusionProof(read, seq - 1, size);
        assert.ok(isIncluded({ index: seq - 1, size, leaf: Buffer.from(of, "hex"), root, proof }));
      }
      const heads = [...seen.flat(), ...receipts.map(({ head }) => head)].toSorted((a, b) => a.size - b.size);
      const distinct = new Set(heads.map(({ size }) => size)).size;
      assert.ok(distinct > 30, `${distinct} heads were seen`);
      for (const [index, head] of heads.entries()) {
        assert.ok(await grows(read, head, last), `the head of ${head.size} rows is of another history`);
        assert.ok(await grows(read, head, heads[index + 1] ?? last));
      }
      const other = { ...(heads[20] ?? last), root: Buffer.alloc(32, 1) };
      assert.ok(!(await grows(read, other, last)), "positive control: a head of another history is seen");
      for (const gate of gates) assert.equal((await ask(gate, "/ledger/verify")).json.ok, true);
    });
  });

  suite("PostgreSQL: a tree that ends before the last row", () => {
    test("the next gate notices that the stored tree lacks rows, and signs nothing", async (t) => {
      const at = await newSetup(t, there);
      const database = await open(t, { url: at.url });
      const [one, other] = [await ledgerOn(at, database), await ledgerOn(at, database)];
      await append(one, [[entry(), []]]);
      const set = (frontier: string): Promise<unknown> =>
        query(at.owner, `UPDATE svc_gate.ledgers SET frontier = ${frontier}`);
      await set("'0 ' || frontier");
      const before = await keptHead(at);
      const refused = await other.begin().catch((error: unknown) => error);
      assert.ok(refused instanceof Error);
      says("the tree lacks the last row", refused.message);
      assert.deepEqual(await keptHead(at), before);
      says("the tree is not that of the rows", (await one.verify()).broken?.problem ?? "");
      await set("substr(frontier, 3)");
      await append(other, [[entry(), []]]);
      assert.equal((await other.verify()).broken, undefined, "positive control: put back, both go on");
    });
  });

  suite("PostgreSQL: the signing key that replicas share", () => {
    test("a replica with another key or without a key does not start", async (t) => {
      const at = await newSetup(t, there);
      const gate = await spawnGate(t, [], settingsOf(at, "one"));
      const before = await keptHead(at);
      const other = join(at.folder, "other.key");
      await writeSigningKeys(other, { current: makeSigningKey(), before: undefined });
      const refused = async (name: string, file: string, sentence: string): Promise<void> => {
        const { code, stderr } = await finish(t, ["serve", "--port", "0"], settingsOf(at, name, file));
        assert.equal(code, 1);
        says(sentence, complaint(stderr));
      };
      await refused("two", other, "a file with another key");
      await refused("three", readFileSync(other, "utf8"), "a variable with another key");
      await refused("four", "", "no file of a key");
      assert.deepEqual(await keptHead(at), before, "and has signed nothing");
      assert.equal((await check(gate, note)).status, 200);
      const same = await spawnGate(t, [], settingsOf(at, "five", readFileSync(at.keyFile, "utf8")));
      assert.equal((await check(same, note)).status, 200, "positive control: the same key, as a variable");
    });

    test("replicas take a rotated key from their common file, and a replica without that file stops", async (t) => {
      const at = await newSetup(t, there);
      const [before] = await keysOf(at.keyFile);
      assert.ok(before);
      const copy = join(at.folder, "copy.key");
      copyFileSync(at.keyFile, copy);
      const one = await spawnGate(t, [], settingsOf(at, "one"));
      const other = await spawnGate(t, [], settingsOf(at, "other"));
      const apart = await spawnGate(t, [], settingsOf(at, "apart", copy));
      for (const gate of [one, other, apart]) assert.equal((await check(gate, note)).status, 200);
      const rotated = await command(["keygen", "--rotate", "--signing-key", at.keyFile, "--name", origin]);
      assert.equal(rotated.code, 0, rotated.stderr);
      const now = await keysOf(at.keyFile);
      assert.match(rotated.stdout, new RegExp(RegExp.escape(now[0]?.text ?? "none")));
      assert.deepEqual(now[1], before);
      assert.equal((await check(other, note)).status, 200, "until one has recorded it");
      assert.equal((await headAt(other, [before])).signed, 1);
      one.kill("SIGTERM");
      assert.equal(await one.exit, 0);
      const again = await spawnGate(t, [], settingsOf(at, "one"));
      assert.equal((await keptHead(at)).signer, now[0]?.text);
      assert.equal((await check(other, note)).status, 200, "with the key of the file");
      const head = await headAt(other, now);
      assert.deepEqual([head.size, head.signed], [6, 2]);
      assert.equal((await headAt(again, [before])).size, 6, "who knows the key before goes on");
      assert.equal(other.stderr(), "");
      await assert.rejects(check(apart, note));
      assert.notEqual(await apart.exit, 0);
      says("the key was rotated in another file", complaint(apart.stderr()));
      assert.equal((await keptHead(at)).seq, 6, "and has signed nothing");
      other.kill("SIGTERM");
      await other.exit;
      const later = await spawnGate(t, [], settingsOf(at, "other"));
      assert.equal((await check(later, note)).status, 200);
      assert.deepEqual(
        (await actsOf(at)).filter((act) => act === "signer.rotate"),
        ["signer.rotate"],
      );
      const ledger = await ledgerOn(at, await open(t, { url: at.url }));
      const transaction = await ledger.begin();
      assert.equal(transaction.store.signer, now[0]?.text);
      await transaction.abort();
      assert.equal((await ask(later, "/ledger/verify")).json.ok, true);
    });

    test("the operator can replace a lost key once, and a replica with the old key stops", async (t) => {
      const at = await newSetup(t, there);
      const gate = await spawnGate(t, [], settingsOf(at, "one"));
      assert.equal((await check(gate, note)).status, 200);
      const next = join(at.folder, "next.key");
      await writeSigningKeys(next, { current: makeSigningKey(), before: undefined });
      const accepting = settingsOf(at, "two", next);
      const replaced = await spawnGate(t, [], { env: { ...accepting.env, SVC_ACCEPT: "signing-key" } });
      const keys = await keysOf(next);
      assert.deepEqual([(await actsOf(at)).at(-1), (await keptHead(at)).signer], ["signer.replace", keys[0]?.text]);
      await assert.rejects(check(gate, note));
      says("the key was replaced", complaint(gate.stderr()));
      assert.equal((await check(replaced, note)).status, 200);
      assert.deepEqual((await headAt(replaced, keys)).size, 3);
      const again = await spawnGate(t, [], { env: { ...accepting.env, SVC_ACCEPT: "signing-key" } });
      assert.equal((await headAt(again, keys)).size, 3, "a second statement of the loss does not change the key");
      assert.equal((await ask(again, "/ledger/verify")).json.ok, true);
    });

    test("a key in a variable is rotated in two steps, and no replica stops", async (t) => {
      const at = await newSetup(t, there);
      const old = readFileSync(at.keyFile, "utf8");
      const next = join(at.folder, "next.key");
      await writeSigningKeys(next, { current: makeSigningKey(), before: undefined });
      const [first, second] = [old + readFileSync(next, "utf8"), readFileSync(next, "utf8") + old];
      const start = (name: string, keys: string) => spawnGate(t, [], settingsOf(at, name, keys));
      const gates = [await start("one", old), await start("other", old)];
      for (const keys of [first, second]) {
        for (const [number, gate] of gates.entries()) {
          gate.kill("SIGTERM");
          await gate.exit;
          gates[number] = await start(`${number}`, keys);
          for (const each of gates) assert.equal((await check(each, note)).status, 200);
        }
      }
      assert.deepEqual(
        (await actsOf(at)).filter((act) => act === "signer.rotate"),
        ["signer.rotate"],
      );
      const both = [...(await keysOf(next)), ...(await keysOf(at.keyFile))];
      assert.equal((await keptHead(at)).signer, both[0]?.text);
      for (const gate of gates) assert.equal((await headAt(gate, both)).signed, 2);
    });
  });

  suite("PostgreSQL: heads of rows that were not committed", () => {
    test("a gate signs nothing more after a gate of a later version has taken over", async (t) => {
      const at = await newSetup(t, there);
      const keys = await keysOf(at.keyFile);
      const gate = await spawnGate(t, [], settingsOf(at, "one"));
      assert.equal((await check(gate, note)).status, 200);
      const before = await keptHead(at);
      await query(at.owner, "UPDATE svc_gate.ledgers SET engine = 'svc-gate/99.0.0'");
      const refused = await check(gate, note);
      assert.deepEqual([refused.status, refused.json.code], [503, "superseded"]);
      const rotated = await command(["keygen", "--rotate", "--signing-key", at.keyFile, "--name", origin]);
      assert.equal(rotated.code, 0);
      const { code, stderr } = await finish(t, ["serve", "--port", "0"], settingsOf(at, "two"));
      assert.equal(code, 1, stderr);
      says("a later gate serves the ledger", complaint(stderr));
      assert.deepEqual(await keptHead(at), before);
      assert.equal((await headAt(gate, keys)).size, 1);
    });

    test("a gate that hangs until its transaction is lost publishes no signed head", async (t) => {
      const at = await newSetup(t, there);
      const keys = await keysOf(at.keyFile);
      const database = await open(t, { url: at.url, within: { lock: 500, idleInTransaction: 5000 } });
      const [hung, other] = [await ledgerOn(at, database), await ledgerOn(at, database)];
      await append(hung, [[entry(), []]]);
      const transaction = await hung.begin();
      transaction.append(entry({ reason: "Svc: never kept" }), []);
      const told: number[] = [];
      hung.watchHeads(({ size }) => told.push(size));
      for (;;) {
        try {
          await append(other, [[entry(), []]]);
          break;
        } catch (error) {
          assert.ok(error instanceof NotKept);
          await wait(50);
        }
      }
      const signed = watchSigning(t);
      await assert.rejects(transaction.commit(), notCommitted);
      const { checkpoint } = await keptHead(at);
      assert.ok(!signed().includes(checkpoint ?? ""));
      assert.deepEqual([told, await hung.checkpoint(), headOf(checkpoint ?? "", keys).size], [[], checkpoint, 2]);
      await append(hung, [[entry(), []]]);
      assert.deepEqual(told, [3], "positive control: a head that was kept is told");
      assert.equal((await hung.verify()).broken, undefined);
    });

    test("a connection cut before COMMIT loses the head and the rows; one cut after it keeps both", async (t) => {
      const at = await newSetup(t, there);
      const keys = await keysOf(at.keyFile);
      const { port } = new URL(at.url);
      const proxy = await startProxy(t, Number(port));
      const through = at.url.replace(`:${port}/`, `:${proxy.port}/`);
      const ledger = await ledgerOn(at, await open(t, { url: through, within: { answer: 5000 } }));
      await append(ledger, [[entry(), []]]);
      const before = await keptHead(at);
      const signed = watchSigning(t);
      for (const [cut, size] of [
        ["before", 1],
        ["after", 2],
        ["silent", 3],
      ] as const) {
        const happened = proxy.cutNext(cut);
        const appended = append(ledger, [[entry({ reason: `Svc: cut ${cut}` }), []]]);
        if (cut === "before") await assert.rejects(appended, notCommitted);
        else await appended;
        await happened;
        const kept = await keptHead(at);
        assert.equal(headOf(kept.checkpoint ?? "", keys).size, size, cut);
        assert.equal(kept.checkpoint === signed().at(-1), cut !== "before", "what it has signed was kept, or not");
        assert.equal(await ledger.checkpoint(), kept.checkpoint);
        if (cut === "before") assert.deepEqual(kept, before);
      }
      assert.deepEqual(
        signed().map((text) => headOf(text, keys).size),
        [2, 2, 3],
      );
      const [lost, later] = signed();
      assert.notEqual(lost, later, "other rows, another head: the first was never seen");
      assert.equal((await ledger.verify()).broken, undefined);
    });
  });
}
