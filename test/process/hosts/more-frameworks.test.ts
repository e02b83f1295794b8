/**
 * Goal: the adapters of smolagents, LlamaIndex and CrewAI refuse each set-up in which a call could run without the gate, and no
 * other way to a tool is open. Method: as frameworks.test.ts, with the real frameworks and a client that allows everything.
 */
import { test } from "node:test";
import { check } from "../../support/frameworks.ts";

const now = `
class GateNow(Gate):
    def check(self, *call):
        self.asked.append(call[:2])
        return Some(verdict="ALLOW", escalated=False, unreached=False, approval=None, receipt=None, reason="fine", mode="enforce")
`;

test("the adapter of smolagents refuses blind spots, and a model's code has no other way to a tool", (t) => {
  const program = `${now}
from smolagents import CodeAgent, Model, Tool, ToolCallingAgent, tool
from svc_gate_smolagents import guarded
class Pay(Tool):
    name, description, output_type = "pay", "Pays.", "string"
    inputs = {"amount": {"type": "number", "description": "How much."}}
    def forward(self, amount):
        return "paid %s" % amount
def agent(kind=CodeAgent, tools=None, more={}, **options):
    return kind([Pay()] if tools is None else tools, Model(**more), verbosity_level=-1, **options)
async def made(agent, **settings):
    return guarded(agent, GateNow(), **settings) and "guarded"
async def code(text):
    gate = GateNow()
    coder = guarded(agent(), gate)
    coder.python_executor.send_tools({**coder.tools})
    return coder.python_executor(text).output, gate.asked
async def by_class():
    gate = GateNow()
    pay = guarded(agent(), gate).tools["pay"]
    return type(pay).forward(pay, 5), gate.asked
async def added():
    guarded(agent(), GateNow()).tools["more"] = Pay()
async def twice():
    return guarded(guarded(agent(), GateNow()), GateNow())
async def after_a_run():
    used = agent()
    used.python_executor.send_tools({**used.tools})
    return guarded(used, GateNow())
class MCPAdaptTool(Pay):
    pass
MCPAdaptTool.__module__ = "mcpadapt.smolagents_adapter"
class Elsewhere:
    pass
`;
  check(t, "libraries/crewai", program, [
    ["made(agent())", "guarded"],
    ["made(agent(ToolCallingAgent))", "guarded"],
    ['code("pay(5)")', "('paid 5', [('pay', {'amount': 5})])"],
    ["by_class()", "('paid 5', [('pay', {'amount': 5})])"],
    ['code("pay.forward(5)")', "no attribute forward"],
    ['code("pay.__wrapped__(5)")', "('paid 5', [('pay', {'amount': 5})])"],
    ['code("pay.__closure__")', "dunder"],
    ['code("pay.__getattribute__(\\"__closure__\\")")', "dunder"],
    ['code("pay(print)")', "is not JSON data"],
    ['code("pay(5, amount=900)")', "by their names"],
    ["added()", "does not support item assignment"],
    ["twice()", "is guarded already"],
    ["after_a_run()", "its code has run"],
    ['made(agent(additional_authorized_imports=["os"]))', "its code may import os"],
    ['made(agent(additional_authorized_imports=["statistics", "json"]), imports=["json"])', "guarded"],
    ['made(agent(executor_kwargs={"additional_functions": {"pay": print}}))', "its code may call pay"],
    ["made(agent(executor=Elsewhere()))", "its code runs elsewhere: Elsewhere"],
    ['made(agent(more={"web_search_options": {}}))', "the model's setting web_search_options"],
    ["made(agent(tools=[MCPAdaptTool()]))", "the MCP tool pay needs its server's name"],
    [
      "made(agent(tools=[], managed_agents=[agent(tools=[MCPAdaptTool()], name='inner', description='Works.')]))",
      "the MCP tool pay needs its server's name",
    ],
  ]);
});

test("the adapter of LlamaIndex refuses blind spots, and asks about handoffs and all kinds of tools", (t) => {
  const program = `
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.llms import MockLLM
from llama_index.core.objects import ObjectRetriever
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI, OpenAIResponses
from svc_gate_llama_index import guarded
async def give(ctx: Context, amount: int, account: str = "") -> str:
    return "%s to %s of %s" % (amount, account, bool(ctx))
own = FunctionTool.from_defaults(give, name="give", partial_params={"account": "shop"})
mcp = FunctionTool.from_defaults(give, name="pay")
mcp._real_fn = lambda: None
mcp._real_fn.__module__ = "llama_index.tools.mcp.base"
class Found(ObjectRetriever):
    def __init__(self):
        pass
    async def aretrieve(self, text):
        return [own]
def agent(kind=FunctionAgent, name="kit", **options):
    return kind(name=name, description="Works.", llm=options.pop("llm", MockLLM()), **options)
async def called(agent, *which, name="give", **settings):
    gate = Gate()
    ready = guarded(agent, gate, **settings)
    tools = {tool.metadata.name: tool for tool in await ready.get_tools(*which)}
    output = await ready._call_tool(Context(ready), tools[name], {"amount": 5})
    return gate.asked, str(output)
async def twice():
    return guarded(guarded(agent(tools=[own]), Gate()), Gate())
def two(**options):
    return AgentWorkflow([agent(**options), agent(name="other")], root_agent="kit")
`;
  check(t, "libraries/python-openai-2", program, [
    ["called(agent(tools=[own]))", "(['give'], '5 to shop of True')"],
    ["called(agent(ReActAgent, tools=[own]))", "(['give'], '5 to shop of True')"],
    ["called(agent(tool_retriever=Found()))", "(['give'], '5 to shop of True')"],
    ["called(two(tools=[own]), 'kit')", "(['give'], '5 to shop of True')"],
    ["called(two(tools=[own]), 'kit', name='handoff')", "(['handoff'], "],
    ["called(agent(tools=[mcp]), name='pay', servers={'kit': [mcp]})", "(['kit.pay'], "],
    ["called(agent(tools=[mcp]))", "the MCP tool pay needs its server's name"],
    ["called(two(tools=[mcp]), 'kit')", "the MCP tool pay needs its server's name"],
    ["called(agent(CodeActAgent, code_execute_fn=print))", "kit writes code that calls tools"],
    [
      "called(agent(llm=OpenAIResponses(model='gpt-5', api_key='none', built_in_tools=[{'type': 'web_search'}])))",
      "the model's setting built_in_tools",
    ],
    [
      "called(agent(llm=OpenAI(model='gpt-5', api_key='none', additional_kwargs={'web_search_options': {'a': 1}})))",
      "the model's setting web_search_options",
    ],
    ["twice()", "kit is guarded already"],
  ]);
});

test("the adapter of CrewAI refuses blind spots, and guards copies, text calls and the tools of tasks", (t) => {
  const program = `${now}
import os
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")
from crewai import Agent, Crew, Process, Task
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.tools import BaseTool, tool
from svc_gate_crewai import guarded
class Pay(BaseTool):
    name: str = "Pay a bill"
    description: str = "Pays."
    def _run(self, amount: int) -> str:
        return "paid %s" % amount
class Native(Pay):
    @property
    def server_name(self):
        return "a.b"
    @property
    def original_tool_name(self):
        return "pay"
class CrewAIMCPTool(Pay):
    pass
CrewAIMCPTool.__module__ = "mcpadapt.crewai_adapter"
@tool("later")
async def later(amount: int) -> str:
    """Pays later."""
    return "paid %s later" % amount
def agent(role="payer", **options):
    llm = OpenAICompletion(model="gpt-4o", api_key="none", **options.pop("model", {}))
    return Agent(role=role, goal="g", backstory="b", llm=llm, **options)
def crew(*agents, task=None, **options):
    return Crew(agents=agents, tasks=[Task(description="d", expected_output="e", agent=task or agents[0])], **options)
def ran(executor, way):
    found = executor.original_tools[0] if way == "native" else executor.tools[0]
    return found.run(amount=5) if way == "native" else found.invoke({"amount": 5})
async def called(tools, way="native", is_copied=False, **settings):
    gate = GateNow()
    payer = guarded(crew(agent()), gate, **settings).agents[0]
    payer = payer.copy() if is_copied else payer
    payer.create_agent_executor(tools=tools)
    return await asyncio.to_thread(lambda: (ran(payer.agent_executor, way), gate.asked))
async def alone():
    gate = GateNow()
    executor = guarded(agent(tools=[Pay()]), gate)._prepare_kickoff("pay")[0]
    return ran(executor, "native"), gate.asked
async def kept_in_cache(result):
    payer = guarded(crew(agent(cache=True), cache=True), GateNow()).agents[0]
    payer.create_agent_executor(tools=[Pay()])
    return payer.agent_executor.original_tools[0].cache_function({}, result)
async def made(crew):
    return guarded(crew, GateNow()) and "guarded"
async def twice():
    return guarded(guarded(crew(agent()), GateNow()), GateNow())
async def skipped():
    Agent._add_skill_loader_tool = lambda self, tools, **more: tools
    payer = guarded(agent(), GateNow())
    del type(payer)._add_skill_loader_tool
    payer.create_agent_executor(tools=[Pay()])
managed = dict(process=Process.hierarchical)
mcp = CrewAIMCPTool()
`;
  const paid = "('paid 5', [('pay_a_bill', {'amount': 5})])";
  check(t, "libraries/crewai", program, [
    ["called([Pay()])", paid],
    ["called([Pay()], way='text')", paid],
    ["called([Pay()], is_copied=True)", paid],
    ["called([later])", "('paid 5 later', [('later', {'amount': 5})])"],
    ["called([Native()])", "[('a%2Eb.pay', {'amount': 5})]"],
    ["called([mcp], servers={'kit': [mcp]})", "[('kit.Pay%20a%20bill', {'amount': 5})]"],
    ["called([mcp])", "the MCP tool Pay a bill needs its server's name"],
    ["alone()", paid],
    ["kept_in_cache('paid 5')", "False"],
    ["made(crew(agent(), agent('other')))", "guarded"],
    ["made(crew(agent(), manager_agent=agent('boss'), **managed))", "guarded"],
    ["made(crew(agent(), manager_llm=agent().llm, **managed))", "give it a manager_agent"],
    [
      "made(crew(agent(model=dict(api='responses', builtin_tools=['web_search']))))",
      "the model's setting builtin_tools",
    ],
    ["twice()", "payer is guarded already"],
    ["skipped()", "svc-gate does not guard these tools: Pay a bill"],
  ]);
});
