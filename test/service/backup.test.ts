/**
 * Goal: the gate distinguishes every way in which a ledger can be behind its pin or a sink, and records a loss once.
 * Method: the commands' functions run on folders that gates in this process have written; then the gate decides calls.
 * UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { BadInput } from "../../packages/gate/src/cli/outcome.ts";
import { restoreCommand } from "../../packages/gate/src/cli/restore.ts";
import { inspectLedger, openLedger } from "../../packages/gate/src/ledger/mod.ts";
import { LedgerRefused } from "../../packages/gate/src/ledger/errors.ts";
import { control } from "../support/controls/control.ts";
import { ask, check } from "../support/gate.ts";
import {
  backUp,
  calls,
  lose,
  payment,
  purse,
  reasonOf,
  refusedWith,
  resume,
  resumeAndLift,
  serve,
  siteOf,
  type Site,
} from "../support/backup-kit.ts";
import { append, contracts, engine, entry, makeSample, sampleRows } from "../support/ledger-fixture.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const lineOf = (text: string, at: number): string => text.split("\n").at(at) ?? "";

/** @param names the names of the sentences, one for each line, from the first */
function refusedAs(
  kind: typeof BadInput | typeof LedgerRefused,
  ...names: readonly string[]
): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof kind, String(error));
    for (const [at, name] of names.entries()) says(name, lineOf(error.message, at));
    return true;
  };
}

suite("backups and the anchors of a ledger", () => {
  for (const name of ["checkpoint", "checkpoint.cosigned", "checkpoint.seen"])
    test(`restore refuses a backup that is behind the file ${name}, and resume renames that file`, async (t) => {
      const site = siteOf(t);
      await lose(site);
      mkdirSync(site.data);
      cpSync(join(site.folder, "old", "checkpoint"), join(site.data, name));
      rmSync(site.pin);
      const options = { dataDir: site.data, pin: site.pin };
      await assert.rejects(restoreCommand(site.backup, options), refusedAs(BadInput, "backup-behind-checkpoint"));
      says("loss-of-rows-3-to-4", lineOf((await resume(site, {}, site.backup)).text, 0));
      assert.match(readFileSync(join(site.data, `${name}.lost`), "utf8"), /^[^\n]+\n4\n/);
      assert.match(readFileSync(join(site.data, "checkpoint"), "utf8"), /^[^\n]+\n3\n/);
      assert.equal((await inspectLedger({ folder: site.data, pinFile: site.pin })).broken, undefined);
    });

  control("positive control: without a checkpoint, restore accepts the same backup", async (t) => {
    const site = siteOf(t);
    await lose(site);
    rmSync(site.pin);
    assert.match((await restoreCommand(site.backup, { dataDir: site.data, pin: site.pin })).text, /^restored 2 rows/);
  });

  test("restore refuses a backup whose rows do not have the checkpoint's root", async (t) => {
    const site = siteOf(t);
    await calls(site, 2);
    await backUp(site);
    renameSync(site.data, join(site.folder, "old"));
    mkdirSync(site.data);
    const signed = readFileSync(join(site.folder, "old", "checkpoint"), "utf8").split("\n");
    signed[2] = `${signed[2]?.startsWith("A") === true ? "B" : "A"}${signed[2]?.slice(1)}`;
    writeFileSync(join(site.data, "checkpoint"), signed.join("\n"));
    await assert.rejects(
      restoreCommand(site.backup, { dataDir: site.data, pin: site.pin }),
      refusedAs(BadInput, "backup-beside-checkpoint"),
    );
  });

  test("a gate refuses a ledger with another row than its head pin has seen, and resume records it", async (t) => {
    const site = siteOf(t);
    await calls(site, 2);
    cpSync(site.data, join(site.folder, "twin"), { recursive: true });
    await calls(site, 1);
    const seen = readFileSync(site.pin, "utf8");
    rmSync(site.data, { recursive: true });
    renameSync(join(site.folder, "twin"), site.data);
    rmSync(site.pin);
    const ledger = await openLedger({ folder: site.data, engine, pinFile: site.pin, acceptMissingPin: true });
    await ledger.keepContract(contracts[0]);
    for (let row = 0; row < 2; row += 1) await append(ledger, [[entry({ at: Date.now() }), []]]);
    await ledger.close();
    writeFileSync(site.pin, seen);
    await assert.rejects(serve(site), refusedAs(LedgerRefused, "ledger-beside-head-pin"));
    says("loss-of-another-row-3", lineOf((await resumeAndLift(site)).text, 0));
    const gate = await serve(site);
    assert.match(await reasonOf(gate), /is unknown/);
  });

  test("restore refuses a backup behind a file sink or a given checkpoint, and resume records the loss", async (t) => {
    const site = siteOf(t);
    await lose(site);
    rmSync(site.pin);
    const brought = join(site.folder, "brought");
    cpSync(join(site.folder, "old", "checkpoint"), brought);
    const options = { dataDir: site.data, pin: site.pin };
    await assert.rejects(
      restoreCommand(site.backup, { ...options, seen: [brought] }),
      refusedAs(BadInput, "backup-behind-given-file"),
    );
    await assert.rejects(
      restoreCommand(site.backup, { ...options, seen: [`${brought}.none`] }),
      refusedWith(/\bbrought\.none\b.*\bENOENT\b/),
    );
    process.env["SVC_SINKS"] = `file:${brought}`;
    t.after(() => delete process.env["SVC_SINKS"]);
    await assert.rejects(restoreCommand(site.backup, options), refusedAs(BadInput, "backup-behind-file-sink"));
    says("loss-of-rows-3-to-4", lineOf((await resume(site, {}, site.backup)).text, 0));
    says("loss-recorded-before", (await resume(site)).text);
    process.env["SVC_SINKS"] = "file:relative";
    await assert.rejects(resume(site), refusedAs(BadInput, "relative-file-sink"));
  });

  test("restore says that the first key is missing only if no gate would make one", async (t) => {
    const site = siteOf(t);
    await calls(site, 1);
    const digests = join(site.data, "keys.json");
    writeFileSync(digests, "{}");
    await backUp(site);
    const lastLine = async (change: () => void): Promise<string | undefined> => {
      rmSync(site.data, { recursive: true });
      mkdirSync(site.data);
      change();
      return (await restoreCommand(site.backup, { dataDir: site.data, pin: site.pin })).text.split("\n").at(-1);
    };
    says("first-key-missing", (await lastLine(() => undefined)) ?? "");
    const isThere = await lastLine(() => writeFileSync(join(site.data, "first-key"), "k"));
    assert.match(isThere ?? "", /^restored 1 row /, "positive control: it is there");
    rmSync(join(site.backup, "keys.json"));
    assert.match((await lastLine(() => undefined)) ?? "", /^restored 1 row /, "a gate makes one");
    assert.ok(!existsSync(digests));
  });

  test("restore refuses the head pin of another ledger", async (t) => {
    const [site, other] = [siteOf(t), siteOf(t)];
    await lose(site);
    await calls(other, 1);
    const options = { dataDir: site.data, pin: other.pin };
    await assert.rejects(restoreCommand(site.backup, options), refusedAs(LedgerRefused, "head-pin-of-another-ledger"));
  });
});

suite("resuming a ledger after a loss", () => {
  test("resume records a loss once, even if the pin was not updated", async (t) => {
    const site = siteOf(t);
    await lose(site);
    const before = readFileSync(site.pin, "utf8");
    const said = (await resume(site, {}, site.backup)).text;
    says("loss-of-rows-3-to-4", lineOf(said, 0));
    says("mode-after-loss", lineOf(said, 1));
    const after = readFileSync(site.pin, "utf8");
    writeFileSync(site.pin, before);
    says("loss-recorded-before", (await resume(site)).text);
    assert.equal(readFileSync(site.pin, "utf8"), after);
    assert.equal((await inspectLedger({ folder: site.data, pinFile: site.pin })).rows, 3);
    await assert.rejects(resume(site), refusedAs(LedgerRefused, "nothing-lost-by-head-pin"));
  });

  test("resume refuses a ledger that a gate serves, and a folder without a ledger", async (t) => {
    const site = siteOf(t);
    const gate = await serve(site);
    await check(gate, payment());
    await assert.rejects(resume(site), refusedAs(LedgerRefused, "another-gate-serves"));
    await gate.stop();
    await assert.rejects(resume(site, { dataDir: join(site.folder, "none") }), refusedAs(LedgerRefused, "no-ledger"));
    assert.ok(!existsSync(join(site.folder, "none")));
  });

  test("if the signing key is lost too, resume first adds the row of a new key", async (t) => {
    const site = siteOf(t);
    await calls(site, 2);
    await backUp(site, { withSigningKey: false });
    await calls(site, 2);
    rmSync(site.data, { recursive: true });
    await assert.rejects(
      resume(site, {}, site.backup),
      refusedAs(BadInput, "signing-key-missing", "backup-lies-there"),
    );
    says("loss-after-new-signing-key", lineOf((await resume(site, { accept: "signing-key" })).text, 0));
    const gate = await serve(site);
    const { receipts } = (await ask(gate, "/receipts?kind=all&limit=2")).json;
    assert.deepEqual(
      receipts.map(({ act }: { act: string }) => act),
      ["resume", "signer.replace"],
    );
    assert.equal((await ask(gate, "/ledger/verify")).json.ok, true);
    await assert.rejects(resume(site, { accept: "clock" }), refusedWith(/--accept must be signing-key here/));
  });

  test("a backup contains the signing key only on request, and only its owner can read it", async (t) => {
    const site = siteOf(t);
    await calls(site, 1);
    const said = (await backUp(site, { withSigningKey: false })).text;
    says("backup-without-signing-key", lineOf(said, -1));
    assert.ok(!existsSync(join(site.backup, "signing.key")));
    rmSync(site.backup, { recursive: true });
    says("backup-with-signing-key", lineOf((await backUp(site)).text, -1));
    for (const name of ["ledger.db", "head.pin", "signing.key"])
      assert.equal(statSync(join(site.backup, name)).mode & 0o777, 0o600, name);
    assert.equal(statSync(site.backup).mode & 0o777, 0o700);
  });

  test("a counter that starts empty is unknown right after a loss, but not after later rows", async (t) => {
    for (const between of [0, 1]) {
      const site = siteOf(t);
      await lose(site);
      await resumeAndLift(site, {}, site.backup);
      if (between > 0) await calls(site, between);
      const text = purse.replace("within: 24h", "within: 23h");
      const mandate =
        "mandate: test\ncontracts: [contracts/purse.yaml]\ncounters: { purse: { spent: { starts: empty } } }\n";
      const gate = await serve(site, text, mandate);
      const reason = await reasonOf(gate, payment("x", 100));
      if (between === 0) assert.match(reason, /purse\.spent is unknown/);
      else assert.doesNotMatch(reason, /purse\.spent is unknown/);
    }
  });

  test("a counter that comes into force after a loss is unknown", async (t) => {
    const site = siteOf(t);
    await lose(site);
    await resumeAndLift(site, {}, site.backup);
    await calls(site, 1);
    const gate = await serve(site, purse.replace("within: 24h", "within: 23h"));
    assert.match(await reasonOf(gate), /purse\.spent is unknown/);
  });
});

suite("tenants", () => {
  const ids = ["acme", "beta"];

  /** Makes a root and two tenants, each with its pin on another disk. */
  async function makeAll({ data, pin }: Site): Promise<void> {
    await makeSample(data, pin);
    for (const id of ids) await makeSample(join(data, "tenants", id), `${pin}.${id}`);
  }

  test("one backup contains all tenants, and restore brings back all of them or one", async (t) => {
    const site = siteOf(t);
    await makeAll(site);
    const { ledgers } = JSON.parse((await backUp(site, { json: true })).text);
    assert.deepEqual(
      ledgers.map(({ tenant, rows }: { tenant: string | null; rows: number }) => [tenant, rows]),
      [null, ...ids].map((tenant) => [tenant, sampleRows]),
    );
    const options = { dataDir: site.data, pin: site.pin };
    rmSync(join(site.data, "tenants", "acme"), { recursive: true });
    await assert.rejects(restoreCommand(site.backup, options), refusedAs(LedgerRefused, "ledger-is-there"));
    assert.match(
      (await restoreCommand(site.backup, { ...options, tenant: "acme" })).text,
      new RegExp(`^restored ${sampleRows} rows .*tenant acme`),
    );
    await assert.rejects(
      restoreCommand(site.backup, { ...options, tenant: "gamma" }),
      refusedAs(LedgerRefused, "no-ledger-of-tenant"),
    );
    rmSync(site.data, { recursive: true });
    assert.equal((await restoreCommand(site.backup, options)).text.split("\n").length, 3);
    for (const path of [".", "tenants/acme", "tenants/beta"])
      assert.equal((await inspectLedger({ folder: join(site.data, path) })).rows, sampleRows);
  });

  test("a tenant behind its pin prevents the restore of all tenants, and can be resumed alone", async (t) => {
    const site = siteOf(t);
    await makeAll(site);
    await backUp(site);
    const folder = join(site.data, "tenants", "acme");
    const pinFile = `${site.pin}.acme`;
    const ledger = await openLedger({ folder, engine, pinFile });
    await append(ledger, [[entry({ at: Date.now() }), []]]);
    await ledger.close();
    rmSync(site.data, { recursive: true });
    const options = { dataDir: site.data, pin: site.pin };
    await assert.rejects(restoreCommand(site.backup, options), refusedAs(BadInput, "tenant-behind-its-pin"));
    assert.ok(!existsSync(site.data));
    says("loss-of-tenant", lineOf((await resume(site, { tenant: "acme" }, site.backup)).text, 0));
    const found = await inspectLedger({ folder, pinFile });
    assert.deepEqual([found.rows, found.broken, found.anchored?.seq], [sampleRows + 1, undefined, sampleRows + 1]);
    await restoreCommand(site.backup, { ...options, tenant: "beta" });
    await assert.rejects(resume(site, {}, site.backup), refusedAs(BadInput, "nothing-lost-by-backup"));
  });
});

test("resume refuses a reason or a name that does not fit on one line", async (t) => {
  const site = siteOf(t);
  for (const reason of ["", " ", "two\nlines", "x".repeat(501)])
    await assert.rejects(resume(site, { reason }), refusedWith(/--reason must be one line/));
  for (const by of ["", "a\u0007", "x".repeat(65)])
    await assert.rejects(resume(site, { by }), refusedWith(/is not a name/));
  await assert.rejects(resume(site, { afterRestore: false }), refusedWith(/add --after-restore/));
});
