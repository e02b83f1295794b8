"""svc-gate for LangChain and LangGraph: the gate decides each call of the tools.

    async with AsyncGate("https://gate.example", api_key=key, session_id=run_id) as gate:
        agent = create_agent(model, tools=guarded([pay, refund], gate, facts))
        await agent.ainvoke(messages)

The gate is asked where the tool runs, about the arguments that the tool gets. Middleware would ask earlier, and other middleware
could change the call after it. Give the tools of middleware and of sub-agents to ``guarded`` as well. The rules: README.md.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as tool_of
from langchain_core.tools.base import _get_runnable_config_param
from langgraph.types import interrupt
from svc_gate_guard import Guard, GuardedCall, Judgement, gate_name, name_problem, plain

__all__ = ["guarded"]

_shared: contextvars.ContextVar[bool] = contextvars.ContextVar("svc_gate_shared", default=False)


def guarded(
    tools: Sequence[Union[BaseTool, Callable[..., Any]]], gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None, *,
    server: Optional[str] = None, **settings: Any,
) -> list[BaseTool]:
    """Returns the same tools, which run only if the gate allows the call. The result of a refused call is the reason.

    ``gate`` is an AsyncGate for ``ainvoke`` and a SvcGate for ``invoke``. ``server`` is the name of the tools' MCP server.
    Without it, the tools are the program's own. The other settings are those of ``svc_gate_guard.Guard``. The ``context`` of a
    call is its RunnableConfig.

    With ``on_escalate="park"``, a call that a person must decide interrupts the run with a dict: ``svc_gate``, ``tool``, ``reason``
    and ``approval``. After the decision, resume with the value of the interrupt itself: the gate is asked again, and only the
    person's decision at the gate counts. The call is refused instead if the graph has no checkpointer, or if its task was not
    started by ``Send``: LangGraph would run the other calls of the task twice.

    Raises ValueError, which names each tool that the provider runs, whose name has a dot, or that replaces ``invoke`` or ``run``.
    """
    guard = Guard(gate, facts, ways=("refuse", "wait", "park"), **settings)
    own = [tool_of(each) if callable(each) and not isinstance(each, (BaseTool, type)) else each for each in tools]
    problems = [problem for each in own if (problem := _problem_of(each, server))]
    if problems:
        raise ValueError("svc-gate cannot guard these tools: " + "; ".join(problems))
    return [_guarded_tool(each, gate_name(each.name, server), guard) for each in own]


def _problem_of(tool: Any, server: Optional[str]) -> Optional[str]:
    if not isinstance(tool, BaseTool):
        name = tool.get("name", tool.get("type")) if isinstance(tool, dict) else getattr(tool, "__name__", tool)
        return "%s is not a tool of LangChain: the provider or another program runs it" % name
    kind = type(tool)
    for way in ("run", "arun", "invoke", "ainvoke"):
        if not getattr(kind, way).__module__.startswith("langchain_core."):
            return "%s has a method %s of its own, which may run it without a check" % (tool.name, way)
    return name_problem(tool.name, server) if gate_name(tool.name, server) is None else None


def _guarded_tool(tool: BaseTool, name: Optional[str], guard: Guard) -> BaseTool:
    kind = type(tool)
    is_plain = kind._arun is BaseTool._arun  # LangChain then looks at the parameters of _run

    @functools.wraps(kind._run)
    def run(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _call_of(tool, name, (args, kwargs))

        def work() -> Any:
            with _beside_others():
                return tool._run(*args, **kwargs)

        return guard.run_now(call, work, functools.partial(_parked_or_refused, tool, call))

    @functools.wraps(kind._run if is_plain else kind._arun)
    async def arun(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        call = _call_of(tool, name, (args, kwargs))

        async def work() -> Any:
            with _beside_others():
                return await tool._arun(*args, **kwargs)

        return await guard.run(call, work, functools.partial(_parked_or_refused, tool, call))

    copy = tool.model_copy()
    if getattr(copy, "coroutine", arun) is None:
        copy.coroutine = functools.partial(arun, copy)  # otherwise ainvoke would run it in a thread, without this program's asyncio
    copy.__class__ = type("Guarded" + kind.__name__, (kind,), {"_run": run, "_arun": arun, "__module__": __name__})
    return copy


def _call_of(tool: BaseTool, name: Optional[str], given: tuple[tuple[Any, ...], dict[str, Any]]) -> GuardedCall:
    """Returns the call as the gate sees it, after the answers to this adapter's own interrupts were taken."""
    args, kwargs = given
    config = ensure_config()
    _take_answers(config)
    members = dict(zip(tool.args, args)) if args else kwargs
    hidden = _injected_names(tool)
    judged = {key: value for key, value in members.items() if key not in hidden}
    return GuardedCall(str(name), plain(judged), config)


def _injected_names(tool: BaseTool) -> set[str]:
    """The names of the parameters that LangChain fills, and not the model."""
    names = {"run_manager", _get_runnable_config_param(tool._run), _get_runnable_config_param(tool._arun)}
    names |= set(getattr(tool, "_injected_args_keys", ()))
    if not isinstance(tool.args_schema, dict):
        names |= _fields(tool.get_input_schema()) - _fields(tool.tool_call_schema)
    return names


def _fields(schema: Any) -> set[str]:
    return set(getattr(schema, "model_fields", None) or getattr(schema, "__fields__", ()))


def _parked_or_refused(tool: BaseTool, call: GuardedCall, judgement: Judgement) -> Any:
    if judgement.parks and _can_park(call.context):
        interrupt(_parked(call, judgement))
    return (judgement.reason, None) if tool.response_format == "content_and_artifact" else judgement.reason


def _parked(call: GuardedCall, judgement: Judgement) -> dict[str, Any]:
    task = call.context["configurable"]["__pregel_task_id"]
    return {"svc_gate": task, "tool": call.name, "reason": judgement.reason, "approval": judgement.approval}


def _take_answers(config: Any) -> None:
    """A resumed call runs again from its start, and LangGraph returns the answers to interrupts in order.

    So this adapter takes its own answers first: the tool's own interrupts must not get them.
    """
    configurable = config.get("configurable") or {}
    pad = configurable.get("__pregel_scratchpad")
    for answer in [] if pad is None else [*pad.resume, pad.get_null_resume(False)]:
        if isinstance(answer, dict) and answer.get("svc_gate") == configurable.get("__pregel_task_id"):
            interrupt(answer)


def _can_park(config: Any) -> bool:
    """A resumed task runs again, with all its calls. So the run is parked only if each task around this call has one call."""
    return bool(config["configurable"].get("__pregel_checkpointer")) and _is_alone(config) and not _shared.get()


def _is_alone(config: Any) -> bool:
    path = config.get("metadata", {}).get("langgraph_path", ())
    return len(path) > 1 and path[0] == "__pregel_push" and isinstance(path[1], int)


@contextlib.contextmanager
def _beside_others() -> Iterator[None]:
    """Tells the tools of a sub-agent whether other calls run in its task."""
    token = _shared.set(_shared.get() or not _is_alone(ensure_config()))
    try:
        yield
    finally:
        _shared.reset(token)
