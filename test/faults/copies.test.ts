/**
 * Goal: copies of a ledger do not pass for it, and a folder has one owner. Method: the real gate runs on copies of its
 * own folder: restored after the original continued, continued separately, without the files next to the ledger, with
 * another ledger's files; and several gates run on one folder at once. Some copies can be recognised only from outside,
 * and the test shows this. A gate that checks no pin and one that takes no lock must be noticed.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { control } from "../support/controls/control.ts";
import { Load } from "../support/faults/load.ts";
import { examine, setupIn, type Setup } from "../support/faults/setup.ts";
import { temporaryFolder } from "../support/ledger-fixture.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { runGate, startGate, type GateProcess } from "../support/gate-process.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface CopiedLedger {
  /** The ledger's folder, and a pin outside it. */
  readonly data: string;
  readonly pin: string;
  readonly copy: string;
  readonly settings: Setup["settings"];
}

function copiedLedgerIn(t: TestContext, changes: readonly Mutation[] = []): CopiedLedger {
  const folder = temporaryFolder(t);
  const { data, settings } = setupIn(folder, { changes });
  const pin = join(folder, "outside", "pin");
  mkdirSync(join(folder, "outside"));
  return { data, pin, copy: join(folder, "copy"), settings: { ...settings, SVC_PIN: pin } };
}

/** Makes this many calls at one gate on a folder, and stops it in order. */
async function serveCalls(settings: CopiedLedger["settings"], load: Load, calls: number): Promise<void> {
  const gate = await startGate({ settings });
  await load.run(gate.url, 1, calls).finally(() => gate.stop());
  assert.equal((await gate.ended).code, 0, gate.stderr());
}

function putBack(from: string, to: string): void {
  rmSync(to, { recursive: true });
  cpSync(from, to, { recursive: true });
}

interface Case {
  readonly title: string;
  /** The change of the folder; the gate is stopped. */
  readonly change: (place: CopiedLedger, load: Load) => Promise<void> | void;
  /** With the pin outside, or only with the one in the folder. */
  readonly pinned: "inside" | "outside";
}

const copied = async ({ data, copy, settings }: CopiedLedger, load: Load): Promise<void> => {
  cpSync(data, copy, { recursive: true });
  await serveCalls(settings, load, 3);
};

const cases: readonly Case[] = [
  {
    title: "yesterday's folder with today's pin",
    change: async (setup, load) => {
      await copied(setup, load);
      putBack(setup.copy, setup.data);
    },
    pinned: "outside",
  },
  {
    title: "a copy that went further than the ledger, in its place",
    change: async (setup, load) => {
      cpSync(setup.pin, `${setup.pin}.copy`);
      await copied(setup, load);
      await serveCalls({ ...setup.settings, SVC_DATA_DIR: setup.copy, SVC_PIN: `${setup.pin}.copy` }, new Load(), 5);
      putBack(setup.copy, setup.data);
    },
    pinned: "outside",
  },
  {
    title: "a ledger file without its pin, checkpoint and key",
    change: ({ data }) => {
      for (const name of ["head.pin", "checkpoint", "signing.key"]) rmSync(join(data, name), { force: true });
    },
    pinned: "inside",
  },
  {
    title: "the file under another ledger's pin",
    change: async ({ data, copy, settings }) => {
      const { SVC_PIN: _, ...others } = settings;
      await serveCalls({ ...others, SVC_DATA_DIR: copy }, new Load(), 1);
      cpSync(join(copy, "head.pin"), join(data, "head.pin"));
    },
    pinned: "inside",
  },
  {
    title: "the file without its write-ahead log, copied while a gate served it",
    change: async ({ data, copy, settings }, load) => {
      const { SVC_PIN: _, ...others } = settings;
      const gate = await startGate({ settings: others });
      try {
        await load.run(gate.url, 1, 3);
        cpSync(data, copy, { recursive: true });
      } finally {
        await gate.stop();
      }
      cpSync(join(copy, "ledger.db"), join(data, "ledger.db"));
    },
    pinned: "inside",
  },
];

/** Returns the error of a start after a change; `served` if it serves. */
async function startAfter(
  t: TestContext,
  { change, pinned }: Case,
  changes: readonly Mutation[] = [],
): Promise<string> {
  const setup = copiedLedgerIn(t, changes);
  const { SVC_PIN: _, ...inside } = setup.settings;
  const settings = pinned === "inside" ? inside : setup.settings;
  const load = new Load();
  await serveCalls(settings, load, 5);
  await change(setup, load);
  const ended = await runGate(["serve"], { settings });
  return ended === "served" ? "served" : `${ended.code}: ${ended.stderr}`;
}

/** The error line of a gate that does not start. */
const complaint = (said: string): string => /\bsvc-gate: .*$/m.exec(said)?.[0] ?? said;

const looksAtNothingSeen: readonly Mutation[] = [
  { within: "admit", find: "await requireSeen(found, rowsSeen)", put: "undefined" },
  { within: "admit", find: "await requireSeen(found, seen)", put: "undefined" },
];

suite("starts on copies of a ledger", { tags: ["verify.walks-chain"] }, () => {
  for (const each of cases) {
    test(`a start refuses ${each.title}`, async (t) => {
      const said = await startAfter(t, each);
      assert.match(said, /^1: /);
      says(each.title, complaint(said));
    });
  }

  control("positive control: a gate that ignores its pin is noticed: it serves yesterday's folder", async (t) => {
    assert.equal(await startAfter(t, cases[0] as Case, looksAtNothingSeen), "served");
  });

  test("only the answers that clients keep reveal a folder put back with its pin", async (t) => {
    const setup = copiedLedgerIn(t);
    const { SVC_PIN: _, ...settings } = setup.settings;
    const load = new Load();
    await serveCalls(settings, load, 5);
    await copied({ ...setup, settings }, load);
    putBack(setup.copy, setup.data);
    const { lost, rows } = await examine({ data: setup.data, settings }, load.answers);
    assert.deepEqual([rows, lost.map(({ seq }) => seq)], [5, [6, 7, 8]], "nothing in the folder remembers them");
  });

  test("two copies that both go on fork at the first new row", async (t) => {
    const setup = copiedLedgerIn(t);
    const { SVC_PIN: _, ...settings } = setup.settings;
    const [one, other] = [new Load(), new Load()];
    await serveCalls(settings, one, 5);
    await copied({ ...setup, settings }, one);
    await serveCalls({ ...settings, SVC_DATA_DIR: setup.copy }, other, 3);
    const [mine, theirs] = [one.answers.slice(5), other.answers];
    assert.deepEqual(
      mine.map(({ seq }) => seq),
      theirs.map(({ seq }) => seq),
    );
    assert.ok(
      mine.every(({ hash }, at) => hash !== theirs[at]?.hash),
      "the same numbers, other hashes",
    );
    assert.deepEqual((await examine({ data: setup.data, settings }, mine)).lost, []);
    assert.equal((await examine({ data: setup.data, settings }, theirs)).lost.length, 3);
  });
});

/** Starts one gate for each of the settings at once on one folder; returns those that serve, and the others' errors. */
async function race(
  all: readonly CopiedLedger["settings"][],
): Promise<{ serving: readonly GateProcess[]; said: readonly string[] }> {
  const started = await Promise.allSettled(all.map((settings) => startGate({ settings })));
  return {
    serving: started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : [])),
    said: started.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : [])),
  };
}

const takesNoLock: Mutation = {
  within: "takeOwnership",
  text: "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;",
  put: "SELECT 1;",
};

suite("a folder has one owner", () => {
  test("one of four gates that start at once on a folder serves it, even through a link", async (t) => {
    const { data, settings } = setupIn(temporaryFolder(t));
    mkdirSync(data);
    symlinkSync(data, `${data}-too`);
    const too = { ...settings, SVC_DATA_DIR: `${data}-too` };
    const load = new Load();
    for (let round = 0; round < 3; round += 1) {
      const { serving, said } = await race([settings, too, settings, too]);
      assert.equal(serving.length, 1, said.join("\n"));
      const late = await race([settings]);
      const expected = complaint(late.said[0] ?? "");
      says("another gate serves the folder", expected);
      for (const sentence of said) {
        const isSame = complaint(sentence).replaceAll(`${data}-too`, data) === expected;
        assert.ok(isSame || /another program uses/.test(sentence), sentence);
      }
      await load.run(serving[0]?.url ?? "", 2, 10);
      await serving[0]?.kill();
    }
    const { lost, rows } = await examine({ data, settings }, load.answers, load);
    assert.deepEqual([lost, rows], [[], 60]);
  });

  control("positive control: gates without the lock are noticed, and they still answer no row twice", async (t) => {
    const { data, settings } = setupIn(temporaryFolder(t), { changes: [takesNoLock] });
    await serveCalls(settings, new Load(), 1);
    // Without a lock the gates also write the same small files at once, and sometimes one of them fails at its start.
    let { serving } = await race([settings, settings]);
    for (let again = 0; again < 5 && serving.length < 2; again += 1) {
      await Promise.all(serving.map((gate) => gate.kill()));
      ({ serving } = await race([settings, settings]));
    }
    assert.equal(serving.length, 2, "the lock is what keeps the second out");
    const loads = [new Load(), new Load()];
    await Promise.all(loads.map((load, at) => load.run(serving[at]?.url ?? "", 1, 20)));
    await Promise.all(serving.map((gate) => gate.kill()));
    const answers = loads.flatMap((load) => load.answers);
    assert.ok(
      loads.some((load) => load.answers.length < 20),
      "one of them has ended",
    );
    assert.equal(new Set(answers.map(({ seq }) => seq)).size, answers.length, "no row was answered twice");
    assert.deepEqual((await examine({ data, settings }, answers)).lost, []);
  });
});
