/**
 * Goal: the adapters for the OpenAI Agents SDK refuse agents that could act without the gate, and guard agents that call each
 * other. Method: the SDK's scripted model, and a gate in the program that keeps each request. Positive control: the kit's
 * mutants, and the same agents without the wrong tool, which are guarded here.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { GateClient } from "../../../adapters/guard.mjs";
import { guarded } from "../../../adapters/openai-agents.mjs";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { root } from "../../support/gate.ts";

const folder = installed("libraries/javascript");
const isInstalled = existsSync(join(folder, "node_modules", "@openai", "agents"));
const skip = isInstalled ? false : "the SDK is not installed: run npm run hosts";
const { resolve } = createRequire(join(folder, "package.json"));
const load = (name: string): Promise<any> =>
  isInstalled ? import(pathToFileURL(resolve(name)).href) : Promise.resolve();
const [sdk, testing, sandbox] = await Promise.all(
  ["@openai/agents", "@openai/agents/testing", "@openai/agents/sandbox"].map(load),
);
sdk?.setTracingDisabled(true);

/** A gate that lets small amounts run, and 75 after a person has approved it. */
function gateOf(checked: string[], approved: { is: boolean }): GateClient {
  return {
    check: async (name: string, input: any) => {
      checked.push(`${name} ${JSON.stringify(input)}`);
      const verdict = input.amount === 75 && !approved.is ? "ESCALATE" : (input.amount ?? 0) > 75 ? "BLOCK" : "ALLOW";
      return {
        verdict,
        allowed: verdict === "ALLOW",
        escalated: verdict === "ESCALATE",
        unreached: false,
        mode: "enforce",
        reason: `${verdict} ${input.amount}`,
        receipt: null,
      };
    },
    settle: async (verdict: any) => verdict,
    outcome: async () => null,
  };
}

const call = (name: string, input: object, id = "call_1"): object => testing.functionCall(name, input, { callId: id });
const modelOf = (...turns: (object | string)[]): object =>
  new testing.ScriptedModel(
    turns.map((turn) =>
      testing.modelResponse({
        output: [typeof turn === "string" ? testing.assistantMessage(turn) : turn],
        usage: new sdk.Usage(),
      }),
    ),
  );

function payTool(ran: number[]): object {
  return sdk.tool({
    name: "pay",
    description: "Pays.",
    strict: false,
    parameters: {
      type: "object",
      properties: { amount: { type: "number" } },
      required: [],
      additionalProperties: true,
    },
    execute: async ({ amount }: any) => `paid ${ran.push(amount)}`,
  });
}

suite("the adapter for JavaScript", { skip }, () => {
  const plain = (more: object = {}): any => new sdk.Agent({ name: "desk", model: "m", ...more });
  const settings = { gate: gateOf([], { is: false }) };
  const wrong: readonly (readonly [why: string, more: () => object, says: RegExp])[] = [
    [
      "a tool that the provider runs",
      () => ({ tools: [sdk.webSearchTool()] }),
      /in desk, web_search is a tool of type/,
    ],
    ["code that the provider runs", () => ({ tools: [sdk.codeInterpreterTool()] }), /code_interpreter/],
    [
      "an MCP server that the provider calls",
      () => ({ tools: [sdk.hostedMcpTool({ serverLabel: "a", serverUrl: "b" })] }),
      /hosted_mcp/,
    ],
    ["a shell", () => ({ tools: [sdk.shellTool({ shell: { run: () => 0 } })] }), /shell is a tool of type shell/],
    ["an editor", () => ({ tools: [sdk.applyPatchTool({ editor: {} })] }), /type apply_patch/],
    ["a computer", () => ({ tools: [sdk.computerTool({ computer: {} })] }), /type computer/],
    [
      "an agent that is not guarded as a tool",
      () => ({ tools: [plain().asTool({ toolName: "clerk" })] }),
      /clerk hides its agent/,
    ],
    [
      "a namespace",
      () => ({ tools: sdk.toolNamespace({ name: "n", description: "d", tools: [payTool([])] }) }),
      /pay is in a namespace/,
    ],
    [
      "a name with a dot",
      () => ({ tools: [{ ...payTool([]), name: "refund.create" }] }),
      /refund\.create has a dot.* write `aliases: \[refund_create\]` below refund\.create/,
    ],
    [
      "tools in the model's settings",
      () => ({ modelSettings: { providerData: { tools: [] } } }),
      /its model's settings/,
    ],
    [
      "tools in the rest of the request",
      () => ({ modelSettings: { providerData: { extraBody: { tools: [{ type: "web_search" }] } } } }),
      /its model's settings/,
    ],
    [
      "the same with the provider's spelling",
      () => ({ modelSettings: { providerData: { extra_body: { tools: [] } } } }),
      /its model's settings/,
    ],
    [
      "a bad sub-agent",
      () => ({ handoffs: [sdk.handoff(plain({ name: "clerk", tools: [sdk.webSearchTool()] }))] }),
      /in clerk, web_search/,
    ],
    ["a server without a name", () => ({ mcpServers: [{ name: "" }] }), /a server has no name/],
  ];
  for (const [why, more, says] of wrong)
    test(`it refuses ${why}`, () => {
      assert.throws(() => guarded(plain(more()), settings), says);
    });

  test("it refuses classes of agents that have other tools, and an agent that is guarded already", () => {
    assert.throws(() => guarded(new sandbox.SandboxAgent({ name: "box" }), settings), /in box, its class/);
    assert.throws(() => guarded(new sdk.realtime.RealtimeAgent({ name: "voice" }), settings), /in voice, its class/);
    const done = guarded(plain({ tools: [payTool([])] }), settings);
    assert.throws(() => guarded(done, settings), /already/);
    guarded(plain({ handoffs: [done], tools: [done.asTool({ toolName: "clerk" })] }), settings);
  });

  test("two agents that hand over to each other are guarded, and a refused handover ends the run", async () => {
    const [ran, checked]: [number[], string[]] = [[], []];
    const clerk = plain({ name: "clerk", tools: [payTool(ran)] });
    const desk = plain({ handoffs: [clerk], model: modelOf(call("transfer_to_clerk", {}), "bye") });
    clerk.handoffs = [desk];
    clerk.model = modelOf(call("pay", { amount: 900 }, "call_2"), call("transfer_to_desk", { amount: 901 }, "call_3"));
    const run = sdk.run(guarded(desk, { gate: gateOf(checked, { is: false }) }), "go");
    await assert.rejects(run, { name: "SvcGateRefusal", message: "BLOCK 901" });
    assert.deepEqual(checked, ["transfer_to_clerk {}", 'pay {"amount":900}', 'transfer_to_desk {"amount":901}']);
    assert.deepEqual(ran, []);
  });

  test("a handover to another agent than the one that it shows ends the run", async () => {
    const odd = new sdk.Handoff(plain({ name: "clerk" }), async () => plain({ name: "stranger" }));
    const desk = plain({ handoffs: [odd], model: modelOf(call("transfer_to_clerk", {}), "bye") });
    await assert.rejects(sdk.run(guarded(desk, settings), "go"), /another agent than it shows/);
  });

  test("the gate of a call to a server may be a function of the run", async () => {
    const ran: object[] = [];
    const server = {
      name: "kit",
      cacheToolsList: false,
      listTools: async () => [{ name: "pay", inputSchema: { type: "object", properties: {}, required: [] } }],
      callTool: async (...given: object[]) => [{ type: "text", text: `paid ${ran.push(given)}` }],
    };
    const checked: Record<string, string[]> = { one: [], two: [] };
    const gate = ({ context }: any): GateClient => gateOf(checked[context.context.run] ?? [], { is: false });
    const turns = [call("pay", { amount: 5 }), call("pay", { amount: 75 }, "call_2"), "bye"];
    for (const run of ["one", "two"]) {
      const agent = guarded(plain({ mcpServers: [server], model: modelOf(...turns) }), { gate, onEscalate: "park" });
      assert.equal((await sdk.run(agent, "go", { context: { run } })).finalOutput, "bye");
    }
    const both = ['kit.pay {"amount":5}', 'kit.pay {"amount":75}'];
    assert.deepEqual([checked, ran.length], [{ one: both, two: both }, 2]);
  });

  test("a call of a sub-agent parks the whole run, and runs once after the approval", async () => {
    const [ran, checked, approved]: [number[], string[], { is: boolean }] = [[], [], { is: false }];
    const all = { gate: gateOf(checked, approved), onEscalate: "park" } as const;
    const clerk = guarded(
      plain({ name: "clerk", tools: [payTool(ran)], model: modelOf(call("pay", { amount: 75 }, "call_2"), "paid") }),
      all,
    );
    const tools = [clerk.asTool({ toolName: "clerk" })];
    const desk = guarded(plain({ tools, model: modelOf(call("clerk", { input: "pay 75" }), "bye") }), all);
    const first = await sdk.run(desk, "go");
    assert.equal(first.interruptions.length, 1);
    const state = await sdk.RunState.fromString(desk, first.state.toString());
    for (const each of state.getInterruptions()) state.approve(each);
    approved.is = true;
    const second = await sdk.run(desk, state);
    assert.deepEqual([second.finalOutput, ran], ["bye", [75]]);
    assert.equal(checked.filter((each) => each.startsWith("pay")).length, 2);
  });
});

/** Arguments of Agent, and a part of the sentence. */
const wrongInPython: readonly (readonly [agent: string, says: string])[] = [
  ["tools=[WebSearchTool()]", "in desk, web_search is a tool of type WebSearchTool"],
  [
    'tools=[HostedMCPTool({"type": "mcp", "server_label": "a", "server_url": "b"})]',
    "hosted_mcp is a tool of type HostedMCPTool",
  ],
  ['tools=[CodeInterpreterTool({"type": "code_interpreter", "container": "c"})]', "code_interpreter is a tool"],
  ["tools=[LocalShellTool(executor=print)]", "local_shell is a tool of type LocalShellTool"],
  ["tools=[ShellTool(executor=print)]", "shell is a tool of type ShellTool"],
  ["tools=[ApplyPatchTool(editor=None)]", "apply_patch is a tool of type ApplyPatchTool"],
  ["tools=[ComputerTool(computer=None)]", "of type ComputerTool"],
  ['tools=[CustomTool(name="c", description="d", on_invoke_tool=print)]', "c is a tool of type CustomTool"],
  ['tools=[Agent(name="clerk").as_tool("clerk", "d")]', "clerk runs an agent that is not guarded"],
  ['tools=tool_namespace(name="n", description="d", tools=[pay])', "pay is in a namespace"],
  ['prompt={"id": "p"}', "its prompt"],
  ['model_settings=ModelSettings(extra_body={"tools": []})', "its model's settings"],
  ['handoffs=[handoff(Agent(name="clerk", tools=[WebSearchTool()]))]', "in clerk, web_search"],
  ['mcp_servers=[type("Server", (), {"name": ""})()]', "a server has no name"],
  ["handoffs=[hidden]", "a handoff does not show its agent"],
  ['handoffs=[SandboxAgent(name="box")]', "box is of type SandboxAgent"],
];

const program = `import asyncio, dataclasses, json, sys
sys.path[:0] = [sys.argv[1]]
from agents import *
from agents import CustomTool, tool_namespace
from agents.sandbox import SandboxAgent
from agents.testing import ScriptedModel, assistant_message, function_call
from svc_gate_openai_agents import SvcGateRefusal, guarded
set_tracing_disabled(True)
asked, ran, approved = [], [], []

class Verdict:
    unreached, mode, approval, receipt = False, "enforce", None, None
    def __init__(self, amount):
        waits = amount == 75 and not approved
        self.verdict = "ESCALATE" if waits else "BLOCK" if amount > 75 else "ALLOW"
        self.escalated, self.reason = waits, "%s %s" % (self.verdict, amount)

class Gate:
    async def check(self, name, given, facts, approval):
        asked.append("%s %s" % (name, json.dumps(given)))
        return Verdict(given.get("amount", 0))

@function_tool
def pay(amount: int) -> str:
    ran.append(amount)
    return "paid"

async def other(context, text):
    return Agent(name="stranger")

hidden = Handoff(tool_name="t", tool_description="d", input_json_schema={}, on_invoke_handoff=other, agent_name="clerk")
def error(**members):
    try:
        return guarded(Agent(name="desk", **members), Gate()) and "guarded"
    except ValueError as found:
        return str(found)
${wrongInPython.map(([agent]) => `print(error(${agent}))`).join("\n")}

def model_of(*turns):
    return ScriptedModel([[assistant_message(turn) if isinstance(turn, str) else turn] for turn in turns])

async def hands_over():
    clerk, desk = Agent(name="clerk", tools=[pay]), Agent(name="desk")
    desk.handoffs, clerk.handoffs = [clerk], [handoff(desk)]
    desk.model = model_of(function_call("transfer_to_clerk", {}, call_id="1"), "bye")
    back = function_call("transfer_to_desk", {"amount": 901}, call_id="3")
    clerk.model = model_of(function_call("pay", {"amount": 900}, call_id="2"), back)
    try:
        await Runner.run(guarded(desk, Gate()), "go")
    except SvcGateRefusal as found:
        print(found, asked, ran)

async def strays():
    desk = Agent(name="desk", model=model_of(function_call("transfer_to_clerk", {}, call_id="1"), "bye"))
    clerk = Agent(name="clerk")
    odd = handoff(clerk)
    desk.handoffs = [odd]
    odd.on_invoke_handoff = other
    try:
        await Runner.run(guarded(desk, Gate()), "go")
    except ValueError as found:
        print(found)

async def parks():
    asked.clear()
    inner = model_of(function_call("pay", {"amount": 75}, call_id="2"), "paid")
    clerk = guarded(Agent(name="clerk", tools=[pay], model=inner), Gate(), on_escalate="park")
    outer = model_of(function_call("clerk", {"input": "pay 75"}, call_id="1"), "bye")
    desk = guarded(Agent(name="desk", tools=[clerk.as_tool("clerk", "d")], model=outer), Gate(), on_escalate="park")
    first = await Runner.run(desk, "go")
    state = await RunState.from_json(desk, json.loads(json.dumps(first.to_state().to_json())))
    for each in state.get_interruptions():
        state.approve(each)
    approved.append(True)
    second = await Runner.run(desk, state)
    print(len(first.interruptions), second.final_output, ran, [each for each in asked if each.startswith("pay")])

asyncio.run(hands_over())
asyncio.run(strays())
asyncio.run(parks())
`;

test("the adapter for Python does the same", (t) => {
  const python = join(installed("libraries/python"), ".venv", "bin", "python");
  if (!existsSync(python)) return t.skip("the SDK is not installed: run npm run hosts");
  const { stdout, stderr } = spawnSync(python, ["-B", "-c", program, join(root, "adapters")], { encoding: "utf8" });
  const lines = stdout.trimEnd().split("\n");
  for (const [index, [agent, says]] of wrongInPython.entries())
    assert.ok(lines[index]?.includes(says), `${agent}: ${lines[index]}\n${stderr}`);
  assert.deepEqual(
    lines.slice(wrongInPython.length),
    [
      `BLOCK 901 ['transfer_to_clerk {}', 'pay {"amount": 900}', 'transfer_to_desk {"amount": 901}'] []`,
      "transfer_to_clerk hands over to another agent than it shows",
      `1 bye [75] ['pay {"amount": 75}', 'pay {"amount": 75}']`,
    ],
    stderr,
  );
  return undefined;
});
