"""An agent's loop with one check, at the one place where tools run. It is offline: the model is a script.

    npm start                              # in another terminal; SVC_MODE=enforce npm start refuses for real
    python3 examples/agent_loop.py         # or with the gate's address as an argument
"""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "clients" / "python"))
from svc_gate import SvcGate, SvcGateError

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"
LOOK_ALIKE = PAYEE[:-1] + "8"

wallet = {"spent": 150}
parked = []


def pay(amount, payee_address, **_):
    wallet["spent"] += amount
    return f"paid {amount} USD to {payee_address}"


def delete(path):
    return f"deleted {path}"


TOOLS = {"payment.send": pay, "files.delete": delete}


def facts():
    """The platform's facts, from its own books: no part of them comes from the model."""
    return {
        "monthly_spend_usd": wallet["spent"],
        "approved_payees": [PAYEE],
        "historical_price_usd": 10,
        "now_epoch": int(time.time()),
    }


def scripted_model():
    """Replaces a model: proposes one call after another, and receives each result."""
    offer = {"currency": "USD", "merchant": "maps", "resource": "map-tiles", "offer_expires_epoch": int(time.time()) + 600}
    yield "payment.send", {"amount": 10, "payee_address": PAYEE, **offer}
    yield "payment.send", {"amount": 20, "payee_address": PAYEE, **offer}
    result = yield "payment.send", {"amount": 10, "payee_address": LOOK_ALIKE, **offer}
    if "not registered" in result:  # it can read the reason, and correct its request
        yield "payment.send", {"amount": 12, "payee_address": PAYEE, **offer}
    yield "files.delete", {"path": "reports"}


def run_tool(gate, name, arguments):
    """The one place where tools run: nothing reaches a tool without an ALLOW."""
    verdict = gate.check(name, arguments, platform_state=facts())
    if not verdict.unreached:
        print(f"  {verdict.verdict}: {verdict.reason}")
    if verdict.receipt:
        print(f"  receipt {verdict.receipt['seq']}, {verdict.receipt['hash'][:12]}")
    if verdict.allowed:
        return TOOLS[name](**arguments)
    if verdict.escalated:
        parked.append((name, verdict.reason))
        return f"waits for a person: {verdict.reason}"
    if verdict.unreached:  # no verdict: tell operations; the model must not read about the infrastructure
        sys.exit(f"the run was stopped, because the gate gave no verdict. For operations: {verdict.reason}")
    return f"refused: {verdict.reason}"


def api_key():
    """The key that the gate knows: SVC_API_KEY if the gate was started with it, else the one that the gate made."""
    file = Path(os.environ.get("SVC_DATA_DIR", ROOT / "data"), "first-key")
    if not os.environ.get("SVC_API_KEY") and not file.exists():
        sys.exit(f"There is no API key: SVC_API_KEY is not set, and {file} does not exist.\n{KEY_ADVICE}")
    return os.environ.get("SVC_API_KEY") or file.read_text().strip()


KEY_ADVICE = (
    "If the gate was started with SVC_API_KEY, set the same value here. "
    "If not, unset SVC_API_KEY here, and start the gate with `npm start`: it writes its key to data/first-key."
)


def main():
    gate = SvcGate(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8787", api_key=api_key())  # one session: this run
    print(f"mode: {gate.health()['mode']}")
    gate.rules()  # a wrong key fails here, before any tool call
    model, result = scripted_model(), None
    while True:
        try:
            name, arguments = model.send(result)
        except StopIteration:
            break
        print(f"\n{name} {arguments.get('amount', arguments.get('path'))}")
        result = run_tool(gate, name, arguments)
        print(f"  to the model: {result}")
    print(f"\nfor a person: {len(parked)}")
    for name, reason in parked:
        print(f"  {name}: {reason}")
    print(f"ledger: {'whole' if gate.verify()['ok'] else 'BROKEN'}")


try:
    main()
except SvcGateError as error:
    sys.exit(f"{error}\n{KEY_ADVICE if error.status in (401, 403) else 'Is a gate running? Start one with `npm start`.'}")
