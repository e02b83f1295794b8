"""Runs cases from standard input, a JSON line each, against the svc_gate.py in the folder that the argument names.

With a second argument, `asyncio`, it tests the svc_gate_async.py of that folder."""
import asyncio, concurrent.futures, inspect, json, sys, threading, time
from inputs import built

sys.path.insert(0, sys.argv[1])
from svc_gate import SvcGate, SvcGateError, Verdict

IS_ASYNC = sys.argv[2:] == ["asyncio"]

NAMES = ("verdict", "reason", "mode", "unreached", "allowed", "escalated", "receipt", "approval")


class Waiting:
    """An AsyncGate whose methods wait for their coroutines, which all run in one event loop."""

    def __init__(self, **options):
        from svc_gate_async import AsyncGate

        self._gate = AsyncGate(**options)

    def __getattr__(self, name):
        found = getattr(self._gate, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *given, **named: asyncio.run_coroutine_threadsafe(found(*given, **named), LOOP).result()


if IS_ASYNC:
    LOOP = asyncio.new_event_loop()
    threading.Thread(target=LOOP.run_forever, daemon=True).start()


def function_of(facts):
    each = iter(facts).__next__

    async def soon():
        await asyncio.sleep(0)
        return each()

    return soon if IS_ASYNC else each


def settle(gate, tool_name, tool_input, platform_state=None, facts=None, timeout_ms=900000):
    verdict = gate.check(tool_name, tool_input, platform_state)
    given = function_of(facts) if type(facts) is list else facts
    return gate.settle(verdict, tool_name, tool_input, given, timeout=timeout_ms / 1000)


def outcome(gate, receipt=None, **asked):
    return gate.outcome(Verdict("ALLOW", "Svc: fine", "enforce", receipt=receipt), **asked)


def call(gate, asked):
    method, pause_ms = asked.pop("method"), asked.pop("pause_ms", 0)
    time.sleep(pause_ms / 1000)
    started = time.monotonic()
    try:
        own = {"settle": settle, "outcome": outcome}.get(method)
        result = own(gate, **built(asked)) if own else getattr(gate, method)(**built(asked))
    except SvcGateError as error:
        return {"fails": {"status": error.status, "code": error.code, "detail": error.detail, "message": str(error)}}
    except BaseException as error:
        return {"raised": repr(error)}
    if method not in ("check", "settle"):
        return {"returns": result}
    return {"verdict": {name: getattr(result, name) for name in NAMES}, "ms": (time.monotonic() - started) * 1000}


def run(case):
    options = built(case["options"])
    ms = options.pop("timeout_ms")
    try:
        gate = (Waiting if IS_ASYNC else SvcGate)(timeout=ms / 1000 if type(ms) in (int, float) else ms, **options)
    except (TypeError, ValueError) as error:
        return {"id": case["id"], "construction": str(error)}
    each = concurrent.futures.ThreadPoolExecutor(50).map if case["at_once"] else map
    results = list(each(lambda one: call(gate, one), case["calls"]))
    return {"id": case["id"], "session_id": gate.session_id, "results": results}


with concurrent.futures.ThreadPoolExecutor(64) as pool:
    for line in sys.stdin:
        pool.submit(lambda case: print(json.dumps(run(case)) + "\n", end="", flush=True), json.loads(line))
