"""Prints what parks in graphs of LangGraph, and what runs. PYTHONPATH has the folders of the adapters and of the clients."""

import asyncio
import json
from types import SimpleNamespace

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt
from svc_gate import Verdict
from svc_gate_langchain import guarded

CONFIG = {"configurable": {"thread_id": "1"}}


class World:
    """Payments above 50 need a person."""

    def __init__(self):
        self.ran, self.is_approved = [], False

        @tool
        async def pay(amount: int) -> str:
            """Pays."""
            return "paid %s" % self.ran.append(amount)

        @tool
        def ask(amount: int) -> str:
            """Asks and pays."""
            return "heard %s" % interrupt("sure?")

        self.pay, self.ask = pay, ask

    async def check(self, name, given, facts, approval):
        verdict = "ALLOW" if given["amount"] <= 50 or self.is_approved else "ESCALATE"
        return Verdict(verdict, verdict, "enforce")

    def guard(self, *tools):
        return guarded(tools, SimpleNamespace(check=self.check), on_escalate="park")


def graph_of(tools, calls, is_sent):
    """Runs the calls in one task, or sends each to a task of its own."""
    graph = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge("tools", END)
    return graph.add_conditional_edges(START, lambda _: [Send("tools", [call]) for call in calls] if is_sent else "tools", ["tools"])


def calls_of(*calls):
    named = enumerate(calls)
    return [{"name": name, "args": {"amount": amount}, "id": "call-%d" % n, "type": "tool_call"} for n, (name, amount) in named]


def given(calls):
    return {"messages": [AIMessage("", tool_calls=calls)]}


async def answered(graph):
    """Goes on with each interrupt: the adapter's gets its own value, and a tool's gets a yes."""
    found = [each for task in (await graph.aget_state(CONFIG)).tasks for each in task.interrupts]
    if found:
        await graph.ainvoke(Command(resume={each.id: each.value if isinstance(each.value, dict) else "yes" for each in found}), CONFIG)
    return [each.value["tool"] if isinstance(each.value, dict) else each.value for each in found]


async def batch(is_sent):
    world, calls = World(), calls_of(("pay", 5), ("pay", 60), ("pay", 6), ("pay", 7))
    graph = graph_of(world.guard(world.pay), calls, is_sent).compile(checkpointer=InMemorySaver())
    await graph.ainvoke(given(calls), CONFIG)
    world.is_approved = True
    return {"parked": await answered(graph), "ran": sorted(world.ran)}


async def question():
    world, calls = World(), calls_of(("ask", 60))
    graph = graph_of(world.guard(world.ask), calls, True).compile(checkpointer=InMemorySaver())
    await graph.ainvoke(given(calls), CONFIG)
    world.is_approved = True
    parked = [*await answered(graph), *await answered(graph)]
    return {"parked": parked, "heard": (await graph.aget_state(CONFIG)).values["messages"][-1].text}


async def sub_agent(is_sent):
    world, inner = World(), calls_of(("pay", 60))
    worker = graph_of(world.guard(world.pay), inner, True).compile()

    @tool
    async def work(amount: int) -> str:
        """Works."""
        await worker.ainvoke(given(inner))
        return "worked"

    calls = calls_of(("work", 1), ("pay", 5))
    graph = graph_of(world.guard(work, world.pay), calls, is_sent).compile(checkpointer=InMemorySaver())
    await graph.ainvoke(given(calls), CONFIG)
    world.is_approved = True
    return {"parked": await answered(graph), "ran": sorted(world.ran)}


async def main():
    return {
        "sent": await batch(True), "together": await batch(False), "question": await question(), "subAgent": await sub_agent(True),
        "subAgentBesideOthers": await sub_agent(False),
    }


print(json.dumps(asyncio.run(main())))
