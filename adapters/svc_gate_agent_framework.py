"""svc-gate for Microsoft Agent Framework: the gate decides each tool call of an agent.

    gate = AsyncGate("https://gate.example", api_key=key, session_id=run_id)
    agent = Agent(client, tools=[pay], middleware=gate_middleware(gate, facts))

If a middleware changes the arguments after the gate's check, the framework ends the run and the tool does not run. An agent
that is a tool of another one needs the middleware too. The rules for all adapters: adapters/README.md.
"""

from __future__ import annotations

import logging
from typing import Any, Awaitable, Callable, Literal, Optional, Union

from agent_framework import ChatContext, ChatMiddleware, Content, FunctionInvocationContext, FunctionMiddleware, FunctionTool

# The framework's own policy middleware uses these names. If a version lacks them, this module cannot be imported.
from agent_framework._tools import _SECURITY_ARGUMENTS_SNAPSHOT_CONTEXT_KEY, _argument_authority_token
from pydantic_core import to_jsonable_python
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, name_problem, with_defaults

__all__ = ["GuardedCall", "gate_middleware"]

_log = logging.getLogger("svc_gate")
_NO_SERVER = "Svc: the MCP tool needs a tool_name_prefix, the name of its server; the action is blocked."
_Next = Callable[[], Awaitable[None]]


def gate_middleware(
    gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
    on_escalate: Literal["refuse", "wait", "park"] = "refuse", wait: float = 900.0, log: Callable[[str], Any] = _log.error,
) -> list[Union[FunctionMiddleware, ChatMiddleware]]:
    """Returns middleware that lets a tool run only if the gate allows the call. The model reads why a call was refused.

    ``gate`` is an AsyncGate of svc_gate_async, one for each run, or a function that returns it for a call. ``context`` of a call
    is the FunctionInvocationContext. ``facts`` returns the platform's facts about a call, or is an async function; if it raises,
    the call is refused. If a person must decide, ``on_escalate`` refuses the call, waits up to ``wait`` seconds, or parks it.
    Parking ends the run with the framework's request for an approval. After any approved answer the gate is asked again, and only
    the person's decision at the gate counts. ``log`` takes sentences for operators, which the model must not read.

    An agent needs both parts of the list. A run raises ValueError before its first request if it has tools that the provider or
    another program runs.
    """
    guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait", "park"))
    return [_Calls(guard), _Requests()]


class _Calls(FunctionMiddleware):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def process(self, context: FunctionInvocationContext, call_next: _Next) -> None:
        name = _name_of(context.function)
        if name is None:
            context.result = _NO_SERVER
            return
        call = GuardedCall(name, _input_of(context), context)
        # The framework compares this with the arguments that the tool is about to get.
        context.metadata[_SECURITY_ARGUMENTS_SNAPSHOT_CONTEXT_KEY] = _argument_authority_token(context.arguments, boundary="svc-gate")
        judgement = await self._guard.judge(call)
        if judgement.runs:
            await self._guard.run_judged(judgement, call_next, _no_refusal)
        else:
            context.result = _request(context, judgement) if judgement.parks else judgement.reason


class _Requests(ChatMiddleware):
    async def process(self, context: ChatContext, call_next: _Next) -> None:
        problems = [problem for tool in context.options.get("tools") or [] for problem in _problems_of(tool)]
        if problems:
            raise ValueError("svc-gate cannot guard this agent: " + "; ".join(problems))
        await call_next()


def _input_of(context: FunctionInvocationContext) -> dict[str, Any]:
    """The framework also sends a server each of the run's ``function_invocation_kwargs`` that has the name of a tool's
    argument."""
    tool, arguments = context.function, to_jsonable_python(context.arguments)
    if "_mcp_remote_name" not in (tool.additional_properties or {}):
        return with_defaults(tool.func, arguments, ("self", tool._context_parameter_name))
    names = set(tool.parameters().get("properties", {})) - set(arguments) - {"session"}  # it keeps the session
    return {**arguments, **{name: to_jsonable_python(value) for name, value in context.kwargs.items() if name in names}}


def _request(context: FunctionInvocationContext, judgement: Judgement) -> Content:
    """The framework's request for an approval of exactly this call."""
    call_id, occurrence = context.metadata["call_id"], context.metadata.get("function_call_occurrence_id")
    call = Content.from_function_call(
        call_id=call_id, id=occurrence, name=context.function.name, arguments=to_jsonable_python(context.arguments),
    )
    properties = {"reason": judgement.reason, "approval": judgement.approval}
    return Content.from_function_approval_request(id=occurrence or call_id, function_call=call, additional_properties=properties)


def _no_refusal(judgement: Judgement) -> None:
    raise AssertionError("a call that runs is not refused")


def _name_of(tool: FunctionTool) -> Optional[str]:
    """An own tool keeps its name, a tool of an MCP server is ``server.tool``. The server is the prefix of its MCP tool."""
    properties = tool.additional_properties or {}
    if "_mcp_remote_name" not in properties:
        return gate_name(tool.name)
    remote = properties["_mcp_remote_name"]
    server = tool.name.removesuffix("_" + properties.get("_mcp_normalized_name", remote))
    return gate_name(remote, server) if server != tool.name else None


def _problems_of(tool: Any) -> list[str]:
    if not isinstance(tool, FunctionTool):
        kind = tool.get("type") if isinstance(tool, dict) else type(tool).__name__
        return ["the provider runs %s" % kind]
    if tool.declaration_only:
        return ["another program runs %s" % tool.name]
    is_own = "_mcp_remote_name" not in (tool.additional_properties or {})
    return [name_problem(tool.name)] if is_own and gate_name(tool.name) is None else []
