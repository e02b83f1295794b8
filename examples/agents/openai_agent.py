"""An agent of the OpenAI Agents SDK that pays. A payment that a person must decide parks the run, and the run goes on later.

    pip install openai-agents
    SVC_KEY=... OPENAI_API_KEY=... python openai_agent.py "Pay 75 USD to the printer"
    SVC_KEY=... OPENAI_API_KEY=... python openai_agent.py --resume

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
from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from svc_gate_async import AsyncGate
from svc_gate_openai_agents import guarded

FILE = Path("run.json")
set_tracing_disabled(True)


@function_tool
async def pay(amount: float, to: str) -> str:
    """Pays an amount of USD to somebody."""
    print(f"paid {amount:g} USD to {to}")
    return "paid"


async def main(words):
    is_resumed = words == "--resume"
    kept = json.loads(FILE.read_text()) if is_resumed else {"session": str(uuid.uuid4())}
    url = os.environ.get("SVC_URL", "http://127.0.0.1:8787")
    async with AsyncGate(url, api_key=os.environ.get("SVC_KEY"), session_id=kept["session"]) as gate:
        agent = guarded(Agent(name="payer", tools=[pay], model=os.environ.get("OPENAI_MODEL", "gpt-5")), gate, on_escalate="park")
        result = await Runner.run(agent, await resumed(agent, kept["state"]) if is_resumed else words)
    if result.interruptions:
        FILE.write_text(json.dumps({**kept, "state": result.to_state().to_json()}))
        print("A person decides. Approve the call at the gate, then run: python openai_agent.py --resume")
    else:
        FILE.unlink(missing_ok=True)
        print(result.final_output)


async def resumed(agent, kept):
    """This only starts the calls again: the gate is asked, and the person's decision there counts."""
    state = await RunState.from_json(agent, kept)
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return state


words = " ".join(sys.argv[1:])
if not words or (words == "--resume" and not FILE.exists()):
    sys.exit('give the agent a task, such as "Pay 75 USD to the printer", or --resume after it was parked')
asyncio.run(main(words))
