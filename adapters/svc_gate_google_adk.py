"""svc-gate for Google's Agent Development Kit (ADK): the gate decides each tool call of an app.

    gate = AsyncGate("https://gate.example", api_key=key, session_id=run_id)
    runner = Runner(app=App(name="payer", root_agent=agent, plugins=[GatePlugin(gate, facts)]), session_service=sessions)

A plugin of the runner sees the calls of all its agents, also of sub-agents and of agents in an AgentTool. It must be the last
plugin that looks at calls, and agents must have no ``before_tool_callback``: these run later and could change the input. The
rules for all adapters: adapters/README.md.
"""

from __future__ import annotations

import copy
import logging
import weakref
from typing import Any, Callable, Iterator, Literal, Optional

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, name_problem, plain, with_defaults

__all__ = ["GatePlugin", "GuardedCall"]

_log = logging.getLogger("svc_gate")
_NO_SERVER = "Svc: the MCP toolset needs a tool_name_prefix, the name of its server; the action is blocked."
_NOT_CONFIRMED = "Svc: the user of the app did not confirm the call; the action is blocked."


class GatePlugin(BasePlugin):
    """Lets a tool run only if the gate allows the call. The model reads the reason of a refused call.

    ``gate`` is an AsyncGate of svc_gate_async, one for each run, or a function that returns it for a call. ``context`` of a call
    is the ToolContext. ``facts`` returns the platform's facts about a call, or is an async function; if it raises, the call is
    refused. If a person must decide, ``on_escalate`` refuses the call, waits up to ``wait`` seconds, or parks it. Parking ends
    the run with ADK's request for a confirmation. After any answer ``confirmed`` the gate is asked again, and only the person's
    decision at the gate counts. ``log`` takes sentences for operators, which the model must not read.

    A run raises RuntimeError, which names each agent or tool that the plugin cannot guard.
    """

    def __init__(
        self, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
        on_escalate: Literal["refuse", "wait", "park"] = "refuse", wait: float = 900.0, log: Callable[[str], Any] = _log.error,
    ) -> None:
        super().__init__(name="svc_gate")
        self._guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait", "park"))
        self._running: weakref.WeakKeyDictionary[Any, Judgement] = weakref.WeakKeyDictionary()

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        later = _after(self, invocation_context.plugin_manager.plugins)
        problems = ["the plugin %s comes later and may change the input: put it before svc_gate" % each.name for each in later]
        if invocation_context.live_request_queue is not None:
            problems.append("run_live")
        _raise(problems + [problem for agent in _agents_in(invocation_context.agent) for problem in _problems_of(agent)])

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        _raise(_problems_of(agent))

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        _raise(["the provider runs %s" % name for tool in llm_request.config.tools or [] for name in _provided_by(tool)])

    async def before_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any) -> Optional[dict[str, Any]]:
        _raise(_problems_of_tool(tool))  # a toolset shows its tools only in a run
        name = _name_of(tool)
        if name is None:
            return {"error": _NO_SERVER}
        if tool_context.tool_confirmation is not None and not tool_context.tool_confirmation.confirmed:
            return {"error": _NOT_CONFIRMED}
        judgement = await self._guard.judge(GuardedCall(name, _input_of(tool, copy.deepcopy(tool_args)), tool_context))
        if judgement.runs:
            self._running[tool_context] = judgement
            return None
        if judgement.parks and tool_context.tool_confirmation is None:  # ADK does not ask twice about one call
            tool_context.request_confirmation(hint=judgement.reason, payload={"approval": judgement.approval})
            tool_context.actions.skip_summarization = True  # else the flow asks the model to go on
        return {"error": judgement.reason}

    async def after_tool_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any) -> None:
        is_asking = tool_context.function_call_id in tool_context.actions.requested_tool_confirmations
        self._report(tool_context, "unknown" if is_asking else "done")

    async def on_tool_error_callback(self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: Any) -> None:
        self._report(tool_context, "unknown")

    def _report(self, tool_context: Any, status: str) -> None:
        judgement = self._running.pop(tool_context, None)
        if judgement is not None:
            self._guard.report(judgement, status)


def _name_of(tool: BaseTool) -> Optional[str]:
    """An own tool keeps its name, a tool of an MCP server is ``server.tool``. The server is the prefix of its McpToolset."""
    raw = getattr(tool, "raw_mcp_tool", None)
    if raw is None:
        return gate_name(tool.name)
    server = tool.name.removesuffix("_" + raw.name)
    return gate_name(raw.name, server) if server != tool.name else None


def _input_of(tool: BaseTool, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the function gets them: ADK converts them to Pydantic models."""
    if not isinstance(tool, FunctionTool):
        return given
    return with_defaults(tool.func, plain(tool._preprocess_args(given)), tool._ignore_params)


def _problems_of(agent: Any) -> list[str]:
    found = [
        (getattr(agent, "canonical_before_tool_callbacks", []), "the before_tool_callback of %s may change the input: make it a plugin"),
        (getattr(agent, "code_executor", None), "the code_executor of %s runs code that is not a tool call"),
    ]
    own = [sentence % agent.name for is_wrong, sentence in found if is_wrong]
    return own + [problem for tool in getattr(agent, "tools", []) for problem in _problems_of_tool(tool)]


def _problems_of_tool(tool: Any) -> list[str]:
    if isinstance(tool, BaseTool) and getattr(tool, "raw_mcp_tool", None) is None and gate_name(tool.name) is None:
        return [name_problem(tool.name)]
    is_blind = isinstance(tool, AgentTool) and not tool.include_plugins
    return ["the agent in the tool %s runs without plugins" % tool.name] if is_blind else []


def _agents_in(agent: Any) -> Iterator[Any]:
    yield agent
    inner = [tool.agent for tool in getattr(agent, "tools", []) if isinstance(tool, AgentTool)]
    for each in [*getattr(agent, "sub_agents", []), *inner]:
        yield from _agents_in(each)


def _after(plugin: BasePlugin, plugins: list[BasePlugin]) -> list[BasePlugin]:
    later = plugins[plugins.index(plugin) + 1 :]
    return [each for each in later if type(each).before_tool_callback is not BasePlugin.before_tool_callback]


def _provided_by(tool: Any) -> list[str]:
    """What the provider runs from an entry of the model's request: everything except the declarations of functions."""
    if not hasattr(tool, "model_dump"):
        return [getattr(tool, "__name__", type(tool).__name__)]
    return [name for name in tool.model_dump(exclude_none=True) if name != "function_declarations"]


def _raise(problems: list[str]) -> None:
    if problems:
        raise ValueError("svc-gate cannot guard this app: " + "; ".join(problems))
