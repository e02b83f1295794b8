/**
 * Goal: a tool of a Python framework gets the arguments that the gate judged, and no other way runs a function. Method: a program
 * calls tools in the real framework, with a client that allows everything, and prints what was judged and what ran. Positive
 * control: adapters without each rule print something else.
 */
import { testWithFaults } from "../../support/frameworks.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";

const recording = `
ran = []
class Recording(Gate):
    async def check(self, name, input, facts, approval):
        verdict = await super().check(name, input, facts, approval)
        self.asked[-1] = input
        return verdict
`;

const models = `
from typing import Iterable
from pydantic import BaseModel, Field
class Payment(BaseModel):
    to: str = Field(alias="payee")
    amount: int = Field(exclude=True)
def give(payment: Payment, note: str = "none") -> str:
    "Pays."
    ran.append((payment.to, payment.amount))
    return "paid"
def each(amounts: Iterable[int]) -> str:
    "Pays."
    ran.append(list(amounts))
    return "paid"
PAYMENT = {"payment": {"payee": "shop", "amount": "900"}}
JUDGED = "[{'payment': {'payee': 'shop', 'amount': 900}, 'note': 'none'}]"
`;

const hidden = {
  within: "plain",
  find: 'fields = getattr(kind, "__pydantic_fields__", None)',
  put: "fields = None",
} as const;
const iterators = { within: "plain", find: 'hasattr(value, "__next__")', put: "False" } as const;

testWithFaults(
  "the guard shows the call to the functions of the platform, which cannot change what is judged or run",
  "libraries/python",
  `${recording}
from svc_gate_guard import Guard, GuardedCall
async def judged(**settings):
    gate = Recording()
    call = GuardedCall("pay", {"to": {"amount": 900}})
    chosen = settings.pop("choose", None)
    guard = Guard((lambda call: (chosen(call), gate)[1]) if chosen else gate, **settings)
    return (await guard.judge(call)).runs, gate.asked, call.input
def change(call):
    call.input["to"]["amount"] = 5
`,
  [
    ["judged(facts=change)", "(True, [{'to': {'amount': 900}}], {'to': {'amount': 900}})"],
    ["judged(choose=change)", "(True, [{'to': {'amount': 900}}], {'to': {'amount': 900}})"],
  ],
  [["svc_gate_guard.py", { within: "_judging", find: "copy.deepcopy(call.input)", put: "call.input" }]],
);

testWithFaults(
  "a judgement of the guard is good for one run",
  "libraries/python",
  `${recording}
from svc_gate_guard import Guard, GuardedCall
async def twice():
    guard = Guard(Recording())
    judgement = await guard.judge(GuardedCall("pay", {}))
    async def work():
        return "paid"
    return [await guard.run_judged(judgement, work, lambda refused: refused.reason) for _ in range(2)]
`,
  [["twice()", "['paid', 'Svc: the verdict of this call was already used; the action is blocked.']"]],
  [["svc_gate_guard.py", { within: "Guard.run_judged", find: "judgement.begun.append(True)", put: "None" }]],
);

testWithFaults(
  "the adapter of Pydantic AI judges all that a tool gets, and runs no function of the output",
  "libraries/python",
  `${recording}${models}
from pydantic_ai import Agent, TextOutput
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from svc_gate_pydantic_ai import GateCapability
async def called(name, args, **options):
    ran.clear()
    gate = Recording()
    def model(messages, info):
        has_called = any(isinstance(each, ModelResponse) for each in messages)
        return ModelResponse(parts=[TextPart("end") if has_called or name is None else ToolCallPart(name, args)])
    agent = Agent(FunctionModel(model), tools=[give, each], capabilities=[GateCapability(gate)], **options)
    try:
        await agent.run("pay")
    except Exception as error:
        return str(error), ran
    return gate.asked == eval(JUDGED), gate.asked, ran
def shout(text: str) -> str:
    ran.append(text)
    return text
`,
  [
    ['called("give", PAYMENT)', "(True, "],
    ['called("each", {"amounts": [5, 900]})', "[], [])"],
    [
      'called("final_result", PAYMENT, output_type=give)',
      "svc-gate cannot guard this agent: the function give runs without a tool: make it a tool', [])",
    ],
    ["called(None, {}, output_type=TextOutput(shout))", "the function shout runs without a tool: make it a tool', [])"],
  ],
  [
    ["svc_gate_guard.py", hidden],
    ["svc_gate_guard.py", iterators],
    [
      "svc_gate_pydantic_ai.py",
      { within: "GateCapability.before_output_process", find: "output_context.has_function", put: "False" },
    ],
  ],
);

testWithFaults(
  "the adapter of LangChain judges all that a tool gets, and refuses a tool with another way to run",
  "libraries/langchain",
  `${recording}${models}
from langchain_core.tools import BaseTool, tool
from svc_gate_langchain import guarded
async def called(function, args):
    ran.clear()
    gate = Recording()
    await guarded([function], gate)[0].ainvoke(args)
    return gate.asked == eval(JUDGED), gate.asked, ran
class Direct(BaseTool):
    name: str = "direct"
    description: str = "Pays."
    def _run(self) -> str:
        return "paid"
    def invoke(self, *given, **more):
        return self._run()
`,
  [
    ["called(give, PAYMENT)", "(True, "],
    ['called(each, {"amounts": [5, 900]})', "[], [])"],
    ["called(Direct(), {})", "direct has a method invoke of its own, which may run it without a check"],
  ],
  [
    ["svc_gate_guard.py", hidden],
    ["svc_gate_guard.py", iterators],
    [
      "svc_gate_langchain.py",
      { within: "_problem_of", find: 'getattr(kind, way).__module__.startswith("langchain_core.")', put: "True" },
    ],
  ],
);

testWithFaults(
  "the plugin of Google's ADK refuses an agent without plugins that a toolset shows only in the run",
  "libraries/python",
  `
from google.adk.agents import LlmAgent
from google.adk.tools import AgentTool
from svc_gate_google_adk import GatePlugin
async def called(**more):
    gate = Gate()
    tool = AgentTool(LlmAgent(name="inner", model="gemini"), **more)
    context = type("Context", (), {"tool_confirmation": None})()
    await GatePlugin(gate).before_tool_callback(tool=tool, tool_args={}, tool_context=context)
    return gate.asked
`,
  [
    ["called()", "['inner']"],
    ["called(include_plugins=False)", "the agent in the tool inner runs without plugins"],
  ],
  [
    [
      "svc_gate_google_adk.py",
      { within: "GatePlugin.before_tool_callback", find: "_problems_of_tool(tool)", put: "[]" },
    ],
  ],
);

const defaults = `${recording}${models}
from typing import Annotated
from pydantic import Field
def send(amount: int, currency: str = "EUR", to: Annotated[str, Field()] = "shop", note: str = None) -> str:
    "Pays."
    ran.append((amount, currency, to, note))
    return "paid"
JUDGED_SEND = {"amount": 5, "currency": "EUR", "to": "shop"}
`;
const seen = "(True, [(5, 'EUR', 'shop', None)])";
const unseen = (file: string, within: string): readonly [string, Mutation] => [
  file,
  { within, find: "with_defaults", put: "(lambda function, given, hidden: given)" },
];

testWithFaults(
  "the plugin of Google's ADK judges the defaults of a function, and its models",
  "libraries/python",
  `${defaults}
from google.adk.tools import FunctionTool
from svc_gate_google_adk import GatePlugin
class Context:
    tool_confirmation = None
async def called(function, args):
    ran.clear()
    gate, tool = Recording(), FunctionTool(function)
    await GatePlugin(gate).before_tool_callback(tool=tool, tool_args=args, tool_context=Context())
    await tool.run_async(args=args, tool_context=Context())
    return gate.asked == [JUDGED_SEND if function is send else eval(JUDGED)[0]], ran
`,
  [
    ['called(send, {"amount": 5})', seen],
    ['called(give, {"payment": {"payee": "shop", "amount": "900"}})', "(True, [('shop', 900)])"],
  ],
  [
    unseen("svc_gate_google_adk.py", "_input_of"),
    ["svc_gate_google_adk.py", { within: "_input_of", find: "plain(tool._preprocess_args(given))", put: "given" }],
  ],
);

testWithFaults(
  "the middleware of Microsoft's framework judges the defaults of a function",
  "libraries/python-openai-2",
  `${defaults}
from agent_framework import FunctionInvocationContext, tool
from svc_gate_agent_framework import gate_middleware
async def called():
    ran.clear()
    gate, made = Recording(), tool(send)
    context = FunctionInvocationContext(made, {"amount": 5}, metadata={"call_id": "1"})
    async def run():
        await made.invoke(arguments=context.arguments)
    await gate_middleware(gate)[0].process(context, run)
    return gate.asked == [JUDGED_SEND], ran
`,
  [["called()", seen]],
  [unseen("svc_gate_agent_framework.py", "_input_of")],
);

testWithFaults(
  "the adapter of LlamaIndex judges the defaults of a function",
  "libraries/python-openai-2",
  `${defaults}
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.workflow import Context
from svc_gate_llama_index import guarded
def sent(amount: int, currency: str = Field(default="EUR"), to: str = "shop", note: str = None) -> str:
    "Pays."
    return send(amount, currency, to, note)
async def called():
    ran.clear()
    gate = Recording()
    agent = guarded(FunctionAgent(name="kit", tools=[sent], llm=MockFunctionCallingLLM()), gate)
    await (await agent.get_tools())[0].acall(svc_gate_context=Context(agent), amount=5)
    return gate.asked == [JUDGED_SEND], ran
`,
  [["called()", seen]],
  [unseen("svc_gate_llama_index.py", "_guarded")],
);

testWithFaults(
  "the adapter of smolagents judges the defaults of a function",
  "libraries/crewai",
  `${defaults}
from smolagents import Model, Tool, ToolCallingAgent
from svc_gate_smolagents import guarded
class Now(Gate):
    def check(self, name, input, facts, approval):
        self.asked.append(input)
        return Some(verdict="ALLOW", escalated=False, unreached=False, approval=None, receipt=None, reason="fine", mode="enforce")
class Sent(Tool):
    name, description, output_type, skip_forward_signature_validation = "sent", "Pays.", "string", True
    inputs = {"amount": {"type": "integer", "description": "how much"}}
    def forward(self, amount: int, currency: str = "EUR", to: str = "shop", note: str = None) -> str:
        return send(amount, currency, to, note)
async def called():
    ran.clear()
    gate = Now()
    agent = guarded(ToolCallingAgent(tools=[Sent()], model=Model()), gate)
    agent.tools["sent"](amount=5)
    return gate.asked == [JUDGED_SEND], ran
`,
  [["called()", seen]],
  [unseen("svc_gate_smolagents.py", "_guarded")],
);
