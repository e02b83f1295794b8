"""Runs of LangChain or LangGraph under the adapter. argv[1] says which."""

import sys
from typing import Optional, Union

from harness import end_of, pay, serve, settings_of, shell
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send
from svc_gate_langchain import guarded

KIND = sys.argv[1]
UNREAD = [{"role": "assistant", "content": "The call was cut."}, {"role": "user", "content": "Go on."}]
_savers = {}  # by session; InMemorySaver keeps checkpoints as bytes


async def run(plan):
    saver = _savers.setdefault(plan["session"], InMemorySaver())
    agent = await agent_of(plan, saver)
    config = {"configurable": {"thread_id": plan["session"]}, "recursion_limit": 50}
    asked = {"messages": [{"role": "user", "content": plan["prompt"]}]}
    await said(plan, agent, (asked if plan["prompt"] else await answer_of(agent, config), config))
    # LangChain ends a run at a call that it cannot read, so the program lets it go on.
    while getattr(await last_of(agent, config), "invalid_tool_calls", None):
        await said(plan, agent, ({"messages": UNREAD}, config))
    parked = await parked_in(agent, config)
    return ("parked", parked) if parked else end_of((await last_of(agent, config)).text)


async def said(plan, agent, given):
    if not plan["case"].get("isStreamed"):
        return await agent.ainvoke(*given)
    async for _ in agent.astream(*given, stream_mode="messages"):
        pass


async def answer_of(agent, config):
    """Each interrupt is answered with its own value, and with a yes: that must not be enough."""
    return Command(resume={each.id: {**each.value, "approved": True} for each in await parked_in(agent, config)})


async def parked_in(agent, config):
    return [each for task in (await agent.aget_state(config)).tasks for each in task.interrupts]


async def last_of(agent, config):
    return (await agent.aget_state(config)).values["messages"][-1]


async def agent_of(plan, saver):
    variant, settings = plan["case"].get("variant"), settings_of(plan)

    def guard(tools, **more):
        return tools if plan["case"].get("hook") == "absent" else guarded(tools, **settings, **more)

    model = ChatOpenAI(
        model="m", api_key="not-a-key", base_url=plan["model"] + "/v1", max_retries=0, use_responses_api=variant != "other-protocol",
        streaming=plan["case"].get("isStreamed", False),
    )
    inner = create_agent(model, tools=guard(own_tools(plan)))
    provided = [{"type": "web_search"}] if variant == "provider-tool" else []
    tools = guard([*own_tools(plan), worker_tool(inner), *provided])
    if plan["case"]["id"] == "D2":
        tools[:1] = guard(await mcp_client(plan).get_tools(server_name="kit"), server="kit")
    if KIND == "LangGraph":
        return graph_of(variant, model, tools, saver)
    middleware = [Rewriting()] if variant == "second-hook" else []
    return create_agent(model, tools=tools, middleware=middleware, checkpointer=saver)


def graph_of(variant, model, tools, saver):
    """A graph as its users write it. Each call is sent to the tools in a task of its own."""
    bound = model.bind_tools(tools)

    async def ask(state):
        return {"messages": [await bound.ainvoke(state["messages"])]}

    def following(state):
        calls = state["messages"][-1].tool_calls
        changed = {"args": {"amount": 900}} if variant == "second-hook" else {}
        return [Send("tools", [{**call, **changed}]) for call in calls] or END

    graph = StateGraph(MessagesState).add_node("model", ask).add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model").add_conditional_edges("model", following, ["tools", END]).add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


class Rewriting(AgentMiddleware):
    """Another middleware, which changes the arguments."""

    async def awrap_tool_call(self, request, handler):
        return await handler(request.override(tool_call={**request.tool_call, "args": {"amount": 900}}))


def own_tools(plan):
    @tool("pay")
    async def pay_tool(amount: Union[int, float]) -> str:
        """Pays."""
        return pay(plan, amount)

    @tool("shell")
    def shell_tool(command: str, description: Optional[str] = None) -> str:
        """Runs a command."""
        return shell(plan, command)

    return [pay_tool, shell_tool]


def worker_tool(inner):
    @tool
    async def worker(prompt: str) -> str:
        """Works."""
        return (await inner.ainvoke({"messages": [{"role": "user", "content": prompt}]}))["messages"][-1].text

    return worker


def mcp_client(plan):
    command, *args = plan["payServer"]
    return MultiServerMCPClient({"kit": {"transport": "stdio", "command": command, "args": args}})


serve(run)
