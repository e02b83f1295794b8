/**
 * Goal: the kit notices a command hook, and an installation of it, that are broken in ways that were seen in real ones.
 * Method: Codex runs with each of them, because it can only be denied, and each named case must fail. Positive control: the
 * same cases pass with the hook as it is, in hosts.test.ts.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext } from "node:test";
import { codexDriver } from "../../../adapters/conformance/drivers/codex.ts";
import { runHost } from "../../../adapters/conformance/kit.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { mutatedFile, type Mutation } from "../../support/mutation/mutate.ts";
import { controlPatienceMs } from "../../support/patience.ts";

interface Mutant {
  readonly fault: string;
  /** The change of the settings that `hook install` wrote. */
  readonly change: (t: TestContext) => (settings: string) => string;
  /** Cases that must fail. */
  readonly noticed: readonly string[];
}

const mutants: readonly Mutant[] = [
  {
    fault: "lets any text of the hook pass",
    change: () => replacing(/in '\\\\''0\{.*?\*\)/, "in *)"),
    noticed: ["C1", "C2", "C3", "C6", "C7", "C8"],
  },
  {
    fault: "believes every answer",
    change: (t) =>
      withHook(t, [
        { within: "post", find: "status !== 200", put: "status === 401" },
        {
          within: "post",
          find: 'headers["svc-request"]',
          put: 'createHash("sha256").update(input).digest("hex")',
        },
      ]),
    noticed: ["B3", "B6a"],
  },
  {
    fault: "passes a refusal on without its reason",
    change: (t) =>
      withHook(t, [
        {
          within: "outputs",
          find: '({ hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason })',
          put: '({ hookEventName: "PreToolUse", permissionDecision })',
        },
      ]),
    noticed: ["A2"],
  },
];

suite("broken command hooks", { concurrency: 2 }, () => {
  for (const { fault, change, noticed } of mutants) {
    control(`the kit notices a hook that ${fault}`, async (t) => {
      const driver = codexDriver({ change: change(t) });
      const missing = driver.missing();
      if (missing !== undefined) return t.skip(missing);
      const runs = await runHost(t, driver, { ids: noticed, atOnce: 2, lateMs: controlPatienceMs });
      const failed = runs.filter(({ problems }) => problems.length > 0).map(({ id }) => id);
      assert.deepEqual(failed, noticed);
      return undefined;
    });
  }

  control("the kit notices a command that gets its input from the model without a question", async (t) => {
    const driver = codexDriver({ tty: true });
    const missing = driver.missing();
    if (missing !== undefined) return t.skip(missing);
    const runs = await runHost(t, driver, { ids: ["D6s"], lateMs: controlPatienceMs });
    assert.deepEqual(
      runs.filter(({ problems }) => problems.length > 0).map(({ id }) => id),
      ["D6s"],
      "Codex asks about write_stdin now: say so in docs/hosts/codex.md",
    );
    return undefined;
  });
});

function replacing(pattern: RegExp, text: string): (settings: string) => string {
  return (settings) => {
    const changed = settings.replace(pattern, () => text);
    assert.notEqual(changed, settings, "the pattern is stale");
    return changed;
  };
}

/** Puts a changed copy of the hook instead of the program. */
function withHook(t: TestContext, mutations: readonly Mutation[]): (settings: string) => string {
  const agent = join(root, "packages", "agent");
  const folder = join(temporaryFolder(t), "mutant");
  mkdirSync(folder);
  writeFileSync(join(folder, "hook.ts"), mutatedFile(join(agent, "src", "hook.ts"), mutations));
  const program = join(folder, "svc-gate.mjs");
  writeFileSync(program, 'import { hook } from "./hook.ts";\nawait hook(process.argv.slice(3));\n');
  return (settings) => settings.replaceAll(join(agent, "bin", "svc-gate.mjs"), program);
}
