/**
 * Goal: `svc-gate verify` compares a data folder with the sinks of SVC_SINKS, so that it reports a folder that was
 * rolled back together with its pin or that forked. It accepts a recorded loss. Method: the command's function runs on
 * copies of a folder that gates in this process have written, and on a sink's file with their last checkpoint.
 * UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Outcome } from "../../packages/gate/src/cli/outcome.ts";
import { resumeCommand } from "../../packages/gate/src/cli/resume.ts";
import { verifyCommand } from "../../packages/records/src/verify/command.ts";
import { check, startGate, temporaryFolder } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** A data folder inside another folder, with its pin next to it. */
interface Setup {
  readonly folder: string;
  readonly data: string;
  readonly pin: string;
}

function newSetup(t: TestContext): Setup {
  const folder = temporaryFolder(t);
  return { folder, data: join(folder, "data"), pin: join(folder, "head.pin") };
}

function copyOf(t: TestContext, setup: Setup): Setup {
  const copy = newSetup(t);
  cpSync(setup.data, copy.data, { recursive: true });
  cpSync(setup.pin, copy.pin);
  return copy;
}

async function calls(t: TestContext, { folder, pin }: Setup, count: number): Promise<void> {
  const gate = await startGate(t, { folder, flags: { pin } });
  for (let n = 0; n < count; n += 1)
    assert.equal((await check(gate, { tool_name: "note.add", tool_input: { n } })).status, 200);
  await gate.stop();
}

/** Returns the output of verify with these sinks. */
async function verify({ data, pin }: Setup, sinks: string): Promise<Outcome> {
  return withSinks(sinks, () =>
    verifyCommand(data, { pin, json: false, chain: false, deep: false, database: undefined }),
  );
}

async function withSinks(sinks: string, work: () => Promise<Outcome>): Promise<Outcome> {
  process.env["SVC_SINKS"] = sinks;
  try {
    return await work();
  } finally {
    delete process.env["SVC_SINKS"];
  }
}

/** Makes four answered calls, a copy of the folder after two, and a sink with the checkpoint over all four. */
async function rolledBack(t: TestContext): Promise<{ site: Setup; older: Setup; sink: string }> {
  const site = newSetup(t);
  await calls(t, site, 2);
  const older = copyOf(t, site);
  await calls(t, site, 2);
  const file = join(site.folder, "sink");
  cpSync(join(site.data, "checkpoint"), file);
  return { site, older, sink: `file:${file}` };
}

test("verify reports a folder rolled back with its pin if a sink saw more", { tags: ["first-use-24"] }, async (t) => {
  const { site, older, sink } = await rolledBack(t);
  const alone = await verify(older, "");
  assert.equal(alone.exitCode, 0);
  says("anchored", alone.text.split("\n").at(-1) ?? "");
  const broken = await verify(older, sink);
  const [sentence = "", ...rest] = broken.text.split("\n");
  says("rows-are-missing", sentence);
  assert.deepEqual([broken.exitCode, rest], [1, ["  expected  row 4", "  found     row 2"]]);
  assert.match((await verify(site, sink)).text, /^ok: 4 rows/, "positive control");
  const unpinned = await withSinks(sink, () =>
    verifyCommand(site.data, { pin: undefined, json: true, chain: true, deep: false, database: undefined }),
  );
  assert.deepEqual(JSON.parse(unpinned.text).anchored, { seq: 4, by: "file sink" });
});

test("verify accepts a loss that a row of the ledger records", async (t) => {
  const { older, sink } = await rolledBack(t);
  const { data: dataDir, pin } = older;
  const stated = { dataDir, pin, afterRestore: true, reason: "disk lost", by: "Ada" };
  await withSinks(sink, () => resumeCommand(undefined, stated));
  assert.match((await verify(older, sink)).text, /^ok: 3 rows[^]*\brow 3\b.*\bpin$/);
  await calls(t, older, 3);
  assert.match((await verify(older, sink)).text, /^ok: 6 rows/);
});

test("verify reports a copy that went on separately from the ledger that a sink has seen", async (t) => {
  const { older, sink } = await rolledBack(t);
  await calls(t, older, 3);
  assert.match((await verify(older, "")).text, /^ok: 5 rows/, "it holds together");
  const { exitCode, text } = await verify(older, sink);
  assert.equal(exitCode, 1);
  says("another-root", text.split("\n")[0] ?? "");
});

test("verify mentions sinks without a checkpoint and fails if it cannot read a sink", async (t) => {
  const site = newSetup(t);
  await calls(t, site, 2);
  for (const sinks of [`file:${join(site.folder, "none")}`]) {
    const { text } = await verify(site, sinks);
    assert.match(text, /^ok: 2 rows/);
    says("no-file-has-a-checkpoint", text.split("\n").at(-1) ?? "");
  }
  await assert.rejects(verify(site, `file:${site.folder}`), ({ message }: Error) => {
    assert.match(message, /\bEISDIR\b/);
    says("sink-that-cannot-be-read", message);
    return true;
  });
});
