/**
 * Goal: `svc-gate test` ends with its exit code and colours only a terminal's output. `--watch` runs again if a file
 * changes, survives broken files, and ends on a signal. Method: the command runs as a process over a contract and tests
 * that are rewritten.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { root, temporaryFolder } from "../../support/gate.ts";

const contract = `contract: shop
limits: { usd: 50 }
tools:
  pay:
    input: { type: object, additionalProperties: false, required: [usd], properties: { usd: { type: number } } }
    otherwise: ALLOW
rules:
  - { rule: over, on: pay, when: input.usd > limits.usd, verdict: BLOCK, reason: over }
`;
const tests = `cases:
  - { case: up to it, tool: pay, input: { usd: 50 }, expect: ALLOW }
  - { case: over, tool: pay, input: { usd: 51 }, expect: BLOCK }
`;

interface Watching {
  readonly child: ChildProcessWithoutNullStreams;
  /** Returns the output since the last call, once it ends with the pattern and the line that says it waits. */
  readonly told: (pattern: RegExp) => Promise<void>;
}

function start(t: TestContext, ...args: readonly string[]): Watching {
  const child = spawn(process.execPath, [join(root, "bin", "svc-gate.mjs"), "test", ...args]);
  t.after(() => child.kill("SIGKILL"));
  let shown = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (shown += text.toString()));
  const told = async (pattern: RegExp): Promise<void> => {
    for (let waited = 0; !pattern.test(shown) || !shown.includes("waiting for a change"); waited += 50) {
      assert.ok(waited < 120_000 && child.exitCode === null, shown);
      await sleep(50);
    }
    shown = "";
  };
  return { child, told };
}

async function ended(child: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): Promise<number | null> {
  child.kill(signal);
  const [code] = (await once(child, "exit", { signal: AbortSignal.timeout(120_000) })) as [number | null];
  return code;
}

function folderWith(t: TestContext): string {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "shop.yaml"), contract);
  writeFileSync(join(folder, "shop.test.yaml"), tests);
  return folder;
}

suite("svc-gate test as a process", () => {
  const run = (...args: readonly string[]): { readonly status: number | null; readonly stdout: string } =>
    spawnSync(process.execPath, [join(root, "bin", "svc-gate.mjs"), "test", ...args], {
      encoding: "utf8",
      cwd: root,
      env: { ...process.env, FORCE_COLOR: "1" },
      timeout: 300_000,
    });

  test("svc-gate test without a path runs contracts/, whose tests pass with full coverage", () => {
    const { status, stdout } = run("--min", "100");
    assert.equal(status, 0, stdout);
    assert.match(stdout, /\n\n([0-9]+) of \1 cases passed\b.*\n$/);
  });

  test("a failed case gives exit code 1, no tests give 2, and a pipe gets no colours", (t) => {
    const folder = folderWith(t);
    writeFileSync(join(folder, "shop.test.yaml"), tests.replace("expect: ALLOW", "expect: ESCALATE"));
    const { status, stdout } = run(folder, "--coverage");
    assert.equal(status, 1);
    assert.match(stdout, /verdict +- ESCALATE/);
    assert.ok(!stdout.includes("\u001b"), stdout);
    assert.equal(run(temporaryFolder(t)).status, 2);
  });
});

suite("svc-gate test --watch", () => {
  test("test --watch runs again after each change of a file, survives errors and ends on SIGINT", async (t) => {
    const folder = folderWith(t);
    const { child, told } = start(t, folder, "--watch");
    await told(/2 of 2 cases passed/);
    writeFileSync(join(folder, "shop.yaml"), contract.replace("usd: 50", "usd: 40"));
    await told(/1 of 2 cases passed/);
    writeFileSync(join(folder, "shop.yaml"), contract.replace("limits.usd", "limits.eur"));
    await told(/1 error: nothing was tested/);
    writeFileSync(join(folder, "shop.yaml"), contract);
    await told(/2 of 2 cases passed/);
    writeFileSync(join(folder, "more.test.yaml"), `contract: shop.yaml\n${tests}`);
    await told(/4 of 4 cases passed\b.*\b2 files/);
    writeFileSync(join(folder, "shop.test.yaml"), "cases: []");
    await told(/the file has no cases/);
    writeFileSync(join(folder, "shop.test.yaml"), tests);
    await told(/4 of 4 cases passed/);
    assert.equal(await ended(child, "SIGINT"), 0);
  });

  test("test --watch ends on SIGTERM with the exit code of the last run", async (t) => {
    const folder = folderWith(t);
    const { child, told } = start(t, join(folder, "shop.yaml"), "--watch", "--min", "100");
    await told(/2 of 2 cases passed/);
    writeFileSync(join(folder, "shop.test.yaml"), tests.replace("expect: ALLOW", "expect: ESCALATE"));
    await told(/1 of 2 cases passed/);
    assert.equal(await ended(child, "SIGTERM"), 1);
  });

  test("test --watch ends with exit code 2 in an empty folder", async (t) => {
    const { child } = start(t, temporaryFolder(t), "--watch");
    const [code] = (await once(child, "exit", { signal: AbortSignal.timeout(120_000) })) as [number | null];
    assert.equal(code, 2);
  });
});
