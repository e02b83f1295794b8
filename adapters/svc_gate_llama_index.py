"""svc-gate for LlamaIndex: the gate decides each tool call of an agent, or of the agents of an AgentWorkflow.

    gate = AsyncGate("https://gate.example", api_key=key, session_id=run_id)
    agent = guarded(FunctionAgent(tools=[pay], llm=llm), gate, facts)

The gate is asked where the tool runs. An agent that runs inside a tool is other code to the framework: guard it too.
The rules for all adapters: adapters/README.md.
"""

# The framework compares the annotation of a parameter with its Context, so annotations must not be texts here.
import hashlib
import json
import logging
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, TypeVar

from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.tools import BaseTool, FunctionTool, ToolOutput
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from pydantic_core import to_jsonable_python
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, name_problem, with_defaults

__all__ = ["GuardedCall", "guarded"]

_log = logging.getLogger("svc_gate")
_NO_SERVER = "the MCP tool %s needs its server's name in servers"
_PROVIDED = ("built_in_tool", "built_in_tools", "extra_body", "mcp_servers", "tools", "web_search_options")
_Agent = TypeVar("_Agent", BaseWorkflowAgent, AgentWorkflow)
_Names = Mapping[int, tuple[Any, Optional[str]]]


def guarded(
    agent: _Agent, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
    servers: Optional[Mapping[str, Iterable[BaseTool]]] = None, on_escalate: Literal["refuse", "wait", "park"] = "refuse",
    wait: float = 900.0, log: Callable[[str], Any] = _log.error,
) -> _Agent:
    """Returns the changed agent or workflow: a tool runs only if the gate allows the call. The model reads why a call was
    refused.

    ``gate`` is an AsyncGate of svc_gate_async, one for each run, or a function that returns it for a call. ``context`` of a call
    is the workflow's Context. ``facts`` returns the platform's facts about a call, or is an async function; if it raises, the
    call is refused. ``servers`` has the tools of each MCP server by the server's name. If a person must decide, ``on_escalate``
    refuses the call, waits up to ``wait`` seconds, or parks it. To park, the run sends InputRequiredEvent with ``approval`` and
    waits for a HumanResponseEvent with the same ``approval``. After that the gate is asked again, and only the person's decision
    at the gate counts. ``log`` takes sentences for operators, which the model must not read.

    Raises ValueError if an agent has tools that the gate cannot see.
    """
    guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait", "park"))
    names = _names_of(servers)
    members = list(agent.agents.values()) if isinstance(agent, AgentWorkflow) else [agent]
    problems = [problem for member in members for problem in _problems_of(member, names)]
    if problems:
        raise ValueError("svc-gate cannot guard this agent: " + "; ".join(problems))
    for each in [agent, *members] if isinstance(agent, AgentWorkflow) else members:
        object.__setattr__(each, "get_tools", _guarding(each.get_tools, guard, names))
    return agent


def _names_of(servers: Optional[Mapping[str, Iterable[BaseTool]]]) -> _Names:
    """Names at the gate by the id of the tool. It also keeps the tool, because Python reuses the id of a collected object."""
    return {id(tool): (tool, gate_name(tool.metadata.name, server)) for server, tools in (servers or {}).items() for tool in tools}


def _guarding(get_tools: Callable[..., Any], guard: Guard, names: _Names) -> Callable[..., Any]:
    """All tools of an agent come from this function: handoffs, and those that a retriever finds for the run."""

    async def get_guarded_tools(*args: Any, **kwargs: Any) -> list[BaseTool]:
        return [_guarded(tool, guard, names) for tool in await get_tools(*args, **kwargs)]

    return get_guarded_tools


def _guarded(tool: Any, guard: Guard, names: _Names) -> FunctionTool:
    """Returns a tool that asks the gate and then runs ``tool``."""
    problems = _name_problems_of(tool, names)
    if problems:
        raise ValueError("svc-gate cannot guard this agent: " + "; ".join(problems))
    name = names[id(tool)][1] if id(tool) in names else gate_name(tool.metadata.name)
    context_name = getattr(tool, "ctx_param_name", None)

    async def ask(svc_gate_context: Context, **arguments: Any) -> ToolOutput:
        given = {**getattr(tool, "partial_params", {}), **arguments}
        given.pop(context_name, None)
        more = {context_name: svc_gate_context} if context_name else {}
        judged = with_defaults(getattr(tool, "real_fn", None), to_jsonable_python(given), (context_name,))
        call = GuardedCall(name, judged, svc_gate_context)
        is_answered = await _has_answer(call)
        judgement = await guard.judge(call)
        if judgement.parks and not is_answered:
            await _park(call, judgement)
        return await guard.run_judged(judgement, lambda: tool.acall(**given, **more), lambda why: _refusal(call, why))

    return FunctionTool(async_fn=ask, async_callback=_whole, metadata=tool.metadata)


async def _park(call: GuardedCall, judgement: Judgement) -> None:
    """Stops the step here. After the answer the framework starts the whole step again."""
    await call.context.store.set(_key_of(call), [judgement.approval, judgement.reason])
    await _answer(call, judgement.approval, judgement.reason)


async def _has_answer(call: GuardedCall) -> bool:
    """Whether the call was parked. A step that waits must not end without the answer, because the answer starts the step
    again."""
    parked = await call.context.store.get(_key_of(call), default=None)
    if parked is None:
        return False
    await _answer(call, *parked)
    await call.context.store.set(_key_of(call), None)
    return True


async def _answer(call: GuardedCall, approval: Optional[str], reason: str) -> None:
    request = InputRequiredEvent(prefix=reason, approval=approval)
    await call.context.wait_for_event(HumanResponseEvent, request, requirements={"approval": approval}, timeout=None)


def _key_of(call: GuardedCall) -> str:
    text = json.dumps([call.name, call.input], sort_keys=True)
    return "svc_gate_%s" % hashlib.sha256(text.encode()).hexdigest()


async def _whole(output: ToolOutput) -> ToolOutput:
    return output


def _refusal(call: GuardedCall, judgement: Judgement) -> ToolOutput:
    return ToolOutput(
        content=judgement.reason, tool_name=call.name, raw_input=call.input, raw_output=judgement.reason, is_error=True,
    )


def _problems_of(agent: Any, names: _Names) -> list[str]:
    if "get_tools" in vars(agent):
        return ["%s is guarded already" % agent.name]
    if isinstance(agent, CodeActAgent):
        return ["%s writes code that calls tools" % agent.name]
    problems = [problem for tool in agent.tools or [] for problem in _name_problems_of(tool, names)]
    settings = {**vars(agent.llm), **(getattr(agent.llm, "additional_kwargs", None) or {})}
    return problems + ["the provider may run tools by the model's setting %s" % key for key in _PROVIDED if settings.get(key)]


def _name_problems_of(tool: Any, names: _Names) -> list[str]:
    shown = getattr(getattr(tool, "metadata", None), "name", getattr(tool, "__name__", None))
    if id(tool) in names:
        return [] if names[id(tool)][1] is not None else ["the server of %s has no name" % shown]
    if _is_mcp(tool):
        return [_NO_SERVER % shown]
    return [name_problem(shown)] if gate_name(shown) is None else []


def _is_mcp(tool: Any) -> bool:
    return getattr(getattr(tool, "real_fn", None), "__module__", None) == "llama_index.tools.mcp.base"
