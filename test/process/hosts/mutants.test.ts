/**
 * Goal: the kit notices adapters that are broken in the ways that were seen in real ones. Method: each mutant has one change,
 * and at least one of the named cases must fail. Positive control: the same cases pass with the adapters as they are.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { pythonOf } from "../../../clients/conformance/runtimes.ts";
import type { Driver } from "../../../adapters/conformance/case.ts";
import { agentSdk } from "../../../adapters/conformance/drivers/agent-sdk.ts";
import { runHost } from "../../../adapters/conformance/kit.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { mutatedFile, type Mutation } from "../../support/mutation/mutate.ts";
import { mutatedPython } from "../../support/mutation/python.ts";

interface Mutant {
  readonly fault: string;
  readonly language: "typescript" | "python";
  readonly mutation: Mutation;
  /** Cases that must fail. */
  readonly noticed: readonly string[];
}

const mutants: readonly Mutant[] = [
  {
    fault: "returns the verdict as a string",
    language: "typescript",
    mutation: { within: "hooksOf", find: "answerTo(verdict, settings)", put: "verdict.verdict" },
    noticed: ["A1"],
  },
  {
    fault: "treats an unknown answer as allow",
    language: "typescript",
    mutation: { within: "answerTo", find: 'decision("deny", notReached)', put: 'decision("allow", reason)' },
    noticed: ["B1", "B5", "B6"],
  },
  {
    fault: "swallows its own error",
    language: "typescript",
    mutation: { within: "judged", find: "return factsFailed;", put: "snapshot = null;" },
    noticed: ["B8"],
  },
  {
    fault: "checks a name but not the input",
    language: "typescript",
    mutation: {
      within: "judged",
      find: "gate.check(name, input, snapshot)",
      put: "gate.check(name, { amount: 1 }, snapshot)",
    },
    noticed: ["A2", "A4"],
  },
  {
    fault: "asks only about the first call of a batch",
    language: "typescript",
    mutation: {
      within: "judged",
      first: "if (gate.isAsked) return { allowed: true, mode: 'enforce', reason: '' }; gate.isAsked = true;",
    },
    noticed: ["A4"],
  },
  {
    fault: "grants while the gate observes",
    language: "typescript",
    mutation: { within: "answerTo", find: 'grant && (mode === "enforce" || mode === "assist")', put: "grant" },
    noticed: ["A8"],
  },
  {
    fault: "says that a failed report was a done call",
    language: "typescript",
    mutation: { within: "hooksOf", find: 'input.hook_event_name === "PostToolUse"', put: "false" },
    noticed: ["A1"],
  },
  {
    fault: "treats an unknown answer as allow",
    language: "python",
    mutation: { within: "_answer_to", find: '_decision("deny", _NOT_REACHED)', put: '_decision("allow", "fine")' },
    noticed: ["B1", "B5"],
  },
  {
    fault: "grants while the gate observes",
    language: "python",
    mutation: {
      within: "_answer_to",
      find: 'settings.grant and verdict.mode in ("enforce", "assist")',
      put: "settings.grant",
    },
    noticed: ["A8"],
  },
  {
    fault: "checks a name but not the input",
    language: "python",
    mutation: {
      within: "_judged",
      find: "gate.check(call.name, call.input, snapshot)",
      put: 'gate.check(call.name, {"amount": 1}, snapshot)',
    },
    noticed: ["A2"],
  },
];

const adapters = { typescript: "claude-agent-sdk.mjs", python: "svc_gate_claude_agent_sdk.py" };

suite("broken adapters", { concurrency: 2 }, () => {
  for (const mutant of mutants) {
    test(`the kit notices a ${mutant.language} adapter that ${mutant.fault}`, async (t) => {
      const driver = agentSdk[mutant.language === "typescript" ? 0 : 1];
      assert.ok(driver !== undefined);
      const missing = driver.missing();
      if (missing !== undefined) return t.skip(missing);
      const runs = await runHost(t, driver, { ids: mutant.noticed, atOnce: 2, adapter: mutated(t, mutant) });
      const failed = runs.filter(({ problems }) => problems.length > 0).map(({ id }) => id);
      assert.deepEqual(failed, mutant.noticed);
      return undefined;
    });
  }
});

/** A driver of no host: it asks for another machine, and its tool runs after the end of the run. */
const restless: Driver = {
  name: "restless",
  page: "",
  version: () => "1",
  tools: {
    pay: { host: "pay", gate: "kit.pay" },
    shell: { host: "Bash", gate: "Bash" },
    agent: { host: "Agent", gate: "Agent" },
    web: { host: "WebSearch", gate: "WebSearch" },
  },
  missing: () => undefined,
  excuse: () => undefined,
  run: async ({ case: { id }, env, folder }) => {
    const proxy = new URL(env["HTTPS_PROXY"] ?? "");
    const asked = request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: "elsewhere.example:443" });
    asked.end();
    await once(asked, "connect");
    if (id === "A2") void pause(200).then(() => appendFileSync(join(folder, "project", "witness.txt"), "pay 900\n"));
    else await pause(600);
    return { ended: "done", detail: "" };
  },
};

test("positive control: case G1 notices a host that reaches another machine, and a tool that runs late", async (t) => {
  const runs = await runHost(t, restless, { ids: ["A2", "B1"] });
  assert.deepEqual(runs.find(({ id }) => id === "G1")?.problems, [
    "it asked for CONNECT elsewhere.example:443",
    "case A2: a tool ran after the end of the run",
  ]);
});

/** Writes the mutant beside nothing else. Returns its file, or its folder for Python. */
function mutated(t: TestContext, { language, mutation }: Mutant): string {
  const source = join(root, "adapters", adapters[language]);
  const folder = join(temporaryFolder(t), "adapter");
  mkdirSync(folder);
  const python = [11, 12, 13, 10].map(pythonOf).find((program) => program !== undefined) ?? "python3";
  const text = language === "python" ? mutatedPython(python, source, [mutation]) : mutatedFile(source, [mutation]);
  writeFileSync(join(folder, adapters[language]), text);
  return language === "python" ? folder : join(folder, adapters[language]);
}
