"""Shared by the programs of the Python frameworks. argv: the folders of the adapters and of the clients."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
import traceback

adapters, clients = sys.argv[-2:]
sys.path[:0] = [adapters, os.path.join(clients, "python")]
from svc_gate import SvcGate, Verdict  # noqa: E402 -- the path is set above
from svc_gate_async import AsyncGate  # noqa: E402 -- the path is set above

END = "The work is done."
_printing = threading.Lock()


def serve(run, is_async=True):
    """Runs each plan that comes on stdin. ``run`` returns (ended, detail): ended is done, parked or not-started."""

    def said(plan, ended, detail):
        line = "kit " + json.dumps({"run": plan["run"], "ended": ended, "detail": str(detail)})
        with _printing:
            sys.__stdout__.write(line + "\n")  # a framework may have put its own into sys.stdout
            sys.__stdout__.flush()

    def one(plan):
        try:
            said(plan, *run(plan))
        except BaseException:
            said(plan, "lost", traceback.format_exc())

    async def one_async(plan):
        try:
            said(plan, *await run(plan))
        except BaseException:
            said(plan, "lost", traceback.format_exc())

    async def all_async():
        loop, tasks = asyncio.get_running_loop(), set()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            task = asyncio.ensure_future(one_async(json.loads(line)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    if is_async:
        asyncio.run(all_async())
        return
    for line in sys.stdin:
        threading.Thread(target=one, args=(json.loads(line),), daemon=True).start()


def settings_of(plan, is_async=True):
    """The settings of the guard for a plan."""
    variant, hook = plan["case"].get("variant") or "", plan["case"].get("hook", "ours")
    gate = (AsyncGate if is_async else SvcGate)(
        plan["gate"], api_key=plan["key"], session_id=plan["session"], timeout=plan["secondsForHook"] / 2, retries=0,
        fail_open=variant.startswith("fail-open"),
    )
    if variant == "instant-client":  # for the benchmark: it does not ask
        gate = _Stub(lambda: Verdict("ALLOW", "Svc: fine", "enforce"), is_async)
    if hook in _FAILING:
        gate = _Stub(_FAILING[hook], is_async)
    settings = {"gate": gate, "on_escalate": plan["case"].get("onEscalate", "refuse"), "wait": 20.0}
    if variant == "facts-throw":
        settings["facts"] = _no_facts
    return settings


def _no_facts(call):
    raise RuntimeError("no facts")


def _crash():
    raise RuntimeError("crashed")


# Clients of the gate that fail, for the cases C1 to C8.
_FAILING = {
    "crashes": _crash,
    "says-nothing": lambda: None,
    "says-text": lambda: "ALLOW",
    "says-odd-json": lambda: {"verdict": "ALLOW"},
}


class _Stub:
    def __init__(self, answer, is_async):
        self._answer = answer
        if is_async:
            self.check = self._check

    async def _check(self, *args):
        return self._answer()

    def check(self, *args):
        return self._answer()


def pay(plan, amount):
    """The work of the tool pay. The witness has a line for it."""
    with open(plan["payServer"][-1], "a", encoding="utf-8") as witness:
        text = json.dumps({"amount": amount}, separators=(",", ":"))
        witness.write("pay %s at %d with %s\n" % (amount, time.time() * 1000, text))
    return "paid %s" % amount


def shell(plan, command):
    """The work of the tool shell."""
    folder = os.path.dirname(plan["payServer"][-1])
    done = subprocess.run(["sh", "-c", command], cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout or "The command has run."


def end_of(text):
    """How a run ended that has come to the model's last text."""
    return ("done" if text == END else "lost", text)
