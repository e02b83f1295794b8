/**
 * Goal: rows of kind `result` are valid in each engine and for each verifier, can be erased, and decide nothing.
 * Method: no gate writes them yet, so a writer in this file appends them through the ledger. The ledger is verified,
 * exported, erased and verified again, by itself, by the offline verifier and by both small ones. Rows that name a
 * wrong check and leaves with one changed member must be reported at their row; each has a valid counterpart.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, suite, test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { replayAndFold } from "../../packages/records/src/deep/deep.ts";
import { explainCommand } from "../../packages/records/src/explain/command.ts";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { partText } from "../../packages/core/src/record/entry/evidence.ts";
import { openPostgres, readSharedLedger } from "../../packages/gate/src/ledger/in-database.ts";
import {
  inspectLedger,
  openLedger,
  readLedger,
  type Ledger,
  type LedgerHistory,
} from "../../packages/gate/src/ledger/mod.ts";
import { parseLeaf } from "../../packages/core/src/record/entry/mod.ts";
import { readHint, verifyExport, writeExport } from "../../packages/records/src/export/mod.ts";
import { parseVerifierKey } from "../../packages/core/src/record/tree/mod.ts";
import type { ResultEntry } from "../../packages/gate/src/ledger/entries.ts";
import { control } from "../support/controls/control.ts";
import { ask, check, startGate } from "../support/gate.ts";
import { enactOn, eraseOn, missingIn } from "../support/erasure-suite.ts";
import { append, contracts, engine, entry, sha256, temporaryFolder } from "../support/ledger-fixture.ts";
import { openDatabase } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const root = fileURLToPath(new URL("../..", import.meta.url));
const { at, keyName, mode, toolName, routed, sessionId, contract } = entry();

/** Appends the result of a check, with a keyed digest of each value. */
async function addResult(ledger: Ledger, checkOf: number, over: Partial<ResultEntry> = {}): Promise<void> {
  const transaction = await ledger.begin();
  const of = { at, keyName, mode, toolName, routed, sessionId, contract };
  transaction.result({
    ...of,
    at: Math.max(at, transaction.head.at),
    check: checkOf,
    values: ["0xabc", "anna@example.com"],
    ...over,
  });
  await transaction.commit();
}

/** Makes two checks, an administrative event, and the results of both checks, one of them twice. */
async function fill(ledger: Ledger): Promise<void> {
  await ledger.keepContract(contracts[0]);
  await append(ledger, [[entry(), []], [entry({ toolName: "lookup", routed: false, sessionId: "run-2" }), []]]); // prettier-ignore
  await enactOn(ledger, { by: "operator", act: "reload", body: {}, reason: "Svc: the contract changed" });
  await addResult(ledger, 1);
  await addResult(ledger, 2, { toolName: "lookup", routed: false, sessionId: "run-2", values: ["x", "x"] });
  await addResult(ledger, 1, { values: [], mode: "observe" });
}

interface Engine {
  readonly open: (t: TestContext) => Promise<Ledger>;
  readonly read: (ledger: Ledger) => Promise<LedgerHistory>;
}

interface Judged {
  readonly ok: boolean;
  readonly problem: { readonly row: number; readonly code: string } | null;
}

const { verify } = (await import(join(root, "verify/svc-verify.mjs"))) as {
  readonly verify: (folder: string, keys: readonly string[], witnesses: readonly string[], chain: boolean) => Judged;
};

const summary = ({ ok, problem }: Judged): string => (ok ? "ok" : `${problem?.code} ${problem?.row}`);

/**
 * Returns the results of the three verifiers of exports, two of them also for the chain alone: `ok`, or code and row.
 */
async function judged(ledger: Ledger, engineOf: Engine, to: string): Promise<readonly string[]> {
  const history = await engineOf.read(ledger);
  try {
    await writeExport({ history, note: await ledger.checkpoint() }, to, () => undefined);
  } finally {
    await history.close();
  }
  const { vkeys = [] } = (await readHint(to)) ?? {};
  const keys = vkeys.map((text) => {
    const key = parseVerifierKey(text);
    return key.ok ? key.value : assert.fail(key.problem);
  });
  const said: string[] = [];
  for (const chainAlone of [false, true]) {
    const { problem } = await verifyExport({ folder: to, keys, witnesses: [], chainAlone });
    said.push(problem === undefined ? "ok" : `${problem.code} ${problem.row}`);
    said.push(summary(verify(to, vkeys, [], chainAlone)));
  }
  const python = [join(root, "verify/svc_verify.py"), to, "--key", vkeys[0] ?? ""];
  said.push(summary(JSON.parse(spawnSync("python3", python, { encoding: "utf8" }).stdout) as Judged));
  return said;
}

const all = (word: string): readonly string[] => Array.from({ length: 5 }, () => word);

async function shown(
  ledger: Ledger,
  kind?: "check" | "change" | "result",
): Promise<readonly Record<string, unknown>[]> {
  const slices = await Array.fromAsync(ledger.rows.receipts({ before: Number.MAX_SAFE_INTEGER, limit: 100, kind }));
  return slices.flat().map(({ json }) => JSON.parse(json) as Record<string, unknown>);
}

/** An unlawful way to write a result, and its lawful counterpart. */
const wrong: Readonly<Record<string, readonly [check: number, over: Partial<ResultEntry>]>> = {
  "row 0": [0, {}],
  "its own row": [7, {}],
  "a missing row": [8, {}],
  "an act": [3, {}],
  "another result": [4, {}],
  "a check of another tool": [1, { toolName: "mail.send" }],
  "a check of a tool that a contract routes": [1, { routed: false }],
  "a check by another key": [1, { keyName: "ci" }],
};

function onEngine(name: string, engineOf: Engine): void {
  suite(`${name}: results of tools`, () => {
    test("a result verifies, names its check and contains digests instead of values", async (t) => {
      const ledger = await engineOf.open(t);
      await fill(ledger);
      const { broken, rows } = await ledger.verify();
      assert.deepEqual([broken, rows], [undefined, 6]);
      const result = (await shown(ledger, "result")).find(({ seq }) => seq === 4) ?? assert.fail();
      const digests = ["0xabc", "anna@example.com"].map((value) => ledger.keyDigest(`svc-gate/result/1\n${value}`));
      const { kind, check: checkOf, session_id, tool_name, tool_input, verdict, answered, rule, reason, key } = result;
      assert.deepEqual(
        { kind, checkOf, session_id, tool_name, tool_input, verdict, answered, rule, reason, key },
        {
          kind: "result",
          checkOf: 1,
          session_id: "run-1",
          tool_name: "payment.send",
          tool_input: { digests: digests.toSorted() },
          verdict: null,
          answered: null,
          rule: null,
          reason: null,
          key: "default",
        },
      );
      for await (const slice of ledger.rows.scan(4))
        for (const { evidence } of slice) assert.doesNotMatch(partText(evidence, "input") ?? "", /0xabc|anna/);
      assert.notEqual(digests[0], ledger.keyDigest("0xabc"), "a counter's key of that text has another digest");
    });

    test("a query by kind finds only rows of that kind", async (t) => {
      const ledger = await engineOf.open(t);
      await fill(ledger);
      const seqs = async (...[kind]: Parameters<typeof shown> extends [Ledger, ...infer Rest] ? Rest : never) =>
        (await shown(ledger, kind)).map(({ seq }) => seq);
      assert.deepEqual(await seqs("check"), [2, 1]);
      assert.deepEqual(await seqs("change"), [3]);
      assert.deepEqual(await seqs("result"), [6, 5, 4]);
      assert.deepEqual(await seqs(), [6, 5, 4, 3, 2, 1]);
    });

    test("all verifiers accept exports with results, before and after an erasure", async (t) => {
      const ledger = await engineOf.open(t);
      await fill(ledger);
      const to = join(temporaryFolder(t), "export");
      assert.deepEqual(await judged(ledger, engineOf, to), all("ok"));
      const erased = await eraseOn(ledger, { target: { session: "run-1", key: undefined }, parts: ["call", "input"] });
      assert.deepEqual([erased.matched, erased.rows, erased.acts], [3, 3, 0]);
      assert.deepEqual(
        (await missingIn(ledger)).map((parts, index) => `${index + 1} ${parts}`).filter((text) => /\d ./.test(text)),
        [1, 4, 6].map((seq) => `${seq} call input reason outcome`),
      );
      assert.equal((await ledger.verify()).broken, undefined);
      assert.deepEqual(await judged(ledger, engineOf, to), all("ok"));
      assert.deepEqual(await judged(ledger, engineOf, join(temporaryFolder(t), "export")), all("ok"), "from its start");
      const [row] = (await shown(ledger, "result")).filter(({ seq }) => seq === 4);
      assert.deepEqual([row?.["tool_input"], row?.["session_id"], row?.["check"]], [null, null, 1]);
      const other = (await shown(ledger, "result")).find(({ seq }) => seq === 5);
      assert.notEqual(other?.["tool_input"], null, "positive control: the result of the other session is there");
    });

    test("an erasure by key erases results of that key's calls only", async (t) => {
      const ledger = await engineOf.open(t);
      await fill(ledger);
      const none = await eraseOn(ledger, { target: { session: "run-1", key: "ci" }, parts: ["input"] });
      assert.equal(none.rows, 0);
      const own = await eraseOn(ledger, { target: { session: "run-1", key: keyName }, parts: ["input"] });
      assert.deepEqual([own.rows, own.not_present], [3, []]);
    });

    for (const [what, [checkOf, over]] of Object.entries(wrong))
      test(`all verifiers find a result that names ${what} as its check`, async (t) => {
        const ledger = await engineOf.open(t);
        await fill(ledger);
        await addResult(ledger, checkOf, over);
        const { broken } = await ledger.verify();
        assert.equal(broken?.seq, 7);
        says("a result without its check", broken.problem);
        assert.deepEqual(await judged(ledger, engineOf, join(temporaryFolder(t), "export")), all("result 7"));
      });

    control("positive control: all verifiers accept a result in the same row with the right check", async (t) => {
      const ledger = await engineOf.open(t);
      await fill(ledger);
      await addResult(ledger, 1);
      assert.equal((await ledger.verify()).broken, undefined);
      assert.deepEqual(await judged(ledger, engineOf, join(temporaryFolder(t), "export")), all("ok"));
    });
  });
}

const folders = new WeakMap<Ledger, string>();

async function openSqlite(t: TestContext, folder = temporaryFolder(t)): Promise<Ledger> {
  const ledger = await openLedger({ folder, engine });
  t.after(() => ledger.close().catch(() => undefined));
  folders.set(ledger, folder);
  return ledger;
}

onEngine("SQLite", { open: (t) => openSqlite(t), read: (ledger) => readLedger(folders.get(ledger) ?? "") });

const server = await openDatabase({ after });
if (typeof server === "string") test("PostgreSQL: results of tools", { skip: server }, () => undefined);
else {
  const url = server.url();
  const ids = new WeakMap<Ledger, string>();
  let count = 0;
  onEngine("PostgreSQL", {
    open: async (t) => {
      const database = await openPostgres({ url, mayMigrate: true });
      const id = `results-${(count += 1)}`;
      const ledger = await openLedger({ folder: temporaryFolder(t), shared: { database, ledger: id }, engine });
      t.after(async () => {
        await ledger.close();
        await database.close();
      });
      ids.set(ledger, id);
      return ledger;
    },
    read: (ledger) => readSharedLedger({ url, ledger: ids.get(ledger) ?? "" }),
  });
}

suite("a changed result in the ledger's file", () => {
  const members: readonly (readonly [member: string, change: (leaf: string) => string])[] = [
    ["kind", (leaf) => leaf.replace('"kind":"result"', '"kind":"check"')],
    ["check", (leaf) => leaf.replace('"check":1', '"check":2')],
    ["check, removed", (leaf) => leaf.replace('"check":1,', "")],
    ["answered", (leaf) => leaf.replace('"answered":null', '"answered":"ALLOW"')],
    ["at", (leaf) => leaf.replace(/"at":(\d+)\d/, '"at":$19')],
    ["contract", (leaf) => leaf.replace(/"contract":"[^"]+"/, '"contract":null')],
    ["engine", (leaf) => leaf.replace(/"engine":"/, '"engine":"x')],
    [
      "evidence",
      (leaf) => leaf.replace(/"evidence":"./, (two) => (two.endsWith("a") ? '"evidence":"b' : '"evidence":"a')),
    ],
    ["key", (leaf) => leaf.replace('"key":"default"', '"key":"ci"')],
    ["log", (leaf) => leaf.replace('"log":"', '"log":"x')],
    ["mode", (leaf) => leaf.replace('"mode":"enforce"', '"mode":"assist"')],
    ["prev", (leaf) => leaf.replace(/"prev":"./, (two) => (two.endsWith("a") ? '"prev":"b' : '"prev":"a'))],
    ["rule", (leaf) => leaf.replace('"rule":null', '"rule":"a.b"')],
    ["seq", (leaf) => leaf.replace('"seq":4', '"seq":5')],
    ["tool", (leaf) => leaf.replace('"tool":"payment.send"', '"tool":null')],
    ["v", (leaf) => leaf.replace('"v":1', '"v":2')],
    ["verdict", (leaf) => leaf.replace('"verdict":null', '"verdict":"ALLOW"')],
  ];
  const columns = ["session = NULL", "tool = 'mail.send'", "verdict = 'ALLOW'", "verdict = 'CHANGE'"];

  async function broken(
    t: TestContext,
    alter: (database: DatabaseSync) => void,
  ): Promise<readonly (number | undefined)[]> {
    const ledger = await openSqlite(t);
    await fill(ledger);
    await ledger.close();
    const folder = folders.get(ledger) ?? "";
    const database = new DatabaseSync(join(folder, "ledger.db"));
    alter(database);
    database.close();
    const found = [await inspectLedger({ folder }), await inspectLedger({ folder, chainAlone: true })];
    return found.map((each) => each.broken?.seq);
  }

  for (const [member, change] of members)
    test(`verify finds a result with a changed member: ${member}`, async (t) => {
      const [whole, chain] = await broken(t, (database) => {
        const leaf = String(database.prepare("SELECT leaf FROM receipts WHERE seq = 4").get()?.["leaf"]);
        assert.notEqual(change(leaf), leaf);
        database.prepare("UPDATE receipts SET leaf = ? WHERE seq = 4").run(change(leaf));
      });
      // If a changed leaf is still lawful, the next row or the part's digest reveals the change.
      assert.ok(
        [whole, chain].every((seq) => seq === 4 || seq === 5),
        `${whole} ${chain}`,
      );
    });

  for (const column of columns)
    test(`verify finds a result with a changed column: ${column}`, async (t) => {
      const [whole] = await broken(t, (database) => database.exec(`UPDATE receipts SET ${column} WHERE seq = 4`));
      assert.equal(whole, 4);
    });

  test("verify with the chain alone finds a result that names a wrong check", async (t) => {
    const ledger = await openSqlite(t);
    await fill(ledger);
    await addResult(ledger, 3);
    await ledger.close();
    assert.equal((await inspectLedger({ folder: folders.get(ledger) ?? "", chainAlone: true })).broken?.seq, 7);
  });

  control("positive control: verify accepts the unchanged ledger", async (t) => {
    assert.deepEqual(await broken(t, () => undefined), [undefined, undefined]);
  });
});

test("replay and report count results apart from checks, and explain refuses a result", async (t) => {
  const folder = temporaryFolder(t);
  const first = await startGate(t, { folder });
  for (const n of [1, 2]) await check(first, { tool_name: "note.add", tool_input: { n }, session_id: "run-1" });
  await first.stop();
  const data = join(folder, "data");
  const ledger = await openSqlite(t, data);
  const [row] = await Array.fromAsync(ledger.rows.scan(2));
  const { contract: named = "", key = "", tool, at: then = 0 } = parseLeaf(row?.[0]?.leaf ?? "") ?? {};
  assert.equal(tool, "note.add");
  const from = { at: then, contract: (named ?? "").replace("sha256:", ""), keyName: key ?? "", toolName: "note.add" };
  await addResult(ledger, 2, from);
  await enactOn(ledger, { by: "operator", act: "first-key.change", body: {}, reason: "Svc: a row of an act" });
  await ledger.close();
  assert.notEqual(sha256(contracts[0]), from.contract);

  const deep = await readLedger(data);
  const { replayed, notReplayable, differs, rows } = await replayAndFold(deep, () => undefined);
  await deep.close();
  assert.deepEqual({ replayed, notReplayable, differs, rows }, { replayed: 2, notReplayable: 0, differs: 0, rows: 4 });
  const options = { from: "1", examples: "0", json: true };
  const report = JSON.parse((await reportCommand(data, options)).text);
  assert.deepEqual([report.receipts, report.changes, report.results, report.unreadable], [2, 1, 1, 0]);
  await assert.rejects(explainCommand(undefined, { receipt: "3", dataDir: data } as never), ({ message }: Error) => {
    says("explain refuses a result", message);
    return true;
  });
});

test("GET /receipts lists checks unless kind= or act= ask for others; /ledger/verify counts all rows", async (t) => {
  const folder = temporaryFolder(t);
  const first = await startGate(t, { folder });
  await check(first, { tool_name: "note.add", tool_input: {}, session_id: "run-1" });
  await first.stop();
  const second = await startGate(t, { folder, flags: { mode: "assist" } }); // a change of mode has its row
  await check(second, { tool_name: "note.add", tool_input: {}, session_id: "run-1" });
  const seqs = async (query: string): Promise<readonly number[]> =>
    (await ask(second, `/receipts${query}`)).json.receipts.map(({ seq }: { readonly seq: number }) => seq);
  assert.deepEqual(await seqs(""), [3, 1]);
  assert.deepEqual(await seqs("?kind=check"), [3, 1]);
  assert.deepEqual(await seqs("?kind=all"), [3, 2, 1]);
  assert.deepEqual(await seqs("?kind=change"), [2]);
  assert.deepEqual(await seqs("?act=reload"), [2]);
  assert.deepEqual(await seqs("?act=reload&kind=all"), [2]);
  assert.deepEqual(await seqs("?act=reload&kind=check"), []);
  assert.deepEqual(await seqs("?kind=change&verdict=ALLOW"), []);
  assert.deepEqual(await seqs("?kind=result"), []);
  assert.deepEqual(await seqs("?limit=1&before=3"), [1], "a page has as many checks as it may have");
  assert.equal((await ask(second, "/ledger/verify")).json.rows, 3);
  const { status, json } = await ask(second, "/receipts?kind=act");
  assert.equal(status, 400);
  says("a kind that no row has", json.detail);
});
