"""Runs cases from standard input, a JSON line each, against the svc_gate.py in the folder that the argument names."""
import concurrent.futures, datetime, decimal, json, sys, time, types

sys.path.insert(0, sys.argv[1])
from svc_gate import SvcGate, SvcGateError

class Hostile(dict):
    def items(self): raise RuntimeError("svc-key-Zq7mW2x9Lk4vB1nT")
    keys = values = __iter__ = __len__ = __getitem__ = __repr__ = items
def nested(inner, depth): return inner if depth == 0 else {"a": nested(inner, depth - 1)}
def holding_itself(): box = []; box.append(box); return box
BUILT = dict(nan=float("nan"), infinity=float("inf"), bytes=b"a", set={1}, map=types.MappingProxyType({}), function=len,
    date=datetime.datetime.now(), exact=decimal.Decimal(1), instance=object(), big_float=2.0**53, hostile=Hostile(a=1),
    surrogate="a\ud800", gap=[1, ..., 3], odd_name={("a",): 1}, to_json={"toJSON": len})
def built(value):
    if isinstance(value, list): return [built(item) for item in value]
    if not isinstance(value, dict): return value
    if "$text" in value: return value["$text"][0] * value["$text"][1]
    if "$nested" in value: return nested({}, value["$nested"])
    if "$many" in value: return [[[[[0] * 10] * 10] * 10] * 10] * value["$many"]
    if value.get("$build") == "cycle": return holding_itself()
    if "$build" in value: return BUILT[value["$build"]]
    return {name: built(item) for name, item in value.items() if item != {"$build": "absent"}}
def call(gate, asked):
    asked = dict(asked)
    time.sleep(asked.pop("pause_ms", 0) / 1000)
    started = time.monotonic()
    try: result = getattr(gate, asked.pop("method"))(**built(asked))
    except SvcGateError as e: return {"fails": {"status": e.status, "code": e.code, "detail": e.detail, "message": str(e)}}
    except BaseException as e: return {"raised": repr(e)}
    if not hasattr(result, "unreached"): return {"returns": result}
    names = ("verdict", "reason", "mode", "unreached", "allowed", "escalated", "receipt")
    return {"verdict": {n: getattr(result, n) for n in names}, "ms": (time.monotonic() - started) * 1000}
def run(case):
    options = built(case["options"]); ms = options.pop("timeout_ms")
    try: gate = SvcGate(timeout=ms / 1000 if type(ms) in (int, float) else ms, **options)
    except (TypeError, ValueError) as e: return {"id": case["id"], "construction": str(e)}
    each = concurrent.futures.ThreadPoolExecutor(50).map if case["at_once"] else map
    return {"id": case["id"], "session_id": gate.session_id, "results": list(each(lambda c: call(gate, c), case["calls"]))}
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    for line in sys.stdin:
        pool.submit(lambda case: print(json.dumps(run(case)) + "\n", end="", flush=True), json.loads(line))
