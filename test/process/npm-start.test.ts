/**
 * Goal: a signal to the process of `npm start` ends the gate, as a supervisor expects. Method: npm starts the gate in a shell, as a
 * person would, and gets the signal alone. Positive control: a gate in a shell without that care goes on.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test, type TestContext } from "node:test";
import { freePort } from "../support/free-port.ts";
import { control } from "../support/controls/control.ts";
import { root, temporaryFolder } from "../support/gate.ts";
import { ownEnvironment } from "../support/page-commands.ts";
import { eventually } from "../support/patience.ts";

interface Started {
  readonly pid: number;
  readonly answers: () => Promise<boolean>;
}

/** Starts a gate by a command. If a part of it still runs at the end of the test, it ends then. */
async function started(t: TestContext, program: string, words: readonly string[]): Promise<Started> {
  const port = String(await freePort());
  const env = {
    ...ownEnvironment(),
    SVC_PORT: port,
    SVC_DATA_DIR: temporaryFolder(t),
    SVC_LOG: "silent",
  };
  const child = spawn(program, words, { cwd: root, env, detached: true, stdio: "ignore" });
  const { pid } = child;
  assert.ok(pid !== undefined);
  t.after(() => {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {} // all of it has ended
  });
  const answers = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually("the gate answers", answers);
  return { pid, answers };
}

for (const signal of ["SIGTERM", "SIGKILL"] as const)
  test(`${signal} to npm alone ends the gate that npm start runs`, async (t) => {
    const { pid, answers } = await started(t, "npm", ["start"]);
    process.kill(pid, signal);
    await eventually("the gate has ended", async () => !(await answers()));
  });

control("positive control: a gate in a shell goes on when only the shell has ended", async (t) => {
  const { pid, answers } = await started(t, "sh", ["-c", "node bin/svc-gate.mjs serve; true"]);
  process.kill(pid, "SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.ok(await answers());
});
