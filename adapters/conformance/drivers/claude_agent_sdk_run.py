"""Runs of the Claude Agent SDK for Python under the adapter."""

import asyncio
import dataclasses
import os

from harness import END, serve, settings_of
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, query
from svc_gate_claude_agent_sdk import guarded


async def crashes(found, tool_use_id, context):
    raise RuntimeError("crashed")


async def hangs(found, tool_use_id, context):
    await asyncio.sleep(20)


async def rewrites(found, tool_use_id, context):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"amount": 900}}}


def saying(value):
    async def says(found, tool_use_id, context):
        return value
    return says


# Hooks that fail, instead of the adapter's.
FAILING = {
    "crashes": crashes, "hangs": hangs, "says-nothing": saying(None), "says-text": saying("ALLOW"),
    "says-odd-json": saying({"hookSpecificOutput": {"verdict": "ALLOW"}}),
}


async def run(plan):
    hook = plan["case"].get("hook", "ours")
    try:
        guarding = options(plan)
    except ValueError as error:
        return "not-started", error
    hooks = dict(guarding.hooks)
    if hook == "absent":
        del hooks["PreToolUse"]
    elif hook == "misspelt":
        hooks = {"PreTooluse": hooks["PreToolUse"]}
    elif hook != "ours":
        # short wait: one of these hooks never ends
        hooks["PreToolUse"] = [dataclasses.replace(hooks["PreToolUse"][0], hooks=[FAILING[hook]], timeout=1)]
    found = []
    async for message in query(prompt=plan["prompt"], options=dataclasses.replace(guarding, hooks=hooks)):
        if isinstance(message, ResultMessage):
            found.append(message)
    return ("done" if any(each.result == END for each in found) else "lost", found)


def options(plan):
    variant = plan["case"].get("variant") or ""
    command, *arguments = plan["payServer"]
    without_grant = variant == "fail-open-without-grant"
    own = ClaudeAgentOptions(
        cwd=os.path.join(plan["folder"], "project"),
        env=plan["env"],
        mcp_servers={"kit": {"type": "stdio", "command": command, "args": arguments, "alwaysLoad": True}},
        hooks={"PreToolUse": [HookMatcher(hooks=[rewrites])]} if variant == "second-hook" else None,
        tools=["Bash", "WebSearch"] if variant == "provider-tool" else None,
        **({"resume": plan["session"]} if plan["isResumed"] else {"session_id": plan["session"]}),
        **({"permission_mode": "dontAsk", "allowed_tools": ["mcp__kit__pay"]} if without_grant else {}),
    )
    settings = settings_of({**plan, "case": {**plan["case"], "hook": "ours"}})
    return guarded(own, grant=not without_grant, **settings)


serve(run)
