/**
 * Goal: if the head pin cannot be written, the log, /metrics and /ready say so, and no check waits for it. Method: a
 * file replaces the pin's folder, or a small disk under it is filled; then the cause is removed. The monotonic clock
 * moves past the time that the pin may trail.
 */
import assert from "node:assert/strict";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { pinBehindMaxMs, pinTrails } from "../../packages/gate/src/server/anchoring/pin-standing.ts";
import { control } from "../support/controls/control.ts";
import { sentencesOf } from "../support/sentences.ts";
import { ask, check, key, spawnGate, startGate, temporaryFolder, type Running } from "../support/gate.ts";
import { smallDisk } from "../support/faults/small-disk.ts";

const says = sentencesOf(import.meta.filename);

const call = { tool_name: "note.add", tool_input: {} };

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries += 1) {
    assert.ok(tries < 4000, "it did not come about in 100 s");
    await wait(25);
  }
}

function pinnedRow(file: string): number {
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly seq: number }).seq;
}

async function pinnedGate(t: TestContext, pin: string): Promise<Running> {
  const gate = await startGate(t, { flags: { pin, "ops-port": "0" } });
  assert.equal((await check(gate, call)).json.receipt.seq, 1);
  await until(() => pinnedRow(pin) === 1 && gate.ledger.pin?.reading.behindMs === 0);
  return gate;
}

interface Shown {
  readonly status: number;
  readonly reason: string | undefined;
  readonly lag: string | undefined;
  readonly failures: number;
}

/** Returns a gate's log, metrics and readiness after the monotonic clock has passed the time that the pin may trail. */
async function later(t: TestContext, gate: Running): Promise<Shown> {
  const now = performance.now.bind(performance);
  const moved = t.mock.method(performance, "now", () => now() + pinBehindMaxMs);
  const ready = await fetch(`${gate.ops}/ready`);
  const metrics = await (await fetch(`${gate.ops}/metrics`)).text();
  moved.mock.restore();
  const { reason } = (await ready.json()) as { readonly reason?: string };
  const valueOf = (name: string): string | undefined =>
    new RegExp(`^${name}\\{anchor="head pin"\\} (\\S+)$`, "m").exec(metrics)?.[1];
  return {
    status: ready.status,
    reason,
    lag: valueOf("svc_gate_anchor_lag_rows"),
    failures: Number(valueOf("svc_gate_anchor_failures_total")),
  };
}

/** Returns the system's error code in a sentence. */
const codeIn = (text: string): string => /\((E[A-Z]+)\)/.exec(text)?.[1] ?? "";

/** Makes checks while the pin cannot be written, and checks that it catches up later. @returns the error code */
async function trails(
  t: TestContext,
  { pin, stop, clear }: { pin: string; stop: () => void; clear: () => void },
): Promise<string> {
  const gate = await pinnedGate(t, pin);
  stop();
  for (let row = 2; row <= 4; row += 1) assert.equal((await check(gate, call)).json.receipt.seq, row, "it is answered");
  await until(() => gate.ledger.pin?.reading.failure !== undefined);
  assert.equal((await fetch(`${gate.ops}/ready`)).status, 200, "the pin may trail for some seconds");
  const { status, reason, lag, failures } = await later(t, gate);
  assert.deepEqual([status, lag], [503, "3"]);
  const code = codeIn(reason ?? "");
  says("not ready: rows after the pin could be removed", reason ?? "", { CODE: code });
  assert.ok(failures > 0);
  assert.equal((await check(gate, call)).status, 200, "a gate that is not ready answers");
  const { anchored } = (await ask(gate, "/ledger/verify")).json as { readonly anchored: object };
  assert.deepEqual(anchored, { seq: 1, by: "head pin" }, "verify claims no more than the pin holds");
  clear();
  await until(() => gate.ledger.pin?.reading.seq === 5 && gate.ledger.pin.reading.failure === undefined);
  assert.equal(pinnedRow(pin), 5, "it follows without another check");
  assert.deepEqual([(await later(t, gate)).status, (await later(t, gate)).lag], [200, "0"]);
  return code;
}

suite("a head pin that cannot be written", { tags: ["attack-10"] }, () => {
  test(
    "a pin whose folder is gone makes the gate unready until the folder is there again",
    { tags: ["attack-10"] },
    async (t) => {
      const folder = join(temporaryFolder(t), "pins");
      const stop = (): void => {
        rmSync(folder, { recursive: true });
        writeFileSync(folder, "");
      };
      await trails(t, { pin: join(folder, "head.pin"), stop, clear: () => rmSync(folder) });
    },
  );

  test("a pin on a full volume makes the gate unready until there is room", { tags: ["attack-10"] }, async (t) => {
    const disk = smallDisk(t, 1);
    if (disk === undefined) return t.skip("this user may not mount a file system");
    const filler = join(disk, "filler");
    const stop = (): void => {
      const handle = openSync(filler, "w");
      assert.throws(() => {
        for (;;) writeSync(handle, Buffer.alloc(4096));
      }, /ENOSPC/);
      closeSync(handle);
    };
    assert.equal(await trails(t, { pin: join(disk, "head.pin"), stop, clear: () => rmSync(filler) }), "ENOSPC");
  });

  test("the log has one line when the pin fails and one when it recovers", { tags: ["attack-10"] }, async (t) => {
    const folder = temporaryFolder(t);
    const pins = join(folder, "pins");
    const settings = { SVC_API_KEY: key, SVC_DATA_DIR: join(folder, "data"), SVC_PIN: join(pins, "head.pin") };
    const gate = await spawnGate(t, [], { cwd: folder, env: settings });
    rmSync(pins, { recursive: true });
    writeFileSync(pins, "");
    const lines = (): readonly { readonly msg: string; readonly level: number }[] =>
      gate
        .stderr()
        .split("\n")
        .filter((line) => line.includes("the head pin"))
        .map((line) => JSON.parse(line) as { readonly msg: string; readonly level: number });
    await check(gate, call);
    await until(() => lines().length > 0);
    await check(gate, call);
    await wait(2500);
    assert.equal(lines().length, 1, "further attempts are not logged");
    const failed = lines()[0]?.msg ?? "";
    says("logged: the pin fails", failed, { CODE: codeIn(failed) });
    assert.equal(lines()[0]?.level, 50);
    rmSync(pins);
    mkdirSync(pins);
    await until(() => lines().length > 1);
    says("logged: the pin recovers", lines()[1]?.msg ?? "");
  });

  test(
    "a gate that stops while its pin cannot be written says so and does not exit with 0",
    { tags: ["attack-10"] },
    async (t) => {
      const folder = temporaryFolder(t);
      const pins = join(folder, "pins");
      const settings = { SVC_API_KEY: key, SVC_DATA_DIR: join(folder, "data"), SVC_PIN: join(pins, "head.pin") };
      const gate = await spawnGate(t, [], { cwd: folder, env: settings });
      rmSync(pins, { recursive: true });
      writeFileSync(pins, "");
      await check(gate, call);
      gate.kill("SIGTERM");
      assert.equal(await gate.exit, 1);
      const complaint = /^svc-gate: .*$/m.exec(gate.stderr())?.[0] ?? gate.stderr();
      says("stopped without the pin", complaint, { CODE: codeIn(complaint) });
    },
  );

  control("positive control: a pin that can be written leaves the gate ready", { tags: ["attack-10"] }, async (t) => {
    const gate = await pinnedGate(t, join(temporaryFolder(t), "pins", "head.pin"));
    await check(gate, call);
    await until(() => gate.ledger.pin?.reading.behindMs === 0);
    assert.deepEqual(await later(t, gate), { status: 200, reason: undefined, lag: "0", failures: 0 });
  });

  test("a pin on a disk that does not answer counts as behind", { tags: ["attack-10"] }, () => {
    const behind = { seq: 7, behindMs: pinBehindMaxMs + 1, failure: undefined };
    says("the pin's disk does not answer", pinTrails(behind) ?? "");
    assert.equal(pinTrails({ ...behind, behindMs: pinBehindMaxMs }), undefined);
    assert.equal(pinTrails(undefined), undefined);
  });
});
