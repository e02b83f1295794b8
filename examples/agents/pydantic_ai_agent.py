"""An agent of Pydantic AI that pays. A payment that a person must decide parks the run, and the run goes on later.

    pip install "pydantic-ai-slim[openai]"
    SVC_KEY=... OPENAI_API_KEY=... python pydantic_ai_agent.py "Pay 75 USD to the printer"
    SVC_KEY=... OPENAI_API_KEY=... python pydantic_ai_agent.py --resume

SVC_URL is the gate's address, and contract.yaml has its rules. run.json keeps a parked run.
"""

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "adapters")]
from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter
from svc_gate_async import AsyncGate
from svc_gate_pydantic_ai import GateCapability

FILE = Path("run.json")
requests_type = TypeAdapter(DeferredToolRequests)


async def pay(amount: float, to: str) -> str:
    """Pays an amount of USD to somebody."""
    print(f"paid {amount:g} USD to {to}")
    return "paid"


async def main(words):
    is_resumed = words == "--resume"
    kept = json.loads(FILE.read_text()) if is_resumed else {"session": str(uuid.uuid4())}
    url = os.environ.get("SVC_URL", "http://127.0.0.1:8787")
    async with AsyncGate(url, api_key=os.environ.get("SVC_KEY"), session_id=kept["session"]) as gate:
        agent = Agent(
            "openai-responses:" + os.environ.get("OPENAI_MODEL", "gpt-5"), tools=[pay], output_type=[str, DeferredToolRequests],
            capabilities=[GateCapability(gate, on_escalate="park")],
        )
        result = await (agent.run(**resumed(kept)) if is_resumed else agent.run(words))
    if isinstance(result.output, DeferredToolRequests):
        requests = requests_type.dump_python(result.output, mode="json")
        FILE.write_text(json.dumps({**kept, "requests": requests, "messages": json.loads(result.all_messages_json())}))
        print("A person decides. Approve the call at the gate, then run: python pydantic_ai_agent.py --resume")
    else:
        FILE.unlink(missing_ok=True)
        print(result.output)


def resumed(kept):
    """This only starts the calls again: the gate is asked, and the person's decision there counts."""
    requests = requests_type.validate_python(kept["requests"])
    messages = ModelMessagesTypeAdapter.validate_python(kept["messages"])
    return {"message_history": messages, "deferred_tool_results": requests.build_results(approve_all=True)}


words = " ".join(sys.argv[1:])
if not words or (words == "--resume" and not FILE.exists()):
    sys.exit('give the agent a task, such as "Pay 75 USD to the printer", or --resume after it was parked')
asyncio.run(main(words))
