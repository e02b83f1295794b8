/**
 * Goal: a reset by a person lets a counter that a loss has made unknown count from zero; no other counter can be reset.
 * Method: the commands' functions run on folders that gates in this process have written. Then the gate, `replay` and
 * `verify --deep` decide the calls. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { replayAndFold } from "../../packages/records/src/deep/deep.ts";
import { ledgerHistory } from "../../packages/records/src/history.ts";
import { compareWithItself } from "../../packages/records/src/replay/replay.ts";
import { readLedger } from "../../packages/gate/src/ledger/mod.ts";
import {
  backUp,
  calls,
  lose,
  payment,
  purse,
  reasonOf,
  resume,
  resumeAndLift,
  serve,
  siteOf,
  type Site,
} from "../support/backup-kit.ts";
import { ask, check, writeContracts } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  (error: Error): true => {
    says(name, error.message);
    return true;
  };

/** Names that cannot be reset with the loss, and the error for each. */
const wrongNames: readonly (readonly [reset: readonly string[], name: string])[] = [
  [["purse.spend"], "name-with-a-slip"],
  [["spent"], "name-without-its-contract"],
  [["purse.spent", "shop.orders"], "one-name-of-another-contract"],
  [[""], "empty-name"],
];

test("a wrong name resets nothing and does not record the loss", async (t) => {
  const site = siteOf(t);
  await lose(site);
  for (const [at, [reset, name]] of wrongNames.entries()) {
    await assert.rejects(resume(site, { reset }, at === 0 ? site.backup : undefined), saying(name));
    const history = await readLedger(site.data);
    await history.close();
    assert.equal(history.rows, 2);
  }
  const { text } = await resume(site, { reset: ["purse.spent"] });
  assert.match(text, /^ {2}purse\.spent {2}.*\bzero\b.*\brow 3\b/m);
});

test("after a reset a counter forgets its remembered values and sums from zero", async (t) => {
  const site = siteOf(t);
  await lose(site);
  await resumeAndLift(site, { reset: ["purse.payees", "purse.spent", "purse.calls", "purse.all"] }, site.backup);
  let gate = await serve(site);
  assert.equal(await reasonOf(gate, payment("x")), 'Svc: "x" is new', "it was known before the loss");
  assert.equal((await check(gate, payment("x"))).json.verdict, "ALLOW");
  await gate.stop();
  await calls(site, 8);
  gate = await serve(site);
  assert.equal(await reasonOf(gate), "Svc: 100 is spent", "2 of 10 before the loss do not count");
  await gate.stop();
});

test("only a counter that a loss has made unknown can be reset", async (t) => {
  const site = siteOf(t);
  const reset = ["purse.spent"];
  await calls(site, 2);
  const later = { afterRestore: false, reset };
  await assert.rejects(resume(site, later), saying("no-loss-on-record"));
  await backUp(site);
  await calls(site, 2);
  rmSync(site.data, { recursive: true });
  await resume(site, { reset }, site.backup);
  await assert.rejects(resume(site, later), saying("counter-that-is-known"));
  assert.match(
    (await resume(site, { ...later, reset: ["purse.all"] })).text,
    /^row 4 resets counters:\n {2}purse\.all/,
  );
});

test("a second loss makes a reset counter unknown again, and a second reset makes it known", async (t) => {
  const site = siteOf(t);
  await lose(site);
  await resumeAndLift(site, { reset: ["purse.payees"] }, site.backup);
  rmSync(site.backup, { recursive: true });
  await backUp(site);
  await calls(site, 2);
  rmSync(site.data, { recursive: true });
  await resumeAndLift(site, {}, site.backup);
  let gate = await serve(site);
  assert.match(await reasonOf(gate), /is unknown/);
  await gate.stop();
  const reset = ["purse.payees", "purse.spent", "purse.calls", "purse.all"];
  await resume(site, { afterRestore: false, reset });
  gate = await serve(site);
  assert.equal(await reasonOf(gate), 'Svc: "x" is new');
  await gate.stop();
  assert.equal(await replayed(site), "4 0");
});

test("replay applies the reset of a contract that the backup's last row put in force", async (t) => {
  for (const starts of ["", "counters: { purse: { spent: { starts: empty } } }\n"]) {
    const site = siteOf(t);
    await calls(site, 2);
    const text = purse.replace("within: 24h", "within: 23h");
    const mandate = `mandate: test\ncontracts: [contracts/purse.yaml]\n${starts}`;
    let gate = await serve(site);
    writeContracts(site.folder, { contracts: { "purse.yaml": text }, mandate });
    const { key } = JSON.parse(readFileSync(join(site.data, "operator.json"), "utf8"));
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const post = { method: "POST", headers, body: "{}" };
    assert.equal((await ask(gate, "/admin/reload", post)).json.changed, true);
    await gate.stop();
    await backUp(site);
    gate = await serve(site, text, mandate);
    await check(gate, payment());
    await gate.stop();
    rmSync(site.data, { recursive: true });
    await resumeAndLift(site, { reset: ["purse.payees", "purse.spent", "purse.calls", "purse.all"] }, site.backup);
    gate = await serve(site, text, mandate);
    assert.equal(await reasonOf(gate), 'Svc: "x" is new');
    assert.equal((await check(gate, payment("x", 90))).json.verdict, "ALLOW");
    assert.equal(await reasonOf(gate), "Svc: 100 is spent");
    await gate.stop();
    assert.equal(await replayed(site), "5 0", starts);
  }
});

/** Returns how many checks `replay` and `verify --deep` decided again, and how many differ. */
async function replayed({ data }: Site): Promise<string> {
  const ledger = await readLedger(data);
  try {
    const { differs, notReplayable, replayed: count, counters } = await replayAndFold(ledger, () => undefined);
    assert.deepEqual([notReplayable, counters.firstWrong], [0, undefined]);
    let [agreed, disagreed] = [0, 0];
    await compareWithItself(ledgerHistory(ledger), {
      onRow: () => undefined,
      onSkip: (seq, why) => assert.fail(`row ${seq}: ${why}`),
      onAgreement: () => void (agreed += 1),
      differs: (_, { what, was, is }) => assert.fail(`${what}: ${was} ${is} ${(disagreed += 1)}`),
    });
    assert.equal(count, agreed);
    return `${count} ${differs + disagreed}`;
  } finally {
    await ledger.close();
  }
}
