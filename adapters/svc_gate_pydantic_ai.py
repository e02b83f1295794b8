"""svc-gate for Pydantic AI: the gate decides each tool call of an agent.

    gate = AsyncGate("https://gate.example", api_key=key, session_id=run_id)
    agent = Agent(model, tools=[pay], capabilities=[GateCapability(gate, facts)])

The gate is asked where the tool runs, after all hooks, so nothing can change the input after the check. An agent that runs
inside a tool is other code to the framework: give it the capability too. The rules for all adapters: adapters/README.md.
"""

from __future__ import annotations

import contextvars
import dataclasses
import logging
from typing import Any, Callable, Literal, NoReturn, Optional

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed, UserError
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, name_problem, plain

__all__ = ["GateCapability", "GuardedCall"]

_log = logging.getLogger("svc_gate")
_called: contextvars.ContextVar[str] = contextvars.ContextVar("svc_gate_called")  # the name that the model called


class GateCapability(AbstractCapability[Any]):
    """Lets a tool of the agent run only if the gate allows the call. The model reads the reason of a refused call.

    ``gate`` is an AsyncGate of svc_gate_async, one for each run, or a function that returns it for a call. ``context`` of a call
    is the RunContext. ``facts`` returns the platform's facts about a call, or is an async function; if it raises, the call is
    refused. If a person must decide, ``on_escalate`` refuses the call, waits up to ``wait`` seconds, or parks it. Parking ends
    the run with DeferredToolRequests, which the agent's output_type must have. After the results of these requests the gate is
    asked again, and only the person's decision at the gate counts. ``log`` takes sentences for operators, which the model must
    not read.

    A run raises UserError before its first request if it has tools that the provider or another program runs. It raises UserError
    too before it would run a function of ``output_type``: the model calls it, but it is not a tool.
    """

    def __init__(
        self, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
        on_escalate: Literal["refuse", "wait", "park"] = "refuse", wait: float = 900.0, log: Callable[[str], Any] = _log.error,
    ) -> None:
        self._guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait", "park"))

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _Named(toolset.visit_and_replace(lambda leaf: _Guarded(leaf, self._guard)))

    async def prepare_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        problems = _blind_spots_in(request_context.model_request_parameters, request_context.model_settings or {})
        if problems:
            raise UserError("svc-gate cannot guard this agent: " + "; ".join(problems))
        return request_context

    async def before_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any) -> Any:
        if output_context.has_function:
            name = output_context.function_name or "of the output"
            raise UserError("svc-gate cannot guard this agent: the function %s runs without a tool: make it a tool" % name)
        return output


@dataclasses.dataclass
class _Named(WrapperToolset[Any]):
    """Keeps the name that the model called, because toolsets with a prefix or new names replace it."""

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        token = _called.set(name)
        try:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        finally:
            _called.reset(token)


@dataclasses.dataclass
class _Guarded(WrapperToolset[Any]):
    """A toolset that calls its tools itself."""

    guard: Guard

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]) -> Any:
        known = _name_of(name, self.wrapped, tool)
        if known is None:
            is_own = not _is_mcp(self.wrapped) and gate_name(_called.get()) is None
            why = name_problem(_called.get()) if is_own else "the framework does not say which MCP server has the tool"
            raise ToolFailed("Svc: %s; the action is blocked." % why)
        call = GuardedCall(known, plain(tool_args), ctx)
        return await self.guard.run(call, lambda: self.wrapped.call_tool(name, tool_args, ctx, tool), _refuse)


def _refuse(judgement: Judgement) -> NoReturn:
    if judgement.parks:
        raise ApprovalRequired({"reason": judgement.reason, "approval": judgement.approval})
    raise ToolFailed(judgement.reason)


def _name_of(name: str, toolset: AbstractToolset[Any], tool: ToolsetTool[Any]) -> Optional[str]:
    """An own tool keeps the name that the model calls, a tool of an MCP server is ``server.tool``. None if it is not known."""
    if not _is_mcp(toolset) and _is_mcp(tool.toolset):
        toolset = tool.toolset  # a toolset that a function made for this run
    if _is_mcp(toolset):
        return gate_name(name, toolset.id) if toolset.id else None
    inner = tool.toolset
    while isinstance(inner, WrapperToolset):
        inner = inner.wrapped
    is_renamed = inner is not toolset and _is_mcp(inner)
    return None if is_renamed else gate_name(_called.get())


def _is_mcp(toolset: AbstractToolset[Any]) -> bool:
    """By name, because the class cannot be imported without the packages for MCP."""
    return any(each.__name__ == "MCPToolset" for each in type(toolset).__mro__)


def _blind_spots_in(parameters: Any, settings: Any) -> list[str]:
    provided = ["the provider runs %s" % tool.kind for tool in parameters.native_tools]
    external = ["another program runs %s" % tool.name for tool in parameters.function_tools if tool.kind == "external"]
    more = [name for name, value in settings.items() if name.endswith("_native_tools") and value]
    if "tools" in (settings.get("extra_body") or {}):
        more.append("extra_body")
    return provided + external + ["the provider runs the tools in the setting %s" % name for name in more]
