import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Eraser, type ErasureResult } from "../../packages/gate/src/server/erasure/eraser.ts";
import { Retention } from "../../packages/gate/src/server/erasure/retention.ts";
import type { EraseRequest } from "../../packages/gate/src/server/erasure/request.ts";
import type { AdminEvent } from "../../packages/gate/src/server/policy/admin-event.ts";
import { erasureBody, type Erasure } from "../../packages/core/src/record/entry/erasure.ts";
import { missingParts } from "../../packages/core/src/record/entry/evidence.ts";
import type { Ledger } from "../../packages/gate/src/ledger/mod.ts";
import { good, type Mode } from "../../packages/core/src/wire/mod.ts";
import { append, contracts, entry, sha256 } from "./ledger-fixture.ts";

/** A ledger on an engine, and a way to change it without a gate. */
export interface ErasureEngine {
  /** Makes a new ledger, which ends with the test. */
  readonly open: (t: TestContext) => Promise<Ledger>;
  /** Sets columns of a row by SQL, as an owner of the tables can. */
  readonly alter: (ledger: Ledger, seq: number, set: string) => Promise<void>;
}

export const at0 = 1_790_000_000_000;
export const hourMs = 3_600_000;

/** Makes rows of checks, an hour apart: four sessions in turn under two keys; each text contains the row's number. */
export async function fill(ledger: Ledger, from: number, to: number): Promise<void> {
  await ledger.keepContract(contracts[0]);
  for (let first = from; first <= to; first += 100) {
    const rows = Array.from({ length: Math.min(100, to - first + 1) }, (_, index) => first + index);
    await append(
      ledger,
      rows.map((seq) => [checkOf(seq), []]),
    );
  }
}

function checkOf(seq: number): ReturnType<typeof entry> {
  return entry({
    at: at0 + seq * hourMs,
    keyName: seq % 8 < 4 ? "ci" : "desk",
    sessionId: `run-${seq % 4}`,
    toolName: `tool ${seq}`,
    routed: false,
    inputText: `{"row":${seq}}`,
    platformText: seq % 3 === 0 ? null : `{"payee":"p${seq}"}`,
    reason: `Svc: row ${seq} is fine`,
  });
}

/** A person's act, in a transaction of its own. */
export async function enactOn(ledger: Ledger, act: AdminEvent, at?: number): Promise<void> {
  const transaction = await ledger.begin();
  const mode: Mode = "enforce";
  transaction.change({ ...act, at: at ?? transaction.head.at, contract: sha256(contracts[0]), mode });
  await transaction.commit();
}

export function eraserOn(ledger: Ledger): Eraser {
  const appendAdminEvent: ConstructorParameters<typeof Eraser>[0]["appendAdminEvent"] = async (makeEvent) => {
    const transaction = await ledger.begin();
    const { at } = transaction.head;
    const act = await makeEvent(transaction, at);
    if (!act.ok) return act;
    transaction.change({ ...act.value, at, contract: sha256(contracts[0]), mode: "enforce" });
    const [receipt] = await transaction.commit();
    return good(receipt ?? assert.fail());
  };
  return new Eraser({ ledger, appendAdminEvent, scrub: (rewrite) => ledger.scrub(rewrite) });
}

export async function eraseOn(ledger: Ledger, request: Omit<EraseRequest, "reason">): Promise<ErasureResult> {
  const eraser = eraserOn(ledger);
  const erased = await eraser.erase({ ...request, reason: "they asked for it" }, "dpo");
  eraser.close();
  return erased.ok ? erased.value : assert.fail(erased.problem.detail);
}

/** Erases parts without a gate, so that the removed parts and the row's list may differ. */
async function eraseFalsely(ledger: Ledger, taken: Erasure, said: Erasure): Promise<void> {
  await enactOn(ledger, { by: "dpo", act: "erase", body: erasureBody(said), reason: "why", erases: taken });
}

/** Returns the missing parts of each row, as a text. */
export async function missingIn(ledger: Ledger): Promise<readonly string[]> {
  const rows = (await Array.fromAsync(ledger.rows.scan(1))).flat();
  return rows.map(({ evidence }) => missingParts(evidence).join(" "));
}

export function erasureSuite(name: string, { open, alter }: ErasureEngine): void {
  const shown = async (ledger: Ledger, seq: number): Promise<Readonly<Record<string, unknown>>> => {
    const [[row] = []] = await Array.fromAsync(ledger.rows.receipts({ before: seq + 1, limit: 1 }));
    return JSON.parse(row?.json ?? "null");
  };
  const firstBroken = async (ledger: Ledger): Promise<number | undefined> => (await ledger.verify()).broken?.seq;

  suite(`${name}: erasure`, () => {
    test("parts of named rows are removed, all proofs stay valid, and the row names the reason and the person", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 12);
      const leaves = (await Array.fromAsync(ledger.rows.scan(1))).flat().map(({ leaf }) => leaf);
      const rows = [[3, 3], [7, 9]] as const; // prettier-ignore
      const erased = await eraseOn(ledger, { target: { rows }, parts: ["platform"] });
      assert.deepEqual([erased.rows, erased.parts, erased.acts, erased.more], [4, 12, 0, false]);
      assert.deepEqual(
        erased.receipts.map(({ seq }) => seq),
        [13],
      );
      const missing = await missingIn(ledger);
      assert.deepEqual(
        missing.flatMap((parts, index) => (parts === "" ? [] : [`${index + 1} ${parts}`])),
        [3, 7, 8, 9].map((seq) => `${seq} platform reason outcome`),
      );
      const act = await shown(ledger, 13);
      const { parts, rows: named } = act["tool_input"] as Erasure;
      assert.deepEqual(
        [act["act"], act["key"], act["reason"]],
        ["erase", "dpo", "Svc: dpo erased outcome, platform, reason of 4 receipts: they asked for it"],
      );
      assert.deepEqual([parts, named], [["outcome", "platform", "reason"], rows]);
      const row = await shown(ledger, 7);
      assert.deepEqual(row["erased"], ["outcome", "platform", "reason"]);
      assert.deepEqual([row["platform_state"], row["reason"], row["session_id"]], [null, null, "run-3"]);
      assert.equal("erased" in (await shown(ledger, 6)), false);
      assert.deepEqual(
        (await Array.fromAsync(ledger.rows.scan(1))).flat().slice(0, 12).map(({ leaf }) => leaf),
        leaves,
      ); // prettier-ignore
      assert.equal(await firstBroken(ledger), undefined);
    });

    test("an erased call's columns are removed, and no query finds the row by them", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 6);
      await eraseOn(ledger, { target: { rows: [[2, 2]] }, parts: ["call"] });
      const [[row] = []] = await Array.fromAsync(ledger.rows.find({ before: 3, limit: 1 }));
      assert.deepEqual([row?.session, row?.tool], [null, ""]);
      const found = await Array.fromAsync(ledger.rows.find({ before: 99, limit: 99, session: "run-2" }));
      assert.deepEqual(
        found.flat().map(({ seq }) => seq),
        [6],
      );
      assert.equal(await firstBroken(ledger), undefined);
      await alter(ledger, 2, "session = 'run-2'");
      assert.equal(await firstBroken(ledger), 2, "what was erased is not to come back in a column");
      await alter(ledger, 2, "session = NULL, tool = 'tool 2'");
      assert.equal(await firstBroken(ledger), 2);
    });

    test("an erasure skips parts that are already erased, and writes no row if nothing is left", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 6);
      await eraseOn(ledger, { target: { rows: [[2, 3]] }, parts: ["reason"] });
      const again = await eraseOn(ledger, { target: { rows: [[2, 3]] }, parts: ["reason"] });
      assert.deepEqual([again.matched, again.rows, again.receipts.length, ledger.head.seq], [2, 0, 0, 7]);
      const more = await eraseOn(ledger, { target: { rows: [[1, 7]] }, parts: ["reason", "outcome"] });
      assert.deepEqual(
        [more.matched, more.rows, more.parts, more.acts],
        [6, 6, 10, 1],
        "row 7 records an act, which stays",
      );
      assert.equal(await firstBroken(ledger), undefined);
    });

    test("an erasure selects a session of one key, a session of all keys, or rows before a time", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 40);
      const matches: number[] = [];
      const of = async (target: EraseRequest["target"]): Promise<readonly number[]> => {
        const before = await missingIn(ledger);
        matches.push((await eraseOn(ledger, { target, parts: ["input"] })).matched);
        const after = await missingIn(ledger);
        return after.flatMap((parts, index) => (parts === (before[index] ?? "") ? [] : [index + 1]));
      };
      assert.deepEqual(await of({ session: "run-1", key: "ci" }), [1, 9, 17, 25, 33]);
      assert.deepEqual(await of({ session: "run-1", key: undefined }), [5, 13, 21, 29, 37]);
      assert.deepEqual(await of({ session: "nobody's", key: undefined }), []);
      assert.deepEqual(await of({ session: "run-1", key: "nobody's" }), []);
      assert.deepEqual(await of({ before: at0 + 4 * hourMs }), [2, 3]);
      assert.deepEqual(matches, [5, 10, 0, 0, 3], "those that were erased before are named too");
      assert.equal(await firstBroken(ledger), undefined);
    });

    test("many rows are erased in slices, each with its row, and a concurrent walk reports no error", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 1400);
      const erasing = { isDone: false };
      const walks = (async (): Promise<readonly (number | undefined)[]> => {
        const found: (number | undefined)[] = [];
        while (!erasing.isDone) {
          found.push(await firstBroken(ledger));
          await setImmediate();
        }
        return found;
      })();
      const erased = await eraseOn(ledger, { target: { rows: [[1, 1400]] }, parts: ["call", "input", "platform"] });
      erasing.isDone = true;
      assert.deepEqual([erased.rows, erased.parts, erased.receipts.length], [1400, 7000, 3]);
      const found = await walks;
      assert.ok(found.length > 0);
      assert.deepEqual(new Set(found), new Set([undefined]));
    });

    test("evidence is erased by its age once, in separate rows", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 60);
      let now = at0 + 60 * hourMs;
      const said: unknown[] = [];
      const note = (...args: readonly unknown[]): void => void said.push(args);
      const log = { error: note, info: note, warn: note };
      const make = (): Retention =>
        new Retention({ eraser: eraserOn(ledger), ledger, days: 1, tenant: null, log, now: () => now });
      const [first, second] = [make(), make()];
      const rowsOf = async (retention: Retention): Promise<number> => {
        const erased = await retention.run();
        return erased.ok ? erased.value.rows : assert.fail(erased.problem.detail);
      };
      assert.equal(await rowsOf(first), 35, "rows 1 to 35 are over a day old");
      assert.equal(ledger.head.seq, 61);
      assert.equal(await rowsOf(first), 0);
      now += 10 * hourMs;
      assert.equal(await rowsOf(second), 10, "another process goes on where the row says");
      assert.equal(await rowsOf(first), 0);
      const act = await shown(ledger, 62);
      assert.deepEqual([act["key"], (act["tool_input"] as Erasure).rows], ["retention", [[36, 45]]]);
      assert.match(String(act["reason"]), /SVC_RETENTION_DAYS is 1\b/);
      assert.deepEqual(
        (await missingIn(ledger)).map((parts) => parts.split(" ").filter(Boolean).length),
        [...Array<number>(45).fill(5), ...Array<number>(17).fill(0)],
      );
      assert.equal(await firstBroken(ledger), undefined);
      assert.deepEqual(said, []);
    });
  });

  suite(`${name}: parts that are missing without a lawful row`, () => {
    const reason = { parts: ["reason"] } as const;
    const cases: readonly (readonly [title: string, taken: Erasure, said: Erasure, broken: number | undefined])[] = [
      ["nothing is wrong", { ...reason, rows: [[3, 5]] }, { ...reason, rows: [[3, 5]] }, undefined],
      ["other rows are named", { ...reason, rows: [[3, 5]] }, { ...reason, rows: [[4, 6]] }, 3],
      ["one row is not named", { ...reason, rows: [[3, 5]] }, { ...reason, rows: [[3, 3], [5, 5]] }, 4], // prettier-ignore
      ["another part is named", { ...reason, rows: [[3, 5]] }, { parts: ["outcome"], rows: [[3, 5]] }, 3],
      ["a part more is gone", { parts: ["outcome", "reason"], rows: [[5, 5]] }, { ...reason, rows: [[5, 5]] }, 5],
      ["the row names itself", { ...reason, rows: [[3, 5]] }, { ...reason, rows: [[3, 11]] }, 11],
    ];
    for (const [title, taken, said, broken] of cases) {
      test(title, async (t) => {
        const ledger = await open(t);
        await fill(ledger, 1, 10);
        await eraseFalsely(ledger, taken, said);
        assert.equal(await firstBroken(ledger), broken);
      });
    }

    test("a part that is removed by hand is found, even if an earlier row named its row", async (t) => {
      const ledger = await open(t);
      await fill(ledger, 1, 10);
      await eraseOn(ledger, { target: { rows: [[3, 3]] }, parts: ["reason"] });
      await fill(ledger, 12, 14);
      const rows = (await Array.fromAsync(ledger.rows.scan(1))).flat();
      const without = (seq: number, part: number): string => {
        const parts = rows[seq - 1]?.evidence.split("~") ?? [];
        const digest = sha256(parts[part] ?? "");
        parts[part] = `!${Buffer.from(digest, "hex").toString("base64url")}`;
        return `evidence = '${parts.join("~")}'`;
      };
      const whole = (seq: number): string => `evidence = '${rows[seq - 1]?.evidence ?? ""}'`;
      for (const [seq, part] of [
        [2, 1],
        [12, 3],
        [3, 1],
        [11, 3],
        [11, 1],
        [4, 5],
      ] as const) {
        // prettier-ignore
        await alter(ledger, seq, without(seq, part));
        assert.equal(await firstBroken(ledger), seq, `row ${seq}, part ${part}`);
        await alter(ledger, seq, whole(seq));
      }
      assert.equal(await firstBroken(ledger), undefined, "positive control");
    });
  });
}
