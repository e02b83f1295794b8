/**
 * Goal: a gate that must not serve says why in one sentence, ends with a non-zero exit code, and replaces nothing.
 * Method: each possible state of the data folder is made, the real process is started, and the folder is compared with
 * its earlier content.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { readConfig } from "../../packages/gate/src/server/start/config.ts";
import { StartRefused } from "../../packages/gate/src/server/errors.ts";
import { serve } from "../../packages/gate/src/server/start/serve.ts";
import { LedgerRefused } from "../../packages/gate/src/ledger/errors.ts";
import { openLedger } from "../../packages/gate/src/ledger/mod.ts";
import { apiKey, runGate, startGate, type Ended } from "../support/gate-process.ts";
import { append, engine, entry, sha256, temporaryFolder } from "../support/ledger-fixture.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** The paths of one gate: its data folder and a mandate next to it. */
interface GateSource {
  readonly folder: string;
  readonly data: string;
  readonly settings: Readonly<Record<string, string>>;
}

function sourceIn(folder: string): GateSource {
  const data = join(folder, "data");
  return {
    folder,
    data,
    settings: { SVC_DATA_DIR: data, SVC_MANDATE: join(import.meta.dirname, "..", "..", "mandate.yaml") },
  };
}

async function fill(
  folder: string,
  { rows = 3, at = 1_790_000_000_000, name = "example.org/one", pinFile = undefined as string | undefined } = {},
): Promise<void> {
  const ledger = await openLedger({ folder, engine, name, pinFile });
  const contract = "contract: c\n";
  await ledger.keepContract(contract);
  await append(
    ledger,
    Array.from({ length: rows }, () => [entry({ at, contract: sha256(contract) }), []] as const),
  );
  await ledger.close();
}

async function fillWithEmptyLog({ data }: GateSource): Promise<void> {
  await fill(data);
  writeFileSync(join(data, "ledger.db-wal"), "");
}

function alter(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec(sql);
  database.close();
}

/** Returns the folder's content without the lock and the engine's temporary files. */
function contentOf(folder: string): Readonly<Record<string, string>> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return {};
  const names = readdirSync(folder).filter((name) => !/^owner\.lock|-wal$|-shm$/.test(name));
  return Object.fromEntries(names.toSorted().map((name) => [name, fingerprint(join(folder, name))]));
}

function fingerprint(path: string): string {
  return statSync(path).isDirectory() ? "a folder" : sha256(readFileSync(path));
}

interface Case {
  readonly title: string;
  readonly make: (source: GateSource) => Promise<void> | void;
  readonly settings?: (source: GateSource) => Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
  readonly serves?: true;
}

const cases: readonly Case[] = [
  {
    title: "a file is in the place of the data folder",
    make: ({ data }) => writeFileSync(data, "x"),
  },
  {
    title: "the parent of the data folder is a file",
    make: ({ folder }) => writeFileSync(join(folder, "f"), "x"),
    settings: ({ folder }) => ({ SVC_DATA_DIR: join(folder, "f", "data") }),
  },
  {
    title: "a folder is in the place of the ledger's file",
    make: ({ data }) => void mkdirSync(join(data, "ledger.db"), { recursive: true }),
  },
  {
    title: "a folder is in the place of the write-ahead log",
    make: async ({ data }) => {
      await fill(data);
      mkdirSync(join(data, "ledger.db-wal"));
    },
  },
  {
    title: "the last row was changed",
    make: async ({ data }) => {
      await fill(data);
      alter(data, "UPDATE receipts SET verdict = 'BLOCK' WHERE seq = 3");
    },
  },
  {
    title: "the ledger's file is not a database",
    make: async ({ data }) => {
      await fill(data);
      writeFileSync(join(data, "ledger.db"), "no database".repeat(1000));
    },
  },
  {
    title: "the ledger's file is gone",
    make: async ({ data }) => {
      await fill(data);
      rmSync(join(data, "ledger.db"));
    },
  },
  {
    title: "the ledger's file is empty",
    make: async ({ data }) => {
      await fill(data);
      writeFileSync(join(data, "ledger.db"), "");
    },
  },
  {
    title: "rows are missing from the end of the ledger",
    make: async ({ data }) => {
      await fill(data);
      alter(data, "DELETE FROM receipts WHERE seq > 1");
    },
  },
  {
    title: "the pinned row has another hash",
    make: async ({ data }) => {
      await fill(data);
      const pin = readFileSync(join(data, "head.pin"), "utf8");
      writeFileSync(join(data, "head.pin"), pin.replace(/"hash":"[0-9a-f]{8}/, '"hash":"00000000'));
    },
  },
  {
    title: "the file belongs to another ledger",
    make: async ({ folder, data }) => {
      await fill(data);
      await fill(join(folder, "other"), { name: "example.org/other" });
      cpSync(join(folder, "other", "ledger.db"), join(data, "ledger.db"));
    },
  },
  {
    title: "the pin is gone",
    make: async ({ data }) => {
      await fill(data);
      rmSync(join(data, "head.pin"));
    },
  },
  {
    title: "the pin is gone and the operator accepts it",
    make: async ({ data }) => {
      await fill(data);
      rmSync(join(data, "head.pin"));
    },
    flags: { accept: "missing-pin" },
    serves: true,
  },
  {
    title: "the pin is damaged",
    make: async ({ data }) => {
      await fill(data);
      writeFileSync(join(data, "head.pin"), "{");
    },
  },
  {
    title: "the pin is a folder",
    make: ({ data }) => fill(data),
    settings: ({ folder }) => ({ SVC_PIN: folder }),
  },
  {
    title: "the ledger has another name",
    make: ({ data }) => fill(data),
    settings: () => ({ SVC_LEDGER_NAME: "example.org/two" }),
  },
  {
    title: "the name for a new ledger is too long",
    make: () => undefined,
    settings: () => ({ SVC_LEDGER_NAME: "é".repeat(51) }),
  },
  {
    title: "the name for a new ledger has a space",
    make: () => undefined,
    settings: () => ({ SVC_LEDGER_NAME: "my ledger" }),
  },
  {
    title: "the layout is of a later version",
    make: async ({ data }) => {
      await fill(data);
      alter(data, "UPDATE meta SET value = '3' WHERE name = 'layout'");
    },
  },
  {
    title: "an inner hash of the tree is gone",
    make: async ({ data }) => {
      await fill(data, { rows: 300 });
      alter(data, "DELETE FROM nodes");
    },
  },
  {
    title: "a counter's row was changed",
    make: async ({ data }) => {
      const ledger = await openLedger({ folder: data, engine });
      await ledger.keepCounter({ definition: "d", through: null, unknownThrough: -1 }, []);
      await ledger.close();
      alter(data, "UPDATE counters SET unknown_through = 5");
    },
  },
  {
    title: "the clock is behind the last row",
    make: ({ data }) => fill(data, { at: Date.now() + 3_600_000 }),
  },
  {
    title: "the clock is behind and the operator accepts it",
    make: ({ data }) => fill(data, { at: Date.now() + 3_600_000 }),
    flags: { accept: "clock" },
    serves: true,
  },
  { title: "nothing is wrong", make: ({ data }) => fill(data), serves: true },
];

suite("starts that the gate refuses", () => {
  for (const { title, make, settings, flags, serves = false } of cases) {
    test(`the gate ${serves ? "serves" : "refuses to start"} if ${title}`, async (t) => {
      const source = sourceIn(temporaryFolder(t));
      await make(source);
      const before = contentOf(source.data);
      const said = await startHere({ ...source.settings, ...settings?.(source) }, flags ?? {});
      if (serves) return assert.equal(said, "served");
      assert.notEqual(said, "served");
      says(title, said, { DATA: source.data, " SECONDS s ": / 3[56]\d\d s /.exec(said)?.[0] ?? "" });
      assert.doesNotMatch(said, /\n/, "one line");
      assert.deepEqual(contentOf(source.data), before, "nothing was replaced");
    });
  }

  test("the process prints one line and exits with 1 if it cannot start", async (t) => {
    const source = sourceIn(temporaryFolder(t));
    writeFileSync(source.data, "x");
    refused(
      await runGate(["serve"], { settings: source.settings }),
      "a process: a file is in the place of the data folder",
    );
  });

  for (const [title, make] of [
    ["the gate refuses to start in a folder that it cannot write", ({ data }: GateSource) => mkdirSync(data)],
    ["the gate refuses to start on a read-only ledger beside an empty write-ahead log", fillWithEmptyLog],
  ] as const)
    test(title, async (t) => {
      const source = sourceIn(temporaryFolder(t));
      await make(source);
      const undo = makeReadOnly(source.data);
      if (undo === undefined) return t.skip("nothing here can make a folder read-only for this user");
      try {
        refused(await runGate(["serve"], { settings: source.settings }), title);
      } finally {
        undo();
      }
    });

  test("a second gate refuses to start on the same ledger until the first gate has ended", async (t) => {
    const source = sourceIn(temporaryFolder(t));
    const first = await startGate({ settings: source.settings });
    try {
      refused(await runGate(["serve"], { settings: source.settings }), "another gate serves");
    } finally {
      await first.kill();
    }
    assert.equal(await runGate(["serve"], { settings: source.settings }), "served", "at once after a kill -9");
  });

  test("the gate refuses checks with 503 while an accepted clock is behind the ledger", async (t) => {
    const source = sourceIn(temporaryFolder(t));
    await fill(source.data, { at: Date.now() + 3_600_000 });
    const gate = await startGate({ settings: { ...source.settings, SVC_ACCEPT: "clock" } });
    try {
      const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
      const response = await fetch(`${gate.url}/check`, {
        method: "POST",
        headers,
        body: '{"tool_name":"a","tool_input":{}}',
      });
      assert.equal(response.status, 503);
      assert.equal(((await response.json()) as { code: string }).code, "clock-unreliable");
    } finally {
      assert.equal(await gate.stop(), 0);
    }
  });
});

/** Starts a gate in this process, as the command does. @returns the error for the operator, or that the gate served */
async function startHere(
  settings: Readonly<Record<string, string>>,
  flags: Readonly<Record<string, string>>,
): Promise<string> {
  const configured = readConfig({ SVC_API_KEY: apiKey, SVC_LOG: "silent", SVC_PORT: "0", ...settings }, flags);
  assert.ok(configured.ok);
  try {
    await (await serve(configured.value.config, [])).stop();
    return "served";
  } catch (error) {
    assert.ok(error instanceof LedgerRefused || error instanceof StartRefused, String(error));
    return error.message;
  }
}

/** Expects one sentence of one line, and a non-zero exit code. */
function refused(ended: Ended | "served", name: string): void {
  assert.notEqual(ended, "served");
  const { code, stderr } = ended as Ended;
  assert.match(stderr, /^svc-gate: [^\n]+\n$/, "one line");
  says(name, stderr.trimEnd(), { CODE: /\(([^)]+)\):/.exec(stderr)?.[1] ?? "" });
  assert.equal(code, 1);
}

/** Root can write anywhere, except on a file system that is mounted read-only. */
function makeReadOnly(folder: string): (() => void) | undefined {
  const paths = [...readdirSync(folder).map((name) => join(folder, name)), folder];
  if (process.getuid?.() !== 0) {
    for (const path of paths) chmodSync(path, path === folder ? 0o555 : 0o444);
    return () => chmodSync(folder, 0o755);
  }
  const mount = (...args: string[]): boolean => spawnSync("mount", args).status === 0;
  const undo = (): void => void spawnSync("umount", [folder]);
  if (!mount("--bind", folder, folder)) return undefined;
  if (mount("-o", "remount,bind,ro", folder)) return undo;
  undo();
  return undefined;
}
