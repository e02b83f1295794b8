/**
 * Goal: on a shared ledger, a start makes the mode stricter for all gates and weakens it only on purpose [first-use 2];
 * a failed start stores nothing [first-use 2, 16]. Method: gates run as processes on the run's PostgreSQL; the
 * test reads banners, errors and receipts.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { Clock, systemTime } from "../../packages/gate/src/server/policy/clock.ts";
import { loadContracts } from "../../packages/gate/src/server/policy/contracts.ts";
import { Gate, type GateOptions } from "../../packages/gate/src/server/service/gate.ts";
import { openPostgres } from "../../packages/gate/src/ledger/in-database.ts";
import { openLedger, type Ledger } from "../../packages/gate/src/ledger/mod.ts";
import type { Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask, desk, finish, key, spawnGate, temporaryFolder, writeContracts, type Spawned } from "../support/gate.ts";
import { engine } from "../support/ledger-fixture.ts";
import { controlPatienceMs, eventually } from "../support/patience.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";
import { notFollowing, twoDesks } from "../support/two-desks.ts";

const says = sentencesOf(import.meta.filename);

/** Returns the line that contains `part`. */
const lineWith = (text: string, part: string): string => text.split("\n").find((line) => line.includes(part)) ?? "";

/** Returns the message of a log line. */
const messageWith = (log: string, part: string): string => String(JSON.parse(lineWith(log, part)).msg);

const server = await sharedPostgres({ after });
if (typeof server === "string")
  test("PostgreSQL: gates on a shared ledger agree on the mode", { skip: server }, () => undefined);
else modes(server);

interface Setup {
  readonly folder: string;
  readonly settings: Readonly<Record<string, string>>;
}

async function newSetup(t: TestContext, there: Databases): Promise<Setup> {
  const database = await there.create();
  const folder = temporaryFolder(t);
  const settings = {
    SVC_API_KEY: key,
    SVC_MANDATE: writeContracts(folder, { contracts: { "desk.yaml": desk } }),
    SVC_DATA_DIR: join(folder, "data"),
    SVC_DATABASE_URL: database.url(),
  };
  return { folder, settings };
}

type Settings = Readonly<Record<string, string>>;

function start(t: TestContext, { folder, settings }: Setup, own: Settings = {}): Promise<Spawned> {
  return spawnGate(t, [], { cwd: folder, env: { ...settings, ...own } });
}

function refused(
  t: TestContext,
  { folder, settings }: Setup,
  own: Settings,
): Promise<{ readonly code: number | string; readonly stderr: string }> {
  return finish(t, ["serve", "--port", "0"], { cwd: folder, env: { ...settings, ...own } });
}

async function modeOf(gate: Spawned, path = ""): Promise<string> {
  const answer = await ask(gate, `${path}/check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"tool_name":"note.add","tool_input":{}}',
  });
  return String(answer.json.mode);
}

async function changesOf(gate: Spawned): Promise<readonly unknown[]> {
  const { receipts } = (await ask(gate, "/receipts?act=reload")).json;
  return receipts.map(({ reason }: { readonly reason: string }) => reason);
}

/** The modes that /health of both gates shows after a reload at the first one, without a call at the second. */
async function shownAfterReload([one, other]: readonly [Desk, Desk], forMs?: number): Promise<void> {
  const shown = async (): Promise<unknown> => (await ask(other, "/health")).json.mode;
  assert.equal(await shown(), "enforce");
  assert.equal((await one.operates("/admin/reload", { mode: "assist" })).status, 200);
  await eventually("the other gate follows", async () => (await shown()) === "assist", forMs);
}

function modes(there: Databases): void {
  suite("PostgreSQL: the mode at gates that no call reaches", () => {
    test("/health shows the mode that another gate has put in force", async (t) => {
      await shownAfterReload(await twoDesks(t, await there.create()));
    });

    control("positive control: a gate that follows only with its next call is noticed", async (t) => {
      const desks = await twoDesks(t, await there.create(), { defects: [notFollowing] });
      await assert.rejects(() => shownAfterReload(desks, controlPatienceMs), assert.AssertionError);
    });
  });

  suite("PostgreSQL: the mode at a start", () => {
    test(
      "a start with a stricter mode changes the mode of all gates and records a row",
      { tags: ["first-use-2"] },
      async (t) => {
        const at = await newSetup(t, there);
        const one = await start(t, at);
        assert.equal(await modeOf(one), "observe");
        const other = await start(t, at, { SVC_MODE: "enforce" });
        says("mode-made-stricter", lineWith(other.stdout(), "SVC_MODE"));
        assert.deepEqual([await modeOf(one), await modeOf(other)], ["enforce", "enforce"]);
        const [reason, ...more] = await changesOf(one);
        says("reason-of-stricter-mode", String(reason));
        assert.deepEqual(more, []);
        const third = await start(t, at);
        assert.equal(await modeOf(third), "enforce", "a plain start keeps the mode");
      },
    );

    test(
      "a weaker mode is refused unless --accept weaker-mode or `reload --mode` asks for it",
      { tags: ["first-use-2"] },
      async (t) => {
        const at = await newSetup(t, there);
        const one = await start(t, at, { SVC_MODE: "enforce" });
        for (const accept of ["", "change"]) {
          const failed = await refused(t, at, { SVC_MODE: "observe", SVC_ACCEPT: accept });
          assert.equal(failed.code, 1);
          says("weaker-mode-refused", lineWith(failed.stderr, "SVC_MODE"));
        }
        assert.deepEqual([await modeOf(one), await changesOf(one)], ["enforce", []]);
        const accepted = await start(t, at, { SVC_MODE: "assist", SVC_ACCEPT: "weaker-mode" });
        says("mode-made-weaker", lineWith(accepted.stdout(), "SVC_MODE"));
        assert.equal(await modeOf(one), "assist");
        const reloaded = await command(["reload", "--mode", "observe"], { folder: at.folder, env: at.settings });
        assert.equal(reloaded.code, 0, reloaded.stderr);
        assert.equal(await modeOf(one), "observe");
        assert.equal((await changesOf(one)).length, 2);
      },
    );

    test(
      "a start that is refused for its mode does not record its rotated signing key",
      { tags: ["first-use-2", "first-use-16"] },
      async (t) => {
        const at = await newSetup(t, there);
        const one = await start(t, at, { SVC_MODE: "enforce" });
        const own = join(at.folder, "own.key");
        cpSync(join(at.folder, "data", "signing.key"), own);
        const rotated = await command(["keygen", "--rotate", "--signing-key", own], { folder: at.folder });
        assert.equal(rotated.code, 0, rotated.stderr);
        const other = {
          ...at,
          settings: { ...at.settings, SVC_DATA_DIR: join(at.folder, "other"), SVC_SIGNING_KEY: own },
        };
        const failed = await refused(t, other, { SVC_MODE: "observe" });
        says("weaker-mode-refused", lineWith(failed.stderr, "SVC_MODE"));
        assert.equal(await modeOf(one), "enforce", "a row of the other key would have stopped this gate");
        await start(t, other, { SVC_MODE: "observe", SVC_ACCEPT: "weaker-mode" });
        await assert.rejects(modeOf(one), "positive control: a start that serves records its key");
      },
    );

    test(
      "if two gates start a ledger at once, the second keeps the contract of the first",
      { tags: ["first-use-2"] },
      async (t) => {
        for (const acceptChange of [false, true]) {
          const { folder, settings } = await newSetup(t, there);
          const database = await openPostgres({
            url: settings.SVC_DATABASE_URL ?? "",
            connectionsMax: 4,
            mayMigrate: true,
          });
          const shared = { database, ledger: "root" };
          const gateOf = async (contract: string, options: Partial<GateOptions>): Promise<[Gate, Ledger]> => {
            const file = join(folder, `${contract}.yaml`);
            writeFileSync(file, desk.replace("contract: desk", `contract: ${contract}`));
            const loaded = await loadContracts(file, file);
            assert.ok(loaded.ok);
            const ledger = await openLedger({ folder, shared, engine });
            const clock = new Clock(systemTime);
            const parts = {
              policySet: loaded.value,
              ledger,
              clock,
              mode: "observe",
              onDefect: () => undefined,
            } as const;
            return [new Gate({ ...parts, ...options }), ledger];
          };
          const [first] = await gateOf("first", {});
          const [second, ledger] = await gateOf("second", { mode: "enforce", acceptChange });
          const keepContract = ledger.keepContract.bind(ledger);
          t.mock.method(ledger, "keepContract", async (text: string) => {
            assert.ok((await first.start()).ok); // the second database has a ledger that nobody has served
            return keepContract(text);
          });
          assert.ok((await second.start()).ok);
          assert.equal(second.policy.mode, "enforce");
          const ofWhom = acceptChange ? "second" : "first";
          assert.deepEqual(
            second.policy.policySet.contracts,
            [ofWhom],
            "positive control: --accept change replaces it",
          );
          await database.close();
        }
      },
    );

    test(
      "a start without an API key leaves no ledger, no mode and no signing key",
      { tags: ["first-use-2", "first-use-16"] },
      async (t) => {
        const at = await newSetup(t, there);
        const { SVC_API_KEY: _none, ...settings } = at.settings;
        const failed = await refused(t, { ...at, settings }, { SVC_MODE: "observe" });
        assert.equal(failed.code, 1);
        says("no-key", lineWith(failed.stderr, "--first-key"));
        assert.equal(existsSync(join(at.folder, "data", "signing.key")), false);
        const gate = await start(t, at, { SVC_MODE: "enforce" });
        assert.deepEqual([await modeOf(gate), await changesOf(gate)], ["enforce", []]);
        assert.ok(existsSync(join(at.folder, "data", "signing.key")), "positive control: a start that serves makes it");
      },
    );

    test("a start with only revoked keys says how to make another", async (t) => {
      const at = await newSetup(t, there);
      const { SVC_API_KEY: _none, ...env } = at.settings;
      for (const args of [
        ["create", "agent"],
        ["revoke", "agent"],
      ]) {
        const done = await command(["keys", ...args], { folder: at.folder, env });
        assert.equal(done.code, 0, done.stderr);
      }
      const failed = await refused(t, { ...at, settings: env }, {});
      says("only-revoked-keys", lineWith(failed.stderr, "keys create"));
    });

    test("a reload keeps the mode that is in force, even if this gate last saw another one", async (t) => {
      const at = await newSetup(t, there);
      const one = await start(t, at);
      const other = await start(
        t,
        { ...at, settings: { ...at.settings, SVC_DATA_DIR: join(at.folder, "other") } },
        {
          SVC_SIGNING_KEY: join(at.folder, "data", "signing.key"),
        },
      );
      const enforced = await command(["reload", "--mode", "enforce"], { folder: at.folder, env: at.settings });
      assert.equal(enforced.code, 0, enforced.stderr);
      const env = { ...at.settings, SVC_DATA_DIR: join(at.folder, "other") };
      const plain = await command(["reload"], { folder: at.folder, env });
      assert.equal(plain.code, 0, plain.stderr);
      assert.deepEqual([await modeOf(one), await modeOf(other)], ["enforce", "enforce"]);
    });

    test("the mode of a tenant in the tenants file follows the same rules", async (t) => {
      const at = await newSetup(t, there);
      const tenants = join(at.folder, "tenants.yaml");
      const write = (mode: string): void =>
        writeFileSync(tenants, `tenants:\n  blue: { mandate: mandate.yaml${mode} }\n`);
      write(", mode: enforce");
      const one = await start(t, at, { SVC_TENANTS: tenants });
      const operator = await command(["keys", "create", "blue", "--tenant", "blue"], {
        folder: at.folder,
        env: at.settings,
      });
      assert.equal(operator.code, 0, operator.stderr);
      const blueKey = operator.stdout.match(/svcg_\S+/)?.[0] ?? "";
      const headers = { authorization: `Bearer ${blueKey}`, "content-type": "application/json" };
      const body = '{"tool_name":"note.add","tool_input":{}}';
      const blue = async (gate: Spawned): Promise<string> => {
        const { status, json } = await ask(gate, "/t/blue/check", { method: "POST", headers, body });
        return `${status} ${json.mode ?? json.code}`;
      };
      assert.equal(await blue(one), "200 enforce");
      write(", mode: observe");
      const plain = await command(["reload", "--tenant", "blue"], { folder: at.folder, env: at.settings });
      assert.notEqual(plain.code, 0);
      says("weaker-mode-of-tenant", lineWith(plain.stderr + plain.stdout, "--tenant blue --mode observe"));
      const elsewhere = { ...at.settings, SVC_DATA_DIR: join(at.folder, "other") };
      const other = await start(
        t,
        { ...at, settings: elsewhere },
        {
          SVC_TENANTS: tenants,
          SVC_SIGNING_KEY: join(at.folder, "data", "signing.key"),
        },
      );
      assert.equal(await blue(other), "503 tenant-unavailable");
      says("tenant-not-served", messageWith(other.stderr(), "weaker-mode"));
      assert.equal(await blue(one), "200 enforce");
      // The refused gate may be the only one, so the command must work there too.
      const named = await command(["reload", "--tenant", "blue", "--mode", "observe"], {
        folder: at.folder,
        env: elsewhere,
      });
      assert.equal(named.code, 0, named.stderr);
      const both = [await blue(one), await blue(other)];
      assert.deepEqual(both, ["200 observe", "200 observe"], "positive control: a person's own word weakens it");
    });
  });
}
