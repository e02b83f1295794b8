"""The svc-gate client for asyncio: the methods of ``SvcGate`` as coroutines.

    async with AsyncGate("https://gate.example/t/acme", api_key=key, session_id=run_id) as gate:
        verdict = await gate.check("payment.send", {"amount": 10}, platform_state=await snapshot())
        verdict = await gate.settle(verdict, "payment.send", {"amount": 10}, snapshot)  # waits for a person
        if verdict.allowed: ...

Keep this file beside svc_gate.py, which does all the work: each coroutine runs the method of that name in a thread. At
most 64 threads wait for a person, and at most 64 others make the other calls. More calls wait until a thread is free.

Cancellation ends a call at once for its task, which gets no verdict: do not run the tool. The thread of a cancelled check
or settle sends nothing more. It ends within 0.25 s, or within ``timeout`` if it is still connecting or sending. The gate may
already have recorded the verdict of a cancelled check. Do not change a call's input or facts while the call runs.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import inspect
import os
import ssl
import threading
import time
from typing import Any, Awaitable, Callable, Optional, TypeVar, Union

from svc_gate import SvcGate, Verdict

__all__ = ["AsyncGate"]

_THREADS_MAX = 64  # for settle, and as many for the other calls: a wait for a person must not delay a check
_STOP_WITHIN = 0.25  # seconds until a thread that waits for async facts notices its stop

_Facts = Optional["dict[str, Any]"]
_T = TypeVar("_T")


class AsyncGate:
    """A gate at ``url``. The arguments and errors are those of ``SvcGate``. Any event loop may use it.

    Where ``SvcGate`` fails closed, so does this class, with the same words.
    """

    def __init__(
        self, url: str, api_key: Optional[str] = None, session_id: Optional[str] = None,
        timeout: float = 10.0, retries: int = 1, fail_open: bool = False, ssl_context: Optional[ssl.SSLContext] = None,
        idempotent: bool = False,
    ) -> None:
        self._gate = SvcGate(url, api_key, session_id, timeout, retries, fail_open, ssl_context, idempotent)
        self._renew()

    @property
    def session_id(self) -> str:
        """The session of every check."""
        return self._gate.session_id

    async def check(
        self, tool_name: str, tool_input: dict[str, Any], platform_state: Optional[dict[str, Any]] = None, approval: Optional[str] = None,
    ) -> Verdict:
        """Asks whether this tool call may run, as ``SvcGate.check``. Raises only ``CancelledError``, if its task is cancelled."""
        stop, gate = threading.Event(), self._gate
        try:
            return await self._run(False, gate._checked, tool_name, tool_input, platform_state, approval, gate._idempotent, stop)
        except Exception:
            return self._failed()
        finally:
            stop.set()

    async def settle(
        self, verdict: Verdict, tool_name: str, tool_input: dict[str, Any],
        facts: Union[None, dict[str, Any], Callable[[], Union[_Facts, Awaitable[_Facts]]]] = None, timeout: float = 900.0,
    ) -> Verdict:
        """Waits until a person decides the ESCALATE of this call, as ``SvcGate.settle``. Raises only ``CancelledError``.

        ``facts`` is the platform_state of that check, or a function that returns it. An async function runs in this event loop, a
        plain one in a thread. ``timeout`` seconds include the time until a thread is free.
        """
        if isinstance(verdict, Verdict) and not verdict.escalated:
            return verdict
        stop, loop, begun = threading.Event(), asyncio.get_running_loop(), time.monotonic()

        def settled() -> Verdict:
            left = timeout - (time.monotonic() - begun)
            given = functools.partial(_awaited, facts, loop, stop) if callable(facts) else facts
            return self._gate.settle(verdict, tool_name, tool_input, given, left, stop)

        try:
            return await self._run(True, settled)
        except Exception:
            return self._failed()
        finally:
            stop.set()

    async def outcome(
        self, verdict: Verdict, status: str, amount: Union[None, int, float] = None, ref: Optional[str] = None,
    ) -> Optional[str]:
        """Reports what became of an allowed call, as ``SvcGate.outcome``. Raises only ``CancelledError``.

        A cancelled report may still reach the gate. Reporting the same outcome again adds no row.
        """
        try:
            return await self._run(False, self._gate.outcome, verdict, status, amount, ref)
        except Exception:
            return "Svc: the client itself failed; the outcome was not recorded."

    async def health(self) -> dict[str, Any]:
        """``{"status": "ok", "mode"}``, as ``SvcGate.health``. Raises SvcGateError."""
        return await self._run(False, self._gate.health)

    async def rules(self) -> str:
        """The text in force, verbatim. Raises SvcGateError."""
        return await self._run(False, self._gate.rules)

    async def receipts(
        self, limit: Optional[int] = None, before: Optional[int] = None, session_id: Optional[str] = None,
        tool_name: Optional[str] = None, verdict: Optional[str] = None, kind: Optional[str] = None,
    ) -> dict[str, Any]:
        """``{"receipts": [...], "next"}``, newest first, as ``SvcGate.receipts``. Raises SvcGateError."""
        return await self._run(False, self._gate.receipts, limit, before, session_id, tool_name, verdict, kind)

    async def verify(self) -> dict[str, Any]:
        """``{"ok": True, "rows", "head"}``, or ``{"ok": False, "rows", "first_broken"}``. Raises SvcGateError."""
        return await self._run(False, self._gate.verify)

    async def close(self) -> None:
        """Closes the idle connections and ends the idle threads. Running calls go on, and later calls open new ones."""
        self._gate.close()
        for pool in (self._calls, self._waits):
            pool.shutdown(wait=False)
        self._renew()

    def __reduce__(self) -> Any:
        """Raises TypeError, because a copy or a pickle would contain the key."""
        return self._gate.__reduce__()

    async def __aenter__(self) -> AsyncGate:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._calls = concurrent.futures.ThreadPoolExecutor(_THREADS_MAX, "svc-gate-call")
        self._waits = concurrent.futures.ThreadPoolExecutor(_THREADS_MAX, "svc-gate-wait")

    async def _run(self, is_wait: bool, method: Callable[..., _T], *given: Any) -> _T:
        if self._process != os.getpid():  # a forked process does not have its parent's threads
            self._renew()
        pool = self._waits if is_wait else self._calls
        return await asyncio.get_running_loop().run_in_executor(pool, contextvars.copy_context().run, method, *given)

    def _failed(self) -> Verdict:
        return self._gate._unreached("the client itself failed", False)


def _awaited(facts: Callable[[], Any], loop: asyncio.AbstractEventLoop, stop: threading.Event) -> Any:
    """Calls the facts' function in this thread. The event loop awaits its result if that is a coroutine."""
    found = facts()
    if not inspect.isawaitable(found):
        return found

    async def result() -> Any:
        return await found

    future = asyncio.run_coroutine_threadsafe(result(), loop)
    while not concurrent.futures.wait([future], _STOP_WITHIN).done:
        if stop.is_set():
            future.cancel()
    return future.result()
