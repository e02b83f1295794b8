"""The part that all svc-gate adapters for Python share: it asks the gate about a call, and says whether the tool may run.

An adapter translates between this guard and its framework. So a reviewer reads the code of the decision only once. The rules:
adapters/README.md. Frameworks with asyncio take an AsyncGate, ``judge`` and ``run``. Others take a SvcGate, ``judge_now`` and
``run_now``.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import inspect
import logging
import re
import threading
from typing import Any, Awaitable, Callable, Generator, Iterable, Optional, TypeVar, Union

__all__ = ["Guard", "GuardedCall", "Judgement", "gate_name", "name_problem", "plain", "with_defaults"]

_ADAPTER_FAILED = "Svc: the adapter itself failed; the action is blocked."
_FACTS_FAILED = "Svc: the facts about this call could not be read; the action is blocked."
_NOT_REACHED = "Svc: the gate gave no verdict; the action is blocked."
_USED_UP = "Svc: the verdict of this call was already used; the action is blocked."
_log = logging.getLogger("svc_gate")

_T = TypeVar("_T")
_R = TypeVar("_R")
_Steps = Generator[Callable[[], Any], Any, "Judgement"]


@dataclasses.dataclass(frozen=True)
class GuardedCall:
    """A call as the gate is asked about it.

    ``name`` is ``pay`` or ``server.tool``, ``input`` plain JSON data. ``context`` is what the framework says about the run.
    """

    name: str
    input: dict[str, Any]
    context: Any = None


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What the framework may do with a call.

    ``runs``: the tool may run now. ``grants``: an enforcing gate allowed it; only this is a permission in a framework that has
    permissions. ``parks``: the run must stop until a person has decided. ``reason`` is one sentence for the model. ``approval``
    is the id of the approval that a person gives or denies, or None.
    """

    runs: bool
    grants: bool
    parks: bool
    reason: str
    approval: Optional[str] = None
    verdict: Any = None
    gate: Any = None
    # Has an entry when the tool has started.
    begun: list[bool] = dataclasses.field(default_factory=list, repr=False, compare=False)


class Guard:
    """Judges calls with these settings. Raises ValueError for a setting that cannot be used.

    ``gate`` is the client of one run, or, if the agent serves several runs, a function that returns it for a call. ``facts``
    returns the platform's facts about a call; if it raises, the call is refused. If a person must decide, ``on_escalate`` says
    what happens to the call: ``refuse``, ``wait`` for up to ``wait`` seconds, or ``park``. ``log`` takes sentences for operators,
    which the model must not read. Both functions may be async, except for ``judge_now`` and ``run_now``.

    An adapter says what its framework can do. ``ways`` are the values of ``on_escalate``. With ``grant``, the framework has its
    own permissions: the gate's ALLOW is a permission, and fail-open lets nothing run.
    """

    def __init__(
        self, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None, on_escalate: str = "refuse", wait: float = 900.0,
        log: Callable[[str], Any] = _log.error, ways: tuple[str, ...] = ("refuse", "wait"), grant: bool = False,
    ) -> None:
        if not callable(gate) and not hasattr(gate, "check"):
            raise ValueError("gate must be a SvcGate or an AsyncGate, or a function that returns the client of a call")
        if facts is not None and not callable(facts):
            raise ValueError("facts must be a function")
        if on_escalate not in ways:
            raise ValueError("on_escalate must be %s" % " or ".join(ways))
        self._gate, self._facts, self._way, self._wait, self._log = gate, facts, on_escalate, wait, log
        self._grant = grant
        self._reports: set[Any] = set()  # a task that nobody keeps may be collected

    async def judge(self, call: GuardedCall, approval: Optional[str] = None) -> Judgement:
        """Asks the gate about the call. Raises only CancelledError: another failure is a judgement that refuses."""
        steps = _judging(self, call, approval)
        try:
            question = next(steps)
            while True:
                try:
                    answer = question()
                    answer = await answer if inspect.isawaitable(answer) else answer
                except Exception as error:
                    question = steps.throw(error)
                else:
                    question = steps.send(answer)
        except StopIteration as end:
            return end.value
        except Exception as error:
            return self._failed(error)

    def judge_now(self, call: GuardedCall, approval: Optional[str] = None) -> Judgement:
        """As ``judge``, for a framework without asyncio. Never raises."""
        steps = _judging(self, call, approval)
        try:
            question = next(steps)
            while True:
                try:
                    answer = _plain(question())
                except Exception as error:
                    question = steps.throw(error)
                else:
                    question = steps.send(answer)
        except StopIteration as end:
            return end.value
        except Exception as error:
            return self._failed(error)

    async def run(
        self, call: GuardedCall, work: Callable[[], Awaitable[_T]], refuse: Callable[[Judgement], _R], approval: Optional[str] = None,
    ) -> Union[_T, _R]:
        """Awaits ``work`` if the gate allows the call, and reports the outcome; otherwise returns ``refuse(judgement)``."""
        return await self.run_judged(await self.judge(call, approval), work, refuse)

    async def run_judged(
        self, judgement: Judgement, work: Callable[[], Awaitable[_T]], refuse: Callable[[Judgement], _R],
    ) -> Union[_T, _R]:
        """Does what ``run`` does, with a judgement of exactly this call, which is good for one run."""
        if not judgement.runs:
            return refuse(judgement)
        if judgement.begun:
            return refuse(_refusal(_USED_UP))
        judgement.begun.append(True)
        status = "unknown"  # after an error, the tool may have started
        try:
            result = await work()
            status = "done"
            return result
        finally:
            self.report(judgement, status)

    def run_now(
        self, call: GuardedCall, work: Callable[[], _T], refuse: Callable[[Judgement], _R], approval: Optional[str] = None,
    ) -> Union[_T, _R]:
        """As ``run``, for a framework without asyncio."""
        judgement = self.judge_now(call, approval)
        if not judgement.runs:
            return refuse(judgement)
        status = "unknown"
        try:
            result = work()
            status = "done"
            return result
        finally:
            self.report_now(judgement, status)

    def report(self, judgement: Judgement, status: str) -> None:
        """Reports the outcome of an allowed call: ``done`` or ``unknown``. The result does not wait for the report."""
        if not _has_receipt(judgement):
            return

        async def send() -> None:
            sent = judgement.gate.outcome(judgement.verdict, status)
            problem = await sent if inspect.isawaitable(sent) else sent
            if problem is not None:
                self._log(problem)

        task = asyncio.ensure_future(send())
        self._reports.add(task)
        task.add_done_callback(self._reports.discard)

    def report_now(self, judgement: Judgement, status: str) -> None:
        """As ``report``, for a framework without asyncio: a thread sends it."""

        def send() -> None:
            problem = judgement.gate.outcome(judgement.verdict, status)
            if problem is not None:
                self._log(problem)

        if _has_receipt(judgement):
            threading.Thread(target=send, name="svc-gate-outcome").start()

    def _failed(self, error: Exception) -> Judgement:
        self._log("Svc: the adapter itself failed: %r" % error)
        return _refusal(_ADAPTER_FAILED)


def _judging(guard: Guard, call: GuardedCall, approval: Optional[str]) -> _Steps:
    """Yields each question and gets its answer, so that the same steps serve callers with and without asyncio."""
    shown = dataclasses.replace(call, input=copy.deepcopy(call.input))  # for functions of the platform, which may change it
    gate = guard._gate if hasattr(guard._gate, "check") else (yield functools.partial(guard._gate, shown))
    facts = functools.partial(guard._facts, shown) if guard._facts else lambda: None
    try:
        snapshot = yield facts
    except Exception as error:
        guard._log("Svc: the facts about %s could not be read: %r" % (call.name, error))
        return _refusal(_FACTS_FAILED)
    verdict = yield functools.partial(gate.check, call.name, call.input, snapshot, approval)
    given = verdict.approval or {}
    if verdict.escalated and guard._way == "wait":
        verdict = yield functools.partial(gate.settle, verdict, call.name, call.input, facts, guard._wait)
    elif verdict.escalated and approval is None and given.get("next") == "check":
        # A person has approved the call since it was refused or parked: it is checked again, with the approval.
        verdict = yield functools.partial(gate.check, call.name, call.input, snapshot, given["id"])
    if verdict.unreached:
        guard._log(verdict.reason)
    return _judgement_of(guard, verdict, gate)


def _judgement_of(guard: Guard, verdict: Any, gate: Any) -> Judgement:
    escalated, unreached = verdict.verdict == "ESCALATE", verdict.unreached
    runs = verdict.verdict == "ALLOW" and not (guard._grant and unreached)  # fail-open is not a permission
    asks = verdict.reason + "; a person decides: ask again after the decision" if escalated else verdict.reason
    return Judgement(
        runs=runs,
        grants=runs and not unreached and verdict.mode in ("enforce", "assist"),
        parks=escalated and guard._way == "park",
        reason=_NOT_REACHED if unreached and not runs else asks,
        approval=(verdict.approval or {}).get("id"),
        verdict=verdict,
        gate=gate,
    )


def _refusal(reason: str) -> Judgement:
    return Judgement(runs=False, grants=False, parks=False, reason=reason)


def gate_name(tool: Any, server: Optional[str] = None) -> Optional[str]:
    """The name of a tool at the gate: ``tool``, or ``server.tool`` with both parts escaped as adapters/README.md says.

    None if the tool has no name, or a name that could be mistaken for a server's tool.
    """
    if not isinstance(tool, str) or not tool:
        return None
    if server is None:
        return None if "." in tool else tool
    if not isinstance(server, str) or not server:
        return None
    return "%s.%s" % (_escaped(server), _escaped(tool))


def name_problem(tool: Any, server: Optional[str] = None) -> str:
    """Why ``gate_name`` has no name for these, and what to do: a tool's name without a dot, and ``aliases`` in the contract."""
    if not isinstance(tool, str) or not tool:
        return "a tool has no name"
    if server is not None:
        return "the server of %s has no name" % tool
    alias = tool.replace(".", "_")
    advice = "name it %s, and write `aliases: [%s]` below %s in the contract" % (alias, alias, tool)
    return "%s has a dot, as only tools of MCP servers do: %s" % (tool, advice)


def plain(value: Any) -> Any:
    """An argument of a tool as JSON data. If JSON cannot express all of it, it stays as it is, and the call is refused.

    A Pydantic model has all its fields, also those that its own JSON leaves out. Secrets of Pydantic stay masked.
    """
    kind = type(value)
    fields = getattr(kind, "__pydantic_fields__", None)
    if getattr(kind, "__pydantic_root_model__", False):
        return plain(value.root)
    if fields is not None:
        more = getattr(value, "__pydantic_extra__", None) or {}
        own = {field.serialization_alias or name: plain(getattr(value, name)) for name, field in fields.items()}
        members = {**plain(more), **own}
        return members if len(members) == len(more) + len(fields) else value
    if dataclasses.is_dataclass(kind):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        members = {_scalar(key): plain(each) for key, each in value.items()}
        return members if len(members) == len(value) else value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    return value if hasattr(value, "__next__") else _scalar(value)  # reading an iterator would leave nothing for the tool


def with_defaults(function: Any, given: dict[str, Any], hidden: Iterable[str] = ()) -> dict[str, Any]:
    """The arguments that a function gets, as JSON data: the given ones, and the function's defaults for others. A default of None
    is left out.

    ``hidden`` are parameters that the framework fills, not the model.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return given
    defaults = {each.name: plain(_default_of(each)) for each in parameters if each.name not in hidden}
    return {**{name: default for name, default in defaults.items() if default is not None}, **given}


def _default_of(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if hasattr(default, "get_default"):  # a Field of Pydantic
        default = default.get_default(call_default_factory=True)
    return None if default is inspect.Parameter.empty or type(default).__name__ == "PydanticUndefinedType" else default


def _scalar(value: Any) -> Any:
    from pydantic_core import to_jsonable_python  # only frameworks that have it make values that need it

    try:
        return to_jsonable_python(value)
    except ValueError:
        return value


def _escaped(part: str) -> str:
    return re.sub("__+|[^A-Za-z0-9_-]", lambda found: "".join("%%%02X" % byte for byte in found[0].encode()), part)


def _plain(answer: _T) -> _T:
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("this run does not use asyncio: give a SvcGate, and functions that are not async")
    return answer


def _has_receipt(judgement: Judgement) -> bool:
    """An observing gate lets nothing through, so it takes no outcome."""
    return judgement.runs and judgement.verdict.receipt is not None and judgement.verdict.mode != "observe"
