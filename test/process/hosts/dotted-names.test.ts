/**
 * Goal: a tool whose name has a dot is refused when the agent is set up, or in its first call, with an error that says what to do:
 * another name, and `aliases` in the contract. Method: each adapter gets such a tool, in the real framework where it must. Control:
 * a tool without a dot is accepted.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { compile, judge } from "../../support/contract-kit.ts";
import { check } from "../../support/frameworks.ts";

const advice =
  "refund.create has a dot, as only tools of MCP servers do: name it refund_create, and write `aliases: [refund_create]` below " +
  "refund.create in the contract";

const gate = { check: async () => {} };
const brand = (name: string): symbol => Symbol.for(`google.adk.${name}`);

/** What an agent with a tool of this name gives to the adapter. */
const inJavascript: Readonly<Record<string, (guarded: any, name: string) => unknown>> = {
  "ai-sdk": (guarded, name) => guarded({ [name]: { execute: async () => 1 } }, { gate }),
  mastra: (guarded, name) => guarded({ [name]: { execute: async () => 1 } }, { gate }),
  langchain: (guarded, name) => guarded([{ name, _call: async () => 1, invoke: 1 }], { gate }),
  "google-adk": (guarded, name) =>
    guarded([{ name, [brand("baseTool")]: true, [brand("functionTool")]: true, runAsync: async () => 1 }], { gate }),
};

/** Programs that ask the adapter of a framework about `pay`, and about a tool with a dot. */
const inPython = [
  {
    folder: "libraries/langchain",
    program: `
from langchain_core.tools import StructuredTool
from svc_gate_langchain import guarded
async def named(name):
    return guarded([StructuredTool.from_function(pay, name=name, description="Pays.")], Gate())[0].name
`,
  },
  {
    folder: "libraries/python",
    program: `
from agents import Agent, FunctionTool
from svc_gate_openai_agents import guarded
async def named(name):
    tool = FunctionTool(name=name, description="d", params_json_schema={"type": "object"}, on_invoke_tool=None)
    return guarded(Agent(name="desk", tools=[tool]), Gate()).tools[0].name
`,
  },
  {
    folder: "libraries/python",
    program: `
from google.adk.tools import FunctionTool
from svc_gate_google_adk import GatePlugin
async def named(name):
    tool = FunctionTool(pay)
    tool.name, gate = name, Gate()
    class Context(Some):
        __hash__ = object.__hash__
    await GatePlugin(gate).before_tool_callback(tool=tool, tool_args={}, tool_context=Context(tool_confirmation=None))
    return gate.asked[0]
`,
  },
  {
    folder: "libraries/python-openai-2",
    program: `
from llama_index.core.tools import FunctionTool
import svc_gate_llama_index as adapter
async def named(name):
    problems = adapter._name_problems_of(FunctionTool.from_defaults(pay, name=name), {})
    return "; ".join(problems) or name
`,
  },
  {
    folder: "libraries/python-openai-2",
    program: `
from agent_framework import FunctionTool
import svc_gate_agent_framework as adapter
async def named(name):
    return "; ".join(adapter._problems_of(FunctionTool(name=name, description="d", func=pay))) or name
`,
  },
  {
    folder: "libraries/python",
    program: `
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from svc_gate_pydantic_ai import GateCapability
async def named(name):
    said = []
    def model(messages, info):
        said.extend(str(part.content) for each in messages for part in each.parts if part.part_kind == "tool-return")
        is_first = not any(isinstance(each, ModelResponse) for each in messages)
        return ModelResponse(parts=[ToolCallPart(name, {}) if is_first else TextPart("end")])
    gate = Gate()
    await Agent(FunctionModel(model), tools=[Tool(pay, name=name)], capabilities=[GateCapability(gate)]).run("go")
    return gate.asked or said
`,
  },
] as const;

suite("a tool's name with a dot", () => {
  for (const [file, setUp] of Object.entries(inJavascript))
    test(`${file}.mjs says what to do`, async () => {
      const { guarded } = await import(`../../../adapters/${file}.mjs`);
      assert.throws(
        () => setUp(guarded, "refund.create"),
        (error: Error) => error.message.includes(advice),
      );
      assert.ok(setUp(guarded, "refund_create") !== undefined);
    });

  for (const { folder, program } of inPython)
    test(`${/svc_gate_\w+/.exec(program)?.[0]}.py says what to do`, (t) =>
      check(t, folder, program, [
        ['named("refund.create")', advice],
        ['named("pay")', "pay"],
      ]));

  test("the contract that the error asks for lets the renamed tool run", () => {
    const lines = [
      "contract: c",
      "tools:",
      "  refund.create:",
      "    input: { type: object, additionalProperties: false }",
      "    otherwise: ALLOW",
    ];
    const aliased = lines.toSpliced(3, 0, "    aliases: [refund_create]");
    const verdicts = [lines, aliased].map(
      (each) => judge(compile(each.join("\n")), { tool: "refund_create", input: {} }).verdict,
    );
    assert.deepEqual(verdicts, ["BLOCK", "ALLOW"]);
  });
});
