"""An agent of LangChain that pays. A payment that a person must decide parks the run, and the run goes on later.

    pip install langchain langchain-openai langgraph-checkpoint-sqlite
    SVC_KEY=... OPENAI_API_KEY=... python langchain_agent.py "Pay 75 USD to the printer"
    SVC_KEY=... OPENAI_API_KEY=... python langchain_agent.py --resume

SVC_URL is the gate's address, and contract.yaml has its rules. run.json keeps the session, run.sqlite the parked run.
"""

import json
import os
import sqlite3
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "adapters")]
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from svc_gate import SvcGate
from svc_gate_langchain import guarded

FILE = Path("run.json")


@tool
def pay(amount: float, to: str) -> str:
    """Pays an amount of USD to somebody."""
    print(f"paid {amount:g} USD to {to}")
    return "paid"


def main(words):
    session = json.loads(FILE.read_text())["session"] if words == "--resume" else str(uuid.uuid4())
    gate = SvcGate(os.environ.get("SVC_URL", "http://127.0.0.1:8787"), api_key=os.environ.get("SVC_KEY"), session_id=session)
    saver = SqliteSaver(sqlite3.connect("run.sqlite", check_same_thread=False))
    tools = guarded([pay], gate, on_escalate="park")
    agent = create_agent("openai:" + os.environ.get("OPENAI_MODEL", "gpt-5"), tools=tools, checkpointer=saver)
    config = {"configurable": {"thread_id": session}}
    asked = resumed(agent, config) if words == "--resume" else {"messages": [{"role": "user", "content": words}]}
    result = agent.invoke(asked, config)
    if waiting(agent, config):
        FILE.write_text(json.dumps({"session": session}))
        print("A person decides. Approve the call at the gate, then run: python langchain_agent.py --resume")
    else:
        FILE.unlink(missing_ok=True)
        print(result["messages"][-1].text)


def resumed(agent, config):
    """This only starts the calls again: the gate is asked, and the person's decision there counts."""
    return Command(resume={each.id: each.value for each in waiting(agent, config)})


def waiting(agent, config):
    return [each for task in agent.get_state(config).tasks for each in task.interrupts]


words = " ".join(sys.argv[1:])
if not words or (words == "--resume" and not FILE.exists()):
    sys.exit('give the agent a task, such as "Pay 75 USD to the printer", or --resume after it was parked')
main(words)
