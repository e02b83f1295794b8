/**
 * Goal: the adapters of Pydantic AI, Google's ADK and Microsoft Agent Framework refuse each set-up in which a call could run
 * without the gate, and ask under the documented names. Method: a program makes such set-ups in the real framework, with a client
 * that allows everything. It prints the adapter's error, or the names that the client was asked about.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { guarded } from "../../../adapters/google-adk.mjs";
import { check } from "../../support/frameworks.ts";

test("the adapter of Pydantic AI refuses blind spots, and names tools as the model and their servers do", (t) => {
  const program = `
from pydantic_ai import Agent, DeferredToolRequests, ToolDefinition
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from svc_gate_pydantic_ai import GateCapability
class MCPToolset(FunctionToolset):
    pass
own = FunctionToolset([pay])
mcp = MCPToolset([pay], id="kit")
async def asked(*toolsets, capabilities=(), **options):
    gate = Gate()
    agent = Agent(TestModel(), toolsets=toolsets, capabilities=[GateCapability(gate), *capabilities], **options)
    return gate.asked, (await agent.run("pay")).output
`;
  check(t, "libraries/python", program, [
    ["asked(own)", `['pay'], '{"pay":"paid"}'`],
    ['asked(own.prefixed("bill"))', "['bill_pay']"],
    ['asked(mcp.renamed({"give": "pay"}))', "['kit.pay']"],
    ['asked(mcp.prefixed("kit"), mcp.prefixed("b"))', "['kit.pay', 'kit.pay']"],
    ["asked(lambda ctx: mcp)", "['kit.pay']"],
    ['asked(lambda ctx: mcp.prefixed("kit"))', "([], "],
    ["asked(MCPToolset([pay]))", "([], "],
    ["asked(own, capabilities=[NativeTool(WebSearchTool())])", "the provider runs web_search"],
    [
      'asked(ExternalToolset([ToolDefinition(name="out")]), output_type=[str, DeferredToolRequests])',
      "another program runs out",
    ],
    ['asked(own, model_settings={"openai_native_tools": [{}]})', "the setting openai_native_tools"],
    ['asked(own, model_settings={"extra_body": {"tools": []}})', "the setting extra_body"],
  ]);
});

test("the adapter of Google's ADK for Python refuses what its plugin cannot stand before", (t) => {
  const program = `
from google.adk.agents import LlmAgent
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.logging_plugin import LoggingPlugin
from google.adk.tools import AgentTool
from google.genai import types
from svc_gate_google_adk import GatePlugin, _name_of
def agent(name="payer", **more):
    return LlmAgent(name=name, model="gemini", **more)
async def begun(root, before=(), after=(), live=None):
    plugin = GatePlugin(Gate())
    plugins = Some(plugins=[*before, plugin, *after])
    await plugin.before_run_callback(invocation_context=Some(plugin_manager=plugins, live_request_queue=live, agent=root))
    return "begun"
async def sent(tool):
    request = Some(config=Some(tools=[tool]))
    return await GatePlugin(Gate()).before_model_callback(callback_context=None, llm_request=request)
async def named(name, remote):
    return _name_of(Some(name=name, raw_mcp_tool=remote and Some(name=remote)))
`;
  check(t, "libraries/python", program, [
    [
      "begun(agent(tools=[pay, AgentTool(agent('inner'))]), before=[LoggingPlugin()], after=[BasePlugin('x')])",
      "begun",
    ],
    ["begun(agent(), after=[LoggingPlugin()])", "the plugin logging_plugin comes later"],
    ["begun(agent(), live=object())", "run_live"],
    ["begun(agent(before_tool_callback=lambda **_: None))", "the before_tool_callback of payer"],
    ["begun(agent(sub_agents=[agent('sub', code_executor=UnsafeLocalCodeExecutor())]))", "the code_executor of sub"],
    ["begun(agent(tools=[AgentTool(agent('inner'), include_plugins=False)]))", "the tool inner runs without plugins"],
    ["begun(agent(tools=[AgentTool(agent('inner', before_tool_callback=pay))]))", "the before_tool_callback of inner"],
    ["sent(types.Tool(function_declarations=[types.FunctionDeclaration(name='pay')]))", "None"],
    ["sent(types.Tool(google_search=types.GoogleSearch()))", "the provider runs google_search"],
    ["sent(pay)", "the provider runs pay"],
    ['named("pay", None)', "pay"],
    ['named("kit_pay", "pay")', "kit.pay"],
    ['named("pay", "pay")', "None"],
  ]);
});

test("the adapter of Microsoft Agent Framework refuses tools that others run", (t) => {
  const program = `
from agent_framework import Agent, FunctionTool
from agent_framework.openai import OpenAIChatClient
from svc_gate_agent_framework import _input_of, _name_of, gate_middleware
async def run(tool):
    client = OpenAIChatClient(model="m", api_key="none", base_url="http://127.0.0.1:1")
    return await Agent(client, tools=[tool], middleware=gate_middleware(Gate())).run("pay")
async def named(name, **properties):
    return _name_of(FunctionTool(name=name, func=pay, additional_properties=properties))
async def sent(**properties):
    schema = {"type": "object", "properties": {"amount": {}, "to": {}, "session": {}}}
    tool = FunctionTool(name="kit_pay", func=pay, input_model=schema, additional_properties=properties)
    kwargs = {"amount": 900, "to": "shop", "session": object(), "gate": object()}
    return _input_of(Some(function=tool, arguments={"amount": 5}, kwargs=kwargs))
`;
  check(t, "libraries/python-openai-2", program, [
    ['run({"type": "web_search"})', "the provider runs web_search"],
    ['run(FunctionTool(name="out", func=None))', "another program runs out"],
    ['named("pay")', "pay"],
    ['named("kit_pay", _mcp_remote_name="pay", _mcp_normalized_name="pay")', "kit.pay"],
    ['named("pay", _mcp_remote_name="pay", _mcp_normalized_name="pay")', "None"],
    ['sent(_mcp_remote_name="pay")', "{'amount': 5, 'to': 'shop'}"],
    ["sent()", "{'amount': 5}"],
  ]);
});

test("the adapter of Google's ADK for JavaScript refuses an agent with a tool that is not guarded", async (t) => {
  const manifest = join(installed("libraries/javascript"), "package.json");
  if (!existsSync(join(manifest, "..", "node_modules")))
    return t.skip("the framework is not installed: run npm run hosts");
  const { resolve } = createRequire(manifest);
  const adk = await import(pathToFileURL(resolve("@google/adk")).href);
  const settings = { gate: { check: async () => ({}), settle: async () => ({}), outcome: async () => null } };
  const pay = new adk.FunctionTool({ name: "pay", description: "Pays.", execute: () => "paid" });
  const [tool] = guarded([pay], settings);
  const agent = (more: object): any => new adk.LlmAgent({ name: "payer", model: "gemini-2.5-flash", ...more });
  const request = (more: object, llmRequest: object = { toolsDict: {} }): Promise<void> =>
    tool.processLlmRequest({ toolContext: { invocationContext: { agent: agent(more) } }, llmRequest });
  await request({ tools: [tool, ...guarded([new adk.AgentTool({ agent: agent({ tools: [tool] }) })], settings)] });
  assert.throws(
    () => guarded([new adk.AgentTool({ agent: agent({ tools: [pay] }) })], settings),
    /pay of payer is not/,
  );
  assert.throws(() => guarded([agent({})], settings), /payer is a node of a workflow/);
  await assert.rejects(request({ tools: [tool, adk.GOOGLE_SEARCH] }), /google_search of payer is not guarded/);
  await assert.rejects(request({ tools: [tool], codeExecutor: {} }), /the codeExecutor of payer/);
  const provided = { toolsDict: {}, config: { tools: [{ googleSearch: {} }] } };
  await assert.rejects(request({ tools: [tool] }, provided), /the provider runs googleSearch/);
  return undefined;
});
