"""Inputs that JSON cannot express: a case names them, and each language has its own version."""
import datetime
import decimal
import types


class Hostile(dict):
    def items(self):
        raise RuntimeError("looked at")

    keys = values = __iter__ = __len__ = __getitem__ = __contains__ = __repr__ = items


CYCLE = []
CYCLE.append(CYCLE)
KINDS = {
    "big_float": 2.0**53,
    "bytes": b"a",
    "cycle": CYCLE,
    "date": datetime.datetime.now(),
    "exact": decimal.Decimal(1),
    "function": len,
    "gap": [1, ..., 3],
    "hostile": Hostile(a=1),
    "infinity": float("inf"),
    "instance": object(),
    "map": types.MappingProxyType({}),
    "nan": float("nan"),
    "odd_name": {("a",): 1},
    "set": {1},
    "surrogate": "a\ud800",
    "to_json": {"toJSON": len},
}


def nested(depth):
    return {} if depth == 0 else {"a": nested(depth - 1)}


def built(value):
    """Returns the value of a case, with the named inputs filled in."""
    if isinstance(value, list):
        return [built(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$text" in value:
        return value["$text"][0] * value["$text"][1]
    if "$nested" in value:
        return nested(value["$nested"])
    if "$many" in value:
        return [[[[[0] * 10] * 10] * 10] * 10] * value["$many"]
    if "$build" in value:
        return KINDS[value["$build"]]
    return {name: built(item) for name, item in value.items() if item != {"$build": "absent"}}
