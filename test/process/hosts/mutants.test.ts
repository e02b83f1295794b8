/**
 * Goal: the kit notices adapters that are broken in the ways that were seen in real ones. Method: each mutant has one change,
 * and at least one of the named cases must fail. Positive control: the same cases pass with the adapters as they are.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { appendFileSync, cpSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { suite, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { pythonOf } from "../../../clients/conformance/runtimes.ts";
import type { Driver } from "../../../adapters/conformance/case.ts";
import { drivers } from "../../../adapters/conformance/drivers/all.ts";
import { runHost } from "../../../adapters/conformance/kit.ts";
import { control } from "../../support/controls/control.ts";
import { root, temporaryFolder } from "../../support/gate.ts";
import { mutatedFile } from "../../support/mutation/mutate.ts";
import { inPython, type Mutant } from "../../support/mutants.ts";
import { mutatedPython } from "../../support/mutation/python.ts";
import { controlPatienceMs } from "../../support/patience.ts";

const typescript = "Claude Agent SDK, TypeScript";
const python = "Claude Agent SDK, Python";
const openaiJavascript = "OpenAI Agents SDK, JavaScript";
const openaiPython = "OpenAI Agents SDK, Python";

/** What every adapter gets from the guard. */
const ofTheGuard: readonly Omit<Mutant, "file" | "host">[] = [
  {
    fault: "treats an unknown answer as allow",
    mutation: {
      within: "judgementOf",
      find: "allowed && !(grant && unreached)",
      put: 'verdict.verdict !== "ESCALATE"',
    },
    noticed: ["B1", "B5", "B6"],
  },
  {
    fault: "swallows its own error",
    mutation: { within: "judged", find: "return refusal(factsFailed);", put: "snapshot = null;" },
    noticed: ["B8"],
  },
  {
    fault: "lets a call run when it fails itself",
    mutation: { within: "refusal", first: "return { runs: true, verdict: { receipt: null } };" },
    noticed: ["C1", "C6", "C7", "C8"],
  },
  {
    fault: "takes any answer of the client for a verdict",
    mutation: { within: "judged", find: 'typeof verdict?.allowed !== "boolean"', put: "false" },
    noticed: ["C7"],
  },
  {
    fault: "checks a name but not the input",
    mutation: {
      within: "judged",
      find: "gate.check(name, input, snapshot, approval)",
      put: "gate.check(name, { amount: 1 }, snapshot, approval)",
    },
    noticed: ["A2", "A4"],
  },
  {
    fault: "asks only about the first call of a batch",
    mutation: {
      within: "judge",
      first: "if (all.isAsked) return { runs: true, verdict: { receipt: null } }; all.isAsked = true;",
    },
    noticed: ["A4"],
  },
  {
    fault: "says that a done call may have failed",
    mutation: { within: "runJudged", find: 'status = "done";', put: "" },
    noticed: ["A1"],
  },
  {
    fault: "runs a call whose approval nobody gave",
    mutation: {
      within: "judgementOf",
      find: "allowed && !(grant && unreached)",
      put: 'allowed || verdict.approval?.next === "wait"',
    },
    noticed: ["A3", "E1n"],
  },
];

const mutants: readonly Mutant[] = [
  ...ofTheGuard.map((mutant) => ({ ...mutant, file: "guard.mjs", host: "Vercel AI SDK 7" })),
  {
    fault: "returns the verdict as a string",
    file: "claude-agent-sdk.mjs",
    mutation: { within: "answerTo", find: 'decision("deny", reason)', put: '"BLOCK"' },
    host: typescript,
    noticed: ["A2"],
  },
  {
    fault: "grants while the gate observes",
    file: "claude-agent-sdk.mjs",
    mutation: { within: "answerTo", find: "grant && grants", put: "grant" },
    host: typescript,
    noticed: ["A8"],
  },
  {
    fault: "says that a done call may have failed",
    file: "claude-agent-sdk.mjs",
    mutation: { within: "hooksOf", find: 'input.hook_event_name === "PostToolUse"', put: "false" },
    host: typescript,
    noticed: ["A1"],
  },
  {
    fault: "grants while the gate observes",
    file: "svc_gate_claude_agent_sdk.py",
    mutation: { within: "_answer_to", find: "grant and judgement.grants", put: "grant" },
    host: python,
    noticed: ["A8"],
  },
  {
    fault: "treats an unknown answer as allow",
    file: "svc_gate_guard.py",
    mutation: {
      within: "_judgement_of",
      find: 'verdict.verdict == "ALLOW" and not (guard._grant and unreached)',
      put: 'verdict.verdict != "ESCALATE"',
    },
    host: "Pydantic AI",
    noticed: ["B1", "B5"],
  },
  {
    fault: "checks a name but not the input",
    file: "svc_gate_guard.py",
    mutation: {
      within: "_judging",
      find: "functools.partial(gate.check, call.name, call.input, snapshot, approval)",
      put: 'functools.partial(gate.check, call.name, {"amount": 1}, snapshot, approval)',
    },
    host: python,
    noticed: ["A2"],
  },
  {
    fault: "keeps the judgement of an input that was changed since",
    file: "ai-sdk.mjs",
    mutation: {
      within: "judged",
      find: "found !== undefined && found.text === JSON.stringify(input)",
      put: "found !== undefined",
    },
    host: "Vercel AI SDK 7",
    noticed: ["D4p"],
  },
  {
    fault: "takes the answer of the program's user for a person's decision",
    file: "ai-sdk.mjs",
    mutation: {
      within: "judged",
      find: "judge(place, input, options)",
      put: "{ runs: isParked(options), verdict: { receipt: null } }",
    },
    host: "Vercel AI SDK 6",
    noticed: ["E1n"],
  },
  {
    fault: "checks a name but not the input",
    file: "langchain.mjs",
    mutation: {
      within: "decided",
      find: 'typeof input === "object" ? input : { input }',
      put: "{ amount: 1 }",
    },
    host: "LangChain.js",
    noticed: ["A2", "D4"],
  },
  {
    fault: "takes the answer to an interrupt for a person's decision",
    file: "langchain.mjs",
    mutation: {
      within: "decided",
      find: "guard.judge(call, { signal: config?.signal })",
      put: "(padOf(config)?.resume.length > 0 ? { runs: true, verdict: { receipt: null } } : guard.judge(call))",
    },
    host: "LangGraph.js",
    noticed: ["E1n"],
  },
  {
    fault: "checks a name but not the input",
    file: "svc_gate_langchain.py",
    mutation: { within: "_call_of", find: "plain(judged)", put: '{"amount": 1}' },
    host: "LangChain, Python",
    noticed: ["A2", "D4"],
  },
  {
    fault: "refuses a call that it should park",
    file: "svc_gate_langchain.py",
    mutation: { within: "_parked_or_refused", find: "judgement.parks", put: "False" },
    host: "LangGraph, Python",
    noticed: ["E1", "E1b"],
  },
  {
    fault: "keeps the judgement of arguments that were changed since",
    file: "openai-agents.mjs",
    mutation: { within: "taken", find: "found.text === JSON.stringify(input)", put: "true" },
    host: openaiJavascript,
    noticed: ["D4p"],
  },
  {
    fault: "takes the SDK's approval for a person's decision",
    file: "openai-agents.mjs",
    mutation: {
      within: "taken",
      find: "found !== undefined && found.text === JSON.stringify(input) ? found.judgement : undefined",
      put: "found === undefined ? { runs: true, verdict: { receipt: null } } : $found",
    },
    host: openaiJavascript,
    noticed: ["E1n"],
  },
  {
    fault: "loses the agents that take the conversation over",
    file: "openai-agents.mjs",
    mutation: { within: "leadingToCopy", first: "return entry;" },
    host: openaiJavascript,
    noticed: ["D1h"],
  },
  {
    fault: "does not stand before the tools of MCP servers",
    file: "openai-agents.mjs",
    mutation: { within: "guardedServer", first: "return server;" },
    host: openaiJavascript,
    noticed: ["D2"],
  },
  {
    fault: "keeps the judgement of arguments that were changed since",
    file: "svc_gate_openai_agents.py",
    mutation: { within: "_taken", find: "text == json.dumps(given)", put: "True" },
    host: openaiPython,
    noticed: ["D4p"],
  },
  {
    fault: "takes the SDK's approval for a person's decision",
    file: "svc_gate_openai_agents.py",
    mutation: {
      within: "_taken",
      find: "judgement if usage is context.usage and text == json.dumps(given) else None",
      put: 'judgement or Judgement(True, True, False, "", verdict=type("Verdict", (), {"receipt": None}))',
    },
    host: openaiPython,
    noticed: ["E1n"],
  },
  {
    fault: "loses the agents that take the conversation over",
    file: "svc_gate_openai_agents.py",
    mutation: { within: "_guarded_handoff", find: "_guarded_agent(target, place)", put: "target" },
    host: openaiPython,
    noticed: ["D1h"],
  },
  {
    fault: "does not stand before the tools of MCP servers",
    file: "svc_gate_openai_agents.py",
    mutation: { within: "_GuardedAgent", find: "_guarded_mcp_tool(tool, self)", put: "tool" },
    host: openaiPython,
    noticed: ["D2"],
  },
];

const frameworks: readonly Mutant[] = [
  {
    fault: "judges before a toolset of the program changes the input",
    file: "svc_gate_pydantic_ai.py",
    mutation: {
      within: "GateCapability.get_wrapper_toolset",
      find: "toolset.visit_and_replace(lambda leaf: _Guarded(leaf, self._guard))",
      put: "_Guarded(toolset, self._guard)",
    },
    host: "Pydantic AI",
    noticed: ["D4p"],
  },
  {
    fault: "takes the answer of the program's user for a person's decision",
    file: "svc_gate_pydantic_ai.py",
    mutation: {
      within: "_Guarded.call_tool",
      find: "self.guard.run(call, $work, _refuse)",
      put: "(self.wrapped.call_tool(name, tool_args, ctx, tool) if ctx.tool_call_approved else $found)",
    },
    host: "Pydantic AI",
    noticed: ["E1n"],
  },
  {
    fault: "drops the arguments",
    file: "svc_gate_pydantic_ai.py",
    mutation: { within: "_Guarded.call_tool", find: "plain(tool_args)", put: "{}" },
    host: "Pydantic AI",
    noticed: ["A1"],
  },
  {
    fault: "lets a callback of the agent change the input after the check",
    file: "svc_gate_google_adk.py",
    mutation: {
      within: "_problems_of",
      find: 'getattr(agent, "canonical_before_tool_callbacks", [])',
      put: "[]",
    },
    host: "Google ADK, Python",
    noticed: ["D4"],
  },
  {
    fault: "takes the answer of the program's user for a person's decision",
    file: "svc_gate_google_adk.py",
    mutation: {
      within: "GatePlugin.before_tool_callback",
      find: "judgement.runs",
      put: "judgement.runs or tool_context.tool_confirmation is not None",
    },
    host: "Google ADK, Python",
    noticed: ["E1n"],
  },
  {
    fault: "does not see what the provider runs",
    file: "svc_gate_google_adk.py",
    mutation: {
      within: "_provided_by",
      find: 'name != "function_declarations"',
      put: "False",
    },
    host: "Google ADK, Python",
    noticed: ["D3"],
  },
  {
    fault: "does not see what the provider runs",
    file: "google-adk.mjs",
    mutation: { within: "stopAt", find: "problems.length > 0", put: "false" },
    host: "Google ADK, JavaScript",
    noticed: ["D3"],
  },
  {
    fault: "loses the server of a tool",
    file: "google-adk.mjs",
    mutation: {
      within: "nameOf",
      find: "gateName(originalName, name.slice(0, -end.length))",
      put: "gateName(originalName)",
    },
    host: "Google ADK, JavaScript",
    noticed: ["D2"],
  },
  {
    fault: "judges another input than the tool gets",
    file: "google-adk.mjs",
    mutation: {
      within: "run",
      find: "guard.judge({ name, input, context }, $$more)",
      put: "guard.judge({ name, input: { amount: 5 }, context }, $$more)",
    },
    host: "Google ADK, JavaScript",
    noticed: ["A2"],
  },
  {
    fault: "lets a later middleware change the arguments",
    file: "svc_gate_agent_framework.py",
    mutation: {
      within: "_Calls.process",
      find: "context.metadata[_SECURITY_ARGUMENTS_SNAPSHOT_CONTEXT_KEY] = $token",
      put: "pass",
    },
    host: "Microsoft Agent Framework",
    noticed: ["D4"],
  },
  {
    fault: "takes the answer of the program's user for a person's decision",
    file: "svc_gate_agent_framework.py",
    mutation: {
      within: "_Calls.process",
      find: "self._guard.judge(call)",
      put: '($found if "approval_response" not in context.metadata else call_next())',
    },
    host: "Microsoft Agent Framework",
    noticed: ["E1n"],
  },
];

suite("broken adapters", { concurrency: 2 }, () => {
  for (const mutant of [...mutants, ...frameworks, ...inPython]) {
    const { fault, file, host, noticed } = mutant;
    control(`${host} notices that ${file} ${fault}`, async (t) => {
      const driver = drivers.find(({ name }) => name === host);
      assert.ok(driver !== undefined);
      const missing = driver.missing();
      if (missing !== undefined) return t.skip(missing);
      const runs = await runHost(t, driver, {
        ids: noticed,
        atOnce: 4,
        lateMs: controlPatienceMs,
        adapters: mutated(t, mutant),
      });
      const failed = runs.filter(({ problems }) => problems.length > 0).map(({ id }) => id);
      assert.deepEqual(failed, noticed);
      return undefined;
    });
  }
});

/** A driver of no host: it asks for another machine, and its tool runs after the end of the run. */
const restless: Driver = {
  name: "restless",
  page: "",
  version: () => "1",
  hasPermissions: true,
  tools: {
    pay: { host: "pay", gate: "kit.pay" },
    mcp: { host: "pay", gate: "kit.pay" },
    shell: { host: "Bash", gate: "Bash" },
    agent: { host: "Agent", gate: "Agent" },
    web: { host: "WebSearch", gate: "WebSearch" },
  },
  missing: () => undefined,
  excuse: () => undefined,
  open: () => ({
    run: async ({ case: { id }, env, folder }) => {
      const proxy = new URL(env["HTTPS_PROXY"] ?? "");
      const outgoing = request({
        host: proxy.hostname,
        port: proxy.port,
        method: "CONNECT",
        path: "elsewhere.example:443",
      });
      outgoing.end();
      await once(outgoing, "connect");
      if (id === "A2") void pause(200).then(() => appendFileSync(join(folder, "project", "witness.txt"), "pay 900\n"));
      else await pause(600);
      return { ended: "done", detail: "" };
    },
  }),
};

control(
  "positive control: case G1 notices a host that reaches another machine, and a tool that runs late",
  async (t) => {
    const runs = await runHost(t, restless, { ids: ["A2", "B1"], lateMs: controlPatienceMs });
    assert.deepEqual(runs.find(({ id }) => id === "G1")?.problems, [
      "it asked for CONNECT elsewhere.example:443",
      "case A2: a tool ran after the end of the run",
    ]);
  },
);

control("positive control: a host that does not park fails each case that goes on after parking", async (t) => {
  const runs = await runHost(t, restless, { ids: ["E1n", "E1d"], lateMs: controlPatienceMs });
  const failed = runs.filter(({ problems }) => problems.some((problem) => problem.includes("the run did not park")));
  assert.deepEqual(
    failed.map(({ id }) => id),
    ["E1n", "E1d"],
  );
});

/** Returns a folder with the adapters, one of them broken. */
function mutated(t: TestContext, { file, mutation }: Mutant): string {
  const folder = join(temporaryFolder(t), "adapters");
  cpSync(join(root, "adapters"), folder, { recursive: true, filter: (path) => !path.endsWith("conformance") });
  const program = [11, 12, 13, 10].map(pythonOf).find((each) => each !== undefined) ?? "python3";
  const source = join(root, "adapters", file);
  const text = file.endsWith(".py") ? mutatedPython(program, source, [mutation]) : mutatedFile(source, [mutation]);
  writeFileSync(join(folder, file), text);
  return folder;
}
