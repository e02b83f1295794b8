"""svc-gate for smolagents: the gate decides each tool call of an agent, also those in the code of a CodeAgent.

    gate = SvcGate("https://gate.example", api_key=key, session_id=run_id)
    agent = guarded(CodeAgent(tools=[pay], model=model), gate, facts)

The real tools are in closures, which the code that a model writes cannot read. The rules for all adapters: adapters/README.md.
"""

from __future__ import annotations

import inspect
import json
import logging
import types
from typing import Any, Callable, Collection, Iterable, Literal, Mapping, Optional

from smolagents import CodeAgent, FinalAnswerTool, LocalPythonExecutor, MultiStepAgent, Tool
from smolagents.utils import BASE_BUILTIN_MODULES
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, with_defaults

__all__ = ["GuardedCall", "guarded"]

_log = logging.getLogger("svc_gate")
_NO_SERVER = "the MCP tool %s needs its server's name in servers"
_Names = Mapping[int, tuple[Any, Optional[str]]]
_PROVIDED = ("extra_body", "functions", "mcp_servers", "tools", "web_search_options")


def guarded(
    agent: MultiStepAgent, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
    servers: Optional[Mapping[str, Iterable[Tool]]] = None, on_escalate: Literal["refuse", "wait"] = "refuse", wait: float = 900.0,
    imports: Collection[str] = (), log: Callable[[str], Any] = _log.error,
) -> MultiStepAgent:
    """Returns the changed agent: its tools and managed agents, and their tools and agents, run only if the gate allows the call.

    ``gate`` is a SvcGate, one for each run, or a function that returns it for a call. ``context`` of a call is the agent that
    calls. ``facts`` returns the platform's facts about a call; if it raises, the call is refused. ``servers`` has the tools of
    each MCP server by the server's name. If a person must decide, ``on_escalate`` refuses the call, or waits up to ``wait``
    seconds. ``imports`` are additional imports of a CodeAgent that cannot act outside the program. ``log`` takes sentences for
    operators, which the model must not read. The model reads why a call was refused; in a CodeAgent the call raises RuntimeError.

    Afterwards the agents accept no more tools. Raises ValueError if an agent has tools, imports or an executor that the gate
    cannot see.
    """
    guard = Guard(gate, facts, on_escalate, wait, log, ways=("refuse", "wait"))
    names = _names_of(servers)
    team = _team_of(agent)
    problems = [problem for member in team for problem in _problems_of(member, names, imports)]
    if problems:
        raise ValueError("svc-gate cannot guard this agent: " + "; ".join(problems))
    for member in team:
        for kind in ("tools", "managed_agents"):
            tools = {key: _guarded(tool, member, guard, names) for key, tool in getattr(member, kind).items()}
            setattr(member, kind, types.MappingProxyType(tools))
    return agent


def _names_of(servers: Optional[Mapping[str, Iterable[Tool]]]) -> _Names:
    """Names at the gate by the id of the tool. It also keeps the tool, because Python reuses the id of a collected object."""
    return {id(tool): (tool, gate_name(tool.name, server)) for server, tools in (servers or {}).items() for tool in tools}


def _guarded(tool: Any, agent: MultiStepAgent, guard: Guard, names: _Names) -> Any:
    """Returns a tool that asks the gate and then runs ``tool``, which may be an agent."""
    if type(tool) is FinalAnswerTool:
        return tool  # it returns its argument, which ends the run
    name = names[id(tool)][1] if id(tool) in names else gate_name(tool.name)
    must_raise = isinstance(agent, CodeAgent) or tool.output_type in ("audio", "image")

    def refuse(judgement: Judgement) -> str:
        if must_raise:
            raise RuntimeError(judgement.reason)
        return judgement.reason

    def ask(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = _plain(_named(tool, args, kwargs))
        judged = with_defaults(getattr(tool, "forward", None), given, ("self",))
        return guard.run_now(GuardedCall(name, judged, agent), lambda: tool(**given), refuse)

    class GuardedTool(Tool):
        skip_forward_signature_validation = True

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return ask(args, kwargs)

    shown = ("name", "description", "inputs", "output_type", "output_schema")
    for attribute in shown:
        setattr(GuardedTool, attribute, getattr(tool, attribute, None))
    return GuardedTool()


def _named(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name. A decorated function's tool has a ``self`` that is not an argument."""
    call = tool.forward if isinstance(tool, Tool) else tool.__call__
    parameters = inspect.signature(call).parameters.values()
    names = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD and each.name != "self"]
    given = dict(zip(names, args))
    if len(given) < len(args) or given.keys() & kwargs.keys():
        raise TypeError("give the arguments of %s by their names" % tool.name)
    return {**given, **kwargs}


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """A copy as JSON data, which the gate judges and the tool gets, because code may pass objects that change."""
    try:
        return json.loads(json.dumps(arguments, allow_nan=False))
    except (TypeError, ValueError):
        raise TypeError("Svc: the input is not JSON data; the action is blocked.") from None


def _team_of(agent: Any) -> list[Any]:
    team = [agent]
    for member in team:
        team += [each for each in member.managed_agents.values() if not any(each is known for known in team)]
    return team


def _problems_of(agent: Any, names: _Names, imports: Collection[str]) -> list[str]:
    if not isinstance(agent.tools, dict):
        return ["an agent is guarded already"]
    tools, executor = agent.tools.values(), getattr(agent, "python_executor", None)
    problems = [_NO_SERVER % tool.name for tool in tools if _is_mcp(tool) and id(tool) not in names]
    problems += ["the provider may run tools by the model's setting %s" % key for key in _PROVIDED if key in _settings_of(agent.model)]
    if executor is None:
        return problems
    if getattr(executor, "static_tools", None) is not None:
        problems.append("its code has run, and may have kept a tool")
    if not isinstance(executor, LocalPythonExecutor):
        return [*problems, "its code runs elsewhere: %s" % type(executor).__name__]
    unknown = sorted(set(executor.additional_authorized_imports) - set(BASE_BUILTIN_MODULES) - set(imports))
    problems += ["its code may import %s" % module for module in unknown]
    return problems + ["its code may call %s" % function for function in executor.additional_functions]


def _settings_of(model: Any) -> dict[str, Any]:
    return getattr(model, "kwargs", None) or {}


def _is_mcp(tool: Tool) -> bool:
    return type(tool).__module__ == "mcpadapt.smolagents_adapter"
