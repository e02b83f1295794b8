"""svc-gate for the OpenAI Agents SDK: the gate decides each call of an agent and of its sub-agents.

    async with AsyncGate("https://gate.example", api_key=key, session_id=run_id) as gate:
        agent = guarded(Agent(name="desk", tools=[pay], handoffs=[clerk]), gate, facts)
        result = await Runner.run(agent, prompt)

The gate is asked where the tool runs, after the SDK's guardrails and approvals. A guardrail would be wrong: the SDK
runs the tool if a guardrail answers with a word that it does not know. The rules for all adapters: adapters/README.md.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import json
import logging
import weakref
from typing import Any, Callable, Literal, NoReturn, Optional

from agents import Agent, FunctionTool, Handoff, handoff
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, name_problem

__all__ = ["GuardedCall", "SvcGateRefusal", "guarded"]

_KEPT_MAX = 1000  # judgements of calls that have not started: more than an agent runs at once
_log = logging.getLogger("svc_gate")


def guarded(
    agent: Agent[Any], gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
    on_escalate: Literal["refuse", "wait", "park"] = "refuse", wait: float = 900.0, log: Callable[[str], Any] = _log.error,
) -> Agent[Any]:
    """Returns a copy of the agent whose function tools, tools of MCP servers and handoffs run only if the gate allows them.

    The agents that it hands over to are copied too. The result of a refused tool is the reason. A refused handoff ends the run
    with SvcGateRefusal, because the SDK has no result for it. An agent as a tool must be made by ``as_tool`` of a guarded agent.

    ``gate`` is an AsyncGate of svc_gate_async, one for each run, or a function that returns it for a call. ``context`` of a call
    is the SDK's ToolContext, or its RunContextWrapper before the call starts. ``facts`` returns the platform's facts about a
    call, or is an async function; if it raises, the call is refused. If a person must decide, ``on_escalate`` refuses the call,
    waits up to ``wait`` seconds, or parks it: the run is interrupted. Approve the interruption after the decision and run the
    state again: the gate is asked again, and only the person's decision at the gate counts. ``log`` takes sentences for
    operators, which the model must not read.

    Raises ValueError, which names each tool and agent that the adapter cannot guard.
    """
    guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait", "park"))
    if isinstance(agent, _GuardedAgent):
        raise ValueError("svc-gate guards the agent %s already" % agent.name)
    problems = _problems_of(agent, [])
    if problems:
        raise ValueError("svc-gate cannot guard this agent: " + "; ".join(problems))
    return _guarded_agent(agent, _Place(guard, on_escalate == "park", {}))


class SvcGateRefusal(Exception):
    """The refusal of a handoff. ``approval`` is the id of the approval that a person gives or denies, or None."""

    def __init__(self, judgement: Judgement) -> None:
        super().__init__(judgement.reason)
        self.approval = judgement.approval


@dataclasses.dataclass
class _Place:
    guard: Guard
    parks: bool
    copies: dict[int, _GuardedAgent]  # two agents may hand over to each other


class _GuardedAgent(Agent):
    """A copy by ``clone`` has no ``_Place``: it cannot list the tools of its servers, so they do not run."""

    async def get_mcp_tools(self, run_context: Any) -> list[Any]:
        return [_guarded_mcp_tool(tool, self) for tool in await super().get_mcp_tools(run_context)]


def _problems_of(agent: Any, seen: list[Any]) -> list[str]:
    """Names everything that the adapter cannot guard, in the agent and in those that it hands over to."""
    if isinstance(agent, _GuardedAgent) or any(agent is each for each in seen):
        return []
    seen.append(agent)
    if agent is None:
        return ["a handoff does not show its agent: make it with handoff()"]
    if type(agent) is not Agent:
        return ["%s is of type %s, which may have tools of its own" % (getattr(agent, "name", "?"), type(agent).__name__)]
    problems = [problem for tool in agent.tools for problem in _problems_of_tool(tool)]
    if any(not server.name for server in agent.mcp_servers):
        problems.append("a server has no name")
    settings = agent.model_settings
    if agent.prompt is not None or any("tools" in (more or {}) for more in (settings.extra_body, settings.extra_args)):
        problems.append("its prompt or its model's settings may have tools of the provider")
    inner = [problem for entry in agent.handoffs for problem in _problems_of(_target_of(entry), seen)]
    return ["in %s, %s" % (agent.name, problem) for problem in problems] + inner


def _problems_of_tool(tool: Any) -> list[str]:
    if not isinstance(tool, FunctionTool):
        kind = type(tool).__name__
        return ["%s is a tool of type %s, which does not run as a function of this program" % (tool.name, kind)]
    if tool._tool_namespace is not None:
        return ["%s is in a namespace" % tool.name]
    if gate_name(tool.name) is None:
        return [name_problem(tool.name)]
    if tool._is_agent_tool and not isinstance(tool._agent_instance, _GuardedAgent):
        return ["%s runs an agent that is not guarded: call as_tool on a guarded agent" % tool.name]
    return []


def _target_of(entry: Any) -> Any:
    if not isinstance(entry, Handoff):
        return entry
    return entry._agent_ref() if entry._agent_ref is not None else None


def _guarded_agent(agent: Agent[Any], place: _Place) -> _GuardedAgent:
    if isinstance(agent, _GuardedAgent):
        return agent
    if id(agent) in place.copies:
        return place.copies[id(agent)]
    members = {each.name: getattr(agent, each.name) for each in dataclasses.fields(agent) if each.init}
    made = place.copies[id(agent)] = _GuardedAgent(**{**members, "handoffs": []})
    made._svc_gate = place
    made.tools = [_guarded_tool(tool, gate_name(tool.name), place) for tool in agent.tools]
    made.handoffs = [_guarded_handoff(entry, place) for entry in agent.handoffs]
    return made


def _guarded_mcp_tool(tool: FunctionTool, agent: _GuardedAgent) -> FunctionTool:
    _, name, index = tool._mcp_tool_binding
    return _guarded_tool(tool, gate_name(name, agent.mcp_servers[index].name), agent._svc_gate)


def _guarded_tool(tool: FunctionTool, name: Optional[str], place: _Place) -> FunctionTool:
    made = copy.copy(tool)
    judged = _Judged(made.on_invoke_tool, made.needs_approval, name, place.guard)

    # The SDK reads the first argument's type there, and may give the tool less of the run's context.
    @functools.wraps(made.on_invoke_tool)
    async def on_invoke_tool(context: Any, text: str) -> Any:
        return await _invoke(judged, context, text)

    made.on_invoke_tool = on_invoke_tool
    if place.parks:
        made.needs_approval = functools.partial(_asks_person, judged)
    return made


@dataclasses.dataclass
class _Judged:
    invoke: Any
    needs_approval: Any
    name: Optional[str]
    guard: Guard
    # Judgements that ``needs_approval`` made, until the tool runs: by the model's id of the call.
    kept: dict[str, tuple[Any, str, Judgement]] = dataclasses.field(default_factory=dict)


async def _invoke(judged: _Judged, context: Any, text: str) -> Any:
    given = _parsed(text)
    judgement = _taken(judged, context, given)
    if judgement is None:
        judgement = await judged.guard.judge(GuardedCall(judged.name, given, context))
    # The tool gets the judged value as text, because the given text may repeat a member.
    return await judged.guard.run_judged(
        judgement, lambda: judged.invoke(context, json.dumps(given)), lambda refused: refused.reason,
    )


async def _asks_person(judged: _Judged, context: Any, given: dict[str, Any], call_id: str) -> bool:
    own = judged.needs_approval
    answer = own(context, given, call_id) if callable(own) else own
    if await answer if inspect.isawaitable(answer) else answer:
        return True  # after the answer the gate is asked
    judgement = await judged.guard.judge(GuardedCall(judged.name, given, context))
    if not judgement.parks:
        if len(judged.kept) >= _KEPT_MAX:
            judged.kept.pop(next(iter(judged.kept)))
        judged.kept[call_id] = (context.usage, json.dumps(given), judgement)
    return judgement.parks


def _taken(judged: _Judged, context: Any, given: Any) -> Optional[Judgement]:
    """A kept judgement is good for one run of exactly the same call. Only ``usage`` is the same object for the whole run."""
    usage, text, judgement = judged.kept.pop(getattr(context, "tool_call_id", ""), (None, "", None))
    return judgement if usage is context.usage and text == json.dumps(given) else None


def _guarded_handoff(entry: Any, place: _Place) -> Handoff[Any, Any]:
    known = entry if isinstance(entry, Handoff) else handoff(entry)
    target = _target_of(known)
    made_target = _guarded_agent(target, place)

    async def on_invoke_handoff(context: Any, text: str) -> Agent[Any]:
        given = _parsed(text) if text else {}

        async def work() -> Agent[Any]:
            if await known.on_invoke_handoff(context, json.dumps(given) if text else text) is not target:
                raise ValueError("%s hands over to another agent than it shows" % known.tool_name)
            return made_target

        return await place.guard.run(GuardedCall(gate_name(known.tool_name), given, context), work, _refuse)

    made = dataclasses.replace(known, on_invoke_handoff=on_invoke_handoff)
    made._agent_ref = weakref.ref(made_target)
    return made


def _refuse(judgement: Judgement) -> NoReturn:
    raise SvcGateRefusal(judgement)


def _parsed(text: str) -> Any:
    """None for a text that is not JSON. The gate cannot judge it, so the call is refused."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return None
