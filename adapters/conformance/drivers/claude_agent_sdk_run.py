"""One run of the Claude Agent SDK for Python under the adapter. The plan comes on stdin; the last line says how it ended."""

import asyncio
import dataclasses
import json
import sys

plan = json.load(sys.stdin)
sys.path[:0] = plan["folders"]
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, query  # noqa: E402 -- the path is set above
from svc_gate_async import AsyncGate  # noqa: E402 -- the path is set above
from svc_gate_claude_agent_sdk import guarded  # noqa: E402 -- the path is set above

case = plan["case"]
hook, variant = case.get("hook", "ours"), case.get("variant", "")
command, *arguments = plan["payServer"]


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


failing = {
    "crashes": crashes, "hangs": hangs, "says-nothing": saying(None), "says-text": saying("ALLOW"),
    "says-odd-json": saying({"hookSpecificOutput": {"verdict": "ALLOW"}}),
}


def no_facts(call):
    raise RuntimeError("no facts")


def options(gate):
    without_grant = variant == "fail-open-without-grant"
    own = ClaudeAgentOptions(
        cwd=plan["project"], env=plan["env"],
        mcp_servers={"kit": {"type": "stdio", "command": command, "args": arguments, "alwaysLoad": True}},
        hooks={"PreToolUse": [HookMatcher(hooks=[rewrites])]} if variant == "second-hook" else None,
        tools=["Bash", "WebSearch"] if variant == "provider-tool" else None,
        **({"resume": plan["session"]} if plan["isResumed"] else {"session_id": plan["session"]}),
        **({"permission_mode": "dontAsk", "allowed_tools": ["mcp__kit__pay"]} if without_grant else {}),
    )
    facts = {"facts": no_facts} if variant == "facts-throw" else {}
    return guarded(own, gate, on_escalate=case.get("onEscalate", "refuse"), wait=20, grant=not without_grant, **facts)


async def main():
    fail_open = variant.startswith("fail-open")
    seconds = plan["secondsForHook"] / 2
    async with AsyncGate(
        plan["gate"], api_key=plan["key"], session_id=plan["session"], timeout=seconds, retries=0, fail_open=fail_open,
    ) as gate:
        try:
            guarding = options(gate)
        except ValueError as error:
            return print(error, "\nended not-started")
        hooks = dict(guarding.hooks)
        if hook == "absent":
            del hooks["PreToolUse"]
        elif hook == "misspelt":
            hooks = {"PreTooluse": hooks["PreToolUse"]}
        elif hook != "ours":
            hooks["PreToolUse"] = [dataclasses.replace(hooks["PreToolUse"][0], hooks=[failing[hook]], timeout=1)]
        found = []
        async for message in query(prompt=plan["prompt"], options=dataclasses.replace(guarding, hooks=hooks)):
            if isinstance(message, ResultMessage):
                found.append(message)
        print(found)
        is_parked = bool(found) and found[-1].stop_reason == "tool_deferred"
        is_done = any(each.result == "The work is done." for each in found)
        print("ended", "parked" if is_parked else "done" if is_done else "lost")


asyncio.run(main())
