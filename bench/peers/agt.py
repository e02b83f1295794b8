"""The Agent Governance Toolkit's own policy server, with the toolkit's own audit log written to a file for each decision.

argv: folder of policies, port, audit file. The server has no audit log of its own and its conditions compare a fact with a
constant, so both are joined on here, where the server asks its engine: `facts` works out what the rules compare.
"""

from __future__ import annotations

import logging
import os
import sys

policies, port, audit_file = sys.argv[1:]
os.environ["AGENTMESH_POLICY_DIR"] = policies

import uvicorn  # noqa: E402 -- the folder above is read on import
from agentmesh.governance.audit import AuditLog  # noqa: E402 -- as above
from agentmesh.governance.audit_backends import FileAuditSink  # noqa: E402 -- as above
from agentmesh.server import policy_server  # noqa: E402 -- as above


class AuditedEngine:
    """The engine that the server loaded; each decision is in the audit log before the answer."""

    def __init__(self, engine: policy_server.PolicyEngine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    def evaluate(self, agent_did: str, context: dict) -> policy_server.PolicyDecision:
        decision = self._engine.evaluate(agent_did=agent_did, context={**context, **facts(context)})
        self._audit.log(
            "policy_decision",
            agent_did,
            context["action"],
            data=context,
            outcome="success" if decision.allowed else "denied",
            policy_decision=decision.action,
        )
        return decision


def facts(context: dict) -> dict:
    given, state = context["tool_input"], context.get("platform_state")
    if context["action"] != "payment.send":
        return {"tool_input": given}
    if state is None:
        return {"payment": {"without_snapshot": True}}
    usual = state.get("historical_price_usd")
    return {
        "payment": {
            "seconds_left": given["offer_expires_epoch"] - state["now_epoch"],
            "payee_unregistered": given["payee_address"] not in state["approved_payees"],
            "amount_usd": given["amount"],
            "after_usd": state["monthly_spend_usd"] + given["amount"],
            "price_ratio": given["amount"] / usual if usual else 0,
        }
    }


async def audited() -> None:
    audit = AuditLog(sink=FileAuditSink(audit_file, b"a key of this benchmark alone"))
    policy_server._engine = AuditedEngine(policy_server._engine, audit)


policy_server.app.router.on_startup.append(audited)
logging.disable(logging.WARNING)
uvicorn.run(policy_server.app, host="127.0.0.1", port=int(port), log_level="error", access_log=False)
