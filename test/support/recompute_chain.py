"""Recomputes the worked rows of spec/vectors/chains from their inputs, with the standard library alone."""

import base64
import hashlib
import hmac
import json
import sys


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: object) -> str:
    """RFC 8785 for strings, null and integers: Python escapes and sorts them alike when the names are ASCII."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def decoded(part: str) -> str:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("utf-8")


def problems(vectors: dict) -> list[str]:
    found = []
    prev = "0" * 64
    secret = vectors["counter_secret"].encode()
    for number, row in enumerate(vectors["rows"], start=1):
        given = row["given"]
        effects = {}
        for move in given["moves"]:
            key = hmac.new(secret, move["key"].encode(), hashlib.sha256).hexdigest()
            effects[f"{move['counter']} {key}"] = {"amount": move["amount"], "counter": move["counter"], "key": key}
        values = {
            "call": canonical(
                {"session_id": given["session_id"], "tool_name": given["tool_name"], **given.get("rare", {})}
            ),
            "input": given["input"],
            "platform": given["platform"] or "null",
            "reason": canonical(given["reason"]),
            "outcome": canonical(given["outcome"]),
            "effects": canonical([effects[name] for name in sorted(effects)]),
        }
        for part, (name, value) in zip(row["evidence"], values.items(), strict=True):
            salt = json.loads(decoded(part))[0]
            if decoded(part) != f'["{salt}","{name}",{value}]' or len(salt) != 22:
                found.append(f"row {number}: the disclosure of {name}")
        digests = [hashlib.sha256(part.encode("ascii")).digest() for part in row["evidence"]]
        texts = sorted(base64.urlsafe_b64encode(digest).decode().rstrip("=") for digest in digests)
        leaf = canonical(
            {
                "answered": given["answered"],
                "at": given["at"],
                "contract": "sha256:" + sha256(vectors["contracts"][given["contract"]].encode()),
                "engine": vectors["engine"],
                "evidence": sha256("".join(texts).encode()),
                "key": given["key"],
                "kind": "check",
                "log": vectors["log"],
                "mode": given["mode"],
                "prev": prev,
                "rule": given["rule"],
                "seq": number,
                "tool": given["tool_name"] if given["routed"] else None,
                "v": 1,
                "verdict": given["verdict"],
            }
        )
        prev = sha256(b"\0" + leaf.encode())
        if leaf != row["leaf"]:
            found.append(f"row {number}: the leaf is {leaf}")
        if prev != row["hash"]:
            found.append(f"row {number}: the hash is {prev}")
    return found


if __name__ == "__main__":
    if sys.argv[1] == "-":
        report = problems(json.load(sys.stdin))
    else:
        with open(sys.argv[1], encoding="utf-8") as file:
            report = problems(json.load(file))
    print("\n".join(report) or "all rows recomputed")
    sys.exit(1 if report else 0)
