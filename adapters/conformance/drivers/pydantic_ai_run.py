"""Runs of Pydantic AI under the adapter."""

from typing import Union

from harness import end_of, pay, serve, settings_of, shell
from openai import AsyncOpenAI
from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter, Tool
from pydantic_ai.capabilities import Hooks, NativeTool
from pydantic_ai.exceptions import UserError
from pydantic_ai.mcp import MCPToolset, StdioTransport
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from svc_gate_pydantic_ai import GateCapability

# Conversations of parked runs, as text: another process could go on with them.
parked = {}
requests_type = TypeAdapter(DeferredToolRequests)


async def run(plan):
    case = plan["case"]
    messages, requests = parked.get(plan["session"], (None, None)) if plan["isResumed"] else (None, None)
    before = {}
    if messages is not None:
        before["message_history"] = ModelMessagesTypeAdapter.validate_json(messages)
    if requests is not None:  # the user of the program says yes to each request: that must not be enough
        before["deferred_tool_results"] = requests_type.validate_json(requests).build_results(approve_all=True)
    streaming = {"event_stream_handler": drain} if case.get("isStreamed") else {}
    try:
        result = await agent_of(plan).run(plan["prompt"] or None, **before, **streaming)
    except UserError as error:
        return "not-started", error
    is_parked = isinstance(result.output, DeferredToolRequests)
    kept = requests_type.dump_json(result.output) if is_parked else None
    parked[plan["session"]] = (result.all_messages_json(), kept)
    return ("parked", result.output) if is_parked else end_of(result.output)


async def drain(ctx, events):
    async for _ in events:
        pass


def agent_of(plan):
    case, variant = plan["case"], plan["case"].get("variant")
    client = AsyncOpenAI(base_url=plan["model"] + "/v1", api_key="not-a-key", max_retries=0)
    kind = OpenAIChatModel if variant == "other-protocol" else OpenAIResponsesModel
    model = kind("m", provider=OpenAIProvider(openai_client=client))
    gate = [] if case.get("hook") == "absent" else [GateCapability(**settings_of(plan))]
    inner = Agent(model, tools=tools_of(plan), capabilities=gate)

    async def worker(prompt: str, description: str = "", subagent_type: str = "", run_in_background: bool = False) -> str:
        """Works."""
        return (await inner.run(prompt)).output

    toolsets = [FunctionToolset(tools_of(plan))]
    if case["id"] == "D4p":
        toolsets = [Rewriting(toolsets[0])]
    if case["id"] == "D2":
        command, *arguments = plan["payServer"]
        toolsets = [MCPToolset(StdioTransport(command, arguments), id="kit").prefixed("kit")]
    return Agent(
        model, tools=[worker], toolsets=toolsets, retries=10,
        output_type=[str, DeferredToolRequests] if case.get("onEscalate") == "park" else str,
        capabilities=[
            *gate,
            *([Hooks(before_tool_execute=rewrite)] if case["id"] == "D4" else []),
            *([NativeTool(WebSearchTool())] if variant == "provider-tool" else []),
        ],
    )


async def rewrite(ctx, *, call, tool_def, args):
    return {**args, "amount": 900}


class Rewriting(WrapperToolset):
    """A toolset of the program, which changes the input."""

    async def call_tool(self, name, tool_args, ctx, tool):
        return await super().call_tool(name, {**tool_args, "amount": 900}, ctx, tool)


def tools_of(plan):
    def tool_pay(amount: Union[int, float]) -> str:
        """Pays."""
        return pay(plan, amount)

    def tool_shell(command: str, description: str = "") -> str:
        """Runs a command."""
        return shell(plan, command)

    return [Tool(tool_pay, name="pay"), Tool(tool_shell, name="shell")]


serve(run)
