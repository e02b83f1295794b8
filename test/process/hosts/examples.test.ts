/**
 * Goal: the example agents of examples/agents do what they say: an agent wants to pay, is parked, is approved by a person, and
 * pays once. Method: each runs as a user would run it, against a real gate with its contract and a scripted model.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { startPerson, type Person } from "../../../adapters/conformance/person.ts";
import { runProgram } from "../../../adapters/conformance/program.ts";
import type { ScriptedTurn } from "../../../packages/agent/src/model/script.ts";
import { startModel } from "../../../packages/agent/src/model/server.ts";
import { key, root, startGate, temporaryFolder } from "../../support/gate.ts";

interface Example {
  readonly file: string;
  /** The folder where its framework is installed. */
  readonly folder: Parameters<typeof installed>[0];
  readonly command: readonly string[];
  readonly script: readonly ScriptedTurn[];
}

const task = "Pay 75 USD to the printer [[pay]]";
const input = { arguments: '{"amount":75,"to":"the printer"}' };
const parked: readonly ScriptedTurn[] = [[{ tool: "pay", ...input }], "The printer is paid."];
const claudeCall = [{ tool: "mcp__agent__pay", ...input }];

const python = (folder: Example["folder"]): readonly string[] => [
  join(installed(folder), ".venv", "bin", "python"),
  "-B",
];
const inPython = (file: string, folder: Example["folder"]): Example => ({
  file,
  folder,
  command: python(folder),
  script: parked,
});

const examples: readonly Example[] = [
  inPython("langchain_agent.py", "libraries/langchain"),
  inPython("openai_agent.py", "libraries/python"),
  inPython("pydantic_ai_agent.py", "libraries/python"),
  { file: "ai-sdk.mjs", folder: "libraries/javascript", command: [process.execPath], script: parked },
  {
    file: "claude-agent-sdk.mjs",
    folder: "hosts",
    command: [process.execPath],
    script: [claudeCall, "I must wait.", claudeCall, "The printer is paid."],
  },
];

interface Agent {
  /** Runs the example with these words, and returns what it printed. */
  readonly run: (words: string) => Promise<string>;
  /** The session of the parked run. */
  readonly session: () => string;
  readonly person: Person;
}

/** Starts a gate and a model, and copies the example into a folder where its framework is installed. */
async function agentOf(t: TestContext, { file, folder, command, script }: Example): Promise<Agent> {
  const contracts = { "agents.yaml": readFileSync(join(root, "examples", "agents", "contract.yaml"), "utf8") };
  const gate = await startGate(t, { contracts });
  const model = await startModel({ pay: script });
  t.after(model.stop);
  const target = temporaryFolder(t);
  for (const each of ["examples/agents", "clients/javascript", "clients/python", "adapters"])
    cpSync(join(root, each), join(target, each), { recursive: true, filter: (path) => !path.endsWith("conformance") });
  const packages = join(installed(folder), "node_modules");
  if (existsSync(packages)) symlinkSync(packages, join(target, "node_modules"));
  const cwd = join(target, "examples", "agents");
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: target,
    NO_PROXY: "127.0.0.1",
    SVC_URL: gate.address,
    SVC_KEY: key,
    ANTHROPIC_API_KEY: "not-a-key",
    ANTHROPIC_BASE_URL: model.url,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    OPENAI_API_KEY: "not-a-key",
    OPENAI_BASE_URL: `${model.url}/v1`,
  };
  return {
    person: await startPerson(gate.address, gate.folder),
    session: () => JSON.parse(readFileSync(join(cwd, "run.json"), "utf8")).session,
    run: async (words) => {
      const { stdout, stderr } = await runProgram([...command, file, words], { cwd, env });
      if (stderr !== "") t.diagnostic(stderr);
      return stdout;
    },
  };
}

suite("the example agents", { concurrency: 2 }, () => {
  for (const example of examples) {
    const missing = existsSync(example.command[0] ?? "") ? false : "its framework is not installed";
    test(`${example.file} parks, and pays once after the approval`, { skip: missing }, async (t) => {
      const agent = await agentOf(t, example);
      const first = await agent.run(task);
      assert.match(first, /A person decides/);
      assert.doesNotMatch(first, /paid 75/);
      await agent.person.approve(agent.session());
      const last = await agent.run("--resume");
      assert.match(last, /paid 75 USD to the printer\n[^]*The printer is paid\./);
      assert.equal(last.match(/paid 75/g)?.length, 1);
    });

    test(`${example.file} does not pay if it goes on before the decision`, { skip: missing }, async (t) => {
      const agent = await agentOf(t, example);
      await agent.run(task);
      assert.doesNotMatch(await agent.run("--resume"), /paid 75/);
    });
  }
});
