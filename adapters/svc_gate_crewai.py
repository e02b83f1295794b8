"""svc-gate for CrewAI: the gate decides each tool call of a crew's agents, delegation to a coworker included.

    gate = SvcGate("https://gate.example", api_key=key, session_id=run_id)
    crew = guarded(Crew(agents=[payer], tasks=[task]), gate, facts)

The gate is asked where the tool runs, after the hooks and instead of the cache. The framework's ``before_tool_call`` hook is not
enough: a hook that fails lets the call run. The rules for all adapters: adapters/README.md.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, TypeVar, Union

from crewai import Agent, Crew, Process
from crewai.tools import BaseTool
from crewai.tools.tool_failure import ToolFailure
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import PrivateAttr
from pydantic_core import to_jsonable_python
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name

__all__ = ["GuardedCall", "guarded"]

_log = logging.getLogger("svc_gate")
_PROVIDED = ("builtin_tools", "extra_body", "functions", "mcp_servers", "tools", "web_search_options")
_Guarded = TypeVar("_Guarded", Agent, Crew)
_Names = Mapping[int, tuple[Any, Optional[str]]]


def guarded(
    crew: _Guarded, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
    servers: Optional[Mapping[str, Iterable[BaseTool]]] = None, on_escalate: Literal["refuse", "wait"] = "refuse",
    wait: float = 900.0, log: Callable[[str], Any] = _log.error,
) -> _Guarded:
    """Returns the changed crew or agent: a tool of its agents and tasks runs only if the gate allows the call. Copies are guarded
    too.

    ``gate`` is a SvcGate, one for each run, or a function that returns it for a call. ``context`` of a call is the agent that
    calls. ``facts`` returns the platform's facts about a call; if it raises, the call is refused. ``servers`` has the tools of
    each MCP server by the server's name, except for those of ``mcps``. If a person must decide, ``on_escalate`` refuses the call,
    or waits up to ``wait`` seconds. ``log`` takes sentences for operators, which the model must not read. The model reads why a
    call was refused.

    Raises ValueError if an agent acts in a way that the gate cannot see.
    """
    guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait"))
    names = _names_of(servers)
    agents = _agents_of(crew) if isinstance(crew, Crew) else [crew]
    problems = [problem for agent in agents for problem in _problems_of(agent)]
    if isinstance(crew, Crew) and crew.process == Process.hierarchical and crew.manager_agent is None:
        problems.append("the crew makes its manager itself: give it a manager_agent")
    if problems:
        raise ValueError("svc-gate cannot guard this crew: " + "; ".join(problems))
    for agent in agents:
        agent.__class__ = _guarded_class(type(agent), guard, names)
    return crew


def _names_of(servers: Optional[Mapping[str, Iterable[BaseTool]]]) -> _Names:
    """Names at the gate by the id of the tool. It also keeps the tool, because Python reuses the id of a collected object."""
    return {id(tool): (tool, gate_name(tool.name, server)) for server, tools in (servers or {}).items() for tool in tools}


def _guarded_class(kind: type[Agent], guard: Guard, names: _Names) -> type[Agent]:
    """A class, because the framework copies an agent by calling its class."""

    class GuardedAgent(kind):
        def _add_skill_loader_tool(self, tools: list[BaseTool], *args: Any, **kwargs: Any) -> list[BaseTool]:
            """Whichever way an agent runs, the framework adds its last tools here."""
            return [_guarded(tool, self, guard, names) for tool in super()._add_skill_loader_tool(tools, *args, **kwargs)]

        def create_agent_executor(self, *args: Any, **kwargs: Any) -> None:
            super().create_agent_executor(*args, **kwargs)
            _check(self.agent_executor)

        def _prepare_kickoff(self, *args: Any, **kwargs: Any) -> Any:
            prepared = super()._prepare_kickoff(*args, **kwargs)
            _check(prepared[0])
            return prepared

    return GuardedAgent


class _GuardedTool(BaseTool):
    """A tool that asks the gate and then runs the real one. Without its function, after a restore, it fails."""

    _ask: Any = PrivateAttr(default=None)

    def _run(self, **arguments: Any) -> Any:
        return self._ask(arguments)


def _guarded(tool: BaseTool, agent: Agent, guard: Guard, names: _Names) -> BaseTool:
    if isinstance(tool, _GuardedTool):
        return tool
    name = names[id(tool)][1] if id(tool) in names else _name_of(tool)
    if name is None:
        raise ValueError("svc-gate cannot guard this crew: the MCP tool %s needs its server's name in servers" % tool.name)

    def work(arguments: dict[str, Any]) -> Any:
        result = tool._run(**arguments)
        return asyncio.run(result) if asyncio.iscoroutine(result) else result

    def ask(arguments: dict[str, Any]) -> Any:
        call = GuardedCall(name, to_jsonable_python(arguments), agent)
        return guard.run_now(call, lambda: work(arguments), _refusal)

    shown = ("name", "description", "args_schema", "result_schema", "result_as_answer", "max_usage_count", "tool_failure_policy")
    twin = _GuardedTool(**{key: getattr(tool, key) for key in shown}, cache_function=_never)
    twin._ask = ask
    return twin


def _refusal(judgement: Judgement) -> ToolFailure:
    """A failure is not kept in the cache, and cannot become the answer of the task."""
    return ToolFailure(message=judgement.reason)


def _never(arguments: Any = None, result: Any = None) -> bool:
    """A cached result would come without a check."""
    return False


def _name_of(tool: BaseTool) -> Optional[str]:
    """An own tool has the name that the model calls, a tool of an MCP server is ``server.tool``. None if it is not known."""
    server = getattr(tool, "server_name", None)
    if server is not None:
        return gate_name(getattr(tool, "original_tool_name", None), server)
    if type(tool).__module__.startswith("mcpadapt."):
        return None
    return gate_name(sanitize_tool_name(tool.name))


def _check(executor: Any) -> None:
    """If a version of CrewAI adds tools elsewhere, the run ends here."""
    unknown = [tool.name for tool in executor.original_tools if not isinstance(tool, _GuardedTool)]
    if unknown:
        raise RuntimeError("svc-gate does not guard these tools: " + ", ".join(unknown))


def _agents_of(crew: Crew) -> list[Any]:
    every = [*crew.agents, crew.manager_agent, *(task.agent for task in crew.tasks)]
    return list({id(agent): agent for agent in every if agent is not None}.values())


def _problems_of(agent: Any) -> list[str]:
    if not isinstance(agent, Agent):
        return ["%s is an agent of another framework" % type(agent).__name__]
    if type(agent).__name__ == "GuardedAgent":
        return ["%s is guarded already" % agent.role]
    problems = ["%s sends work to agents of other programs" % agent.role] if getattr(agent, "a2a", None) else []
    models = [model for model in (agent.llm, agent.function_calling_llm) if model is not None]
    settings = {key for model in models for key, value in _settings_of(model).items() if value}
    return problems + ["the provider may run tools by the model's setting %s" % key for key in _PROVIDED if key in settings]


def _settings_of(model: Union[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = getattr(model, "__dict__", {})
    return {**own, **(own.get("additional_params") or {})}
