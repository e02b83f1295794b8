"""A payment that a person decides. The tool runs only after the gate allows the same call again, on fresh facts.

    SVC_MODE=enforce npm start                # in another terminal
    python3 examples/approved_payment.py      # or with the gate's address as an argument

docs/guides/approvals.md shows how a person approves or denies the call in a third terminal.
"""

import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "clients" / "python"))
from svc_gate import SvcGate

PAYEE = "0x52908400098527886E0F7030069857D2E4169EE7"
wallet = {"spent": 150}


def facts():
    """The platform's facts at this moment, from its own books."""
    return {
        "monthly_spend_usd": wallet["spent"],
        "approved_payees": [PAYEE],
        "historical_price_usd": 10,
        "now_epoch": int(time.time()),
    }


def pay(amount, payee_address, **_):
    wallet["spent"] += amount
    return f"paid {amount} USD to {payee_address}"


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8787"
    key = os.environ.get("SVC_API_KEY") or (ROOT / "data" / "first-key").read_text().strip()
    gate = SvcGate(address, api_key=key)
    offer = {"currency": "USD", "merchant": "maps", "resource": "map-tiles", "offer_expires_epoch": int(time.time()) + 3600}
    arguments = {"amount": 20, "payee_address": PAYEE, **offer}
    verdict = gate.check("payment.send", arguments, platform_state=facts())
    print(f"{verdict.verdict}: {verdict.reason}", flush=True)
    if verdict.escalated:
        verdict = gate.settle(verdict, "payment.send", arguments, facts, timeout=900)
        print(f"{verdict.verdict}: {verdict.reason}")
    print(pay(**arguments) if verdict.allowed else "nothing was paid")


if __name__ == "__main__":
    main()
