"""svc-gate for the Claude Agent SDK: the gate decides each tool call of an agent.

    async with AsyncGate("https://gate.example", api_key=key, session_id=run_id) as gate:
        async for message in query(prompt=prompt, options=guarded(options, gate, facts)): ...

Grant mode: the host starts with nothing allowed, and only the gate's ALLOW lets a call run. So a hook that is missing or
fails denies the call, by the host's own rules. One AsyncGate is one run: sub-agents of the run use it too, so they count in
the same session. Names of tools and rules for every adapter: adapters/README.md.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import re
from typing import Any, Callable, Literal, Optional

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from svc_gate_guard import Guard, Judgement, gate_name
from svc_gate_guard import GuardedCall as _Call

__all__ = ["GuardedCall", "guarded"]

_KEPT_MAX = 1000  # verdicts of calls that have not ended yet: more than a host runs at once
_PROVIDER_TOOLS = ["WebSearch"]  # the model's provider runs them, wholly or in part: the gate would not see what they do
# Where only the user, the machine's administrator or this program names servers. A project's file cannot.
_OWN_SOURCES = ("claudeai", "dynamic", "enterprise", "local", "managed", "sdk", "user")
_MODES = (None, "dontAsk")
_FLAGS = ("debug", "debug-to-stderr", "replay-user-messages", "verbose")  # these change nothing about tools
_log = logging.getLogger("svc_gate")


@dataclasses.dataclass(frozen=True)
class GuardedCall(_Call):
    """A call as the gate is asked about it.

    ``name`` is ``Bash`` or ``server.tool``, ``host_name`` the host's name for it. ``agent_id`` is None outside a sub-agent.
    ``tool_use_id`` is an id from the model: two calls may have the same id.
    """

    host_name: str = ""
    agent_id: Optional[str] = None
    tool_use_id: str = ""


def guarded(
    options: ClaudeAgentOptions, gate: Any, facts: Optional[Callable[[GuardedCall], Any]] = None,
    on_escalate: Literal["refuse", "wait"] = "refuse", wait: float = 900.0, grant: bool = True,
    log: Callable[[str], Any] = _log.error,
) -> ClaudeAgentOptions:
    """Returns options under which the gate decides each tool call. The given options stay as they are.

    ``gate`` is an AsyncGate of svc_gate_async, one for each run. ``facts`` returns the platform's facts about a call, or is an
    async function; if it raises, the call is refused. If a person must decide, ``on_escalate`` refuses the call and says so to the
    model, or waits for up to ``wait`` seconds. With ``grant=False`` the host's own permissions stay, and the gate can only deny:
    use it while the gate observes. ``log`` takes sentences for operators, which the model must not read.

    It sets hooks, disallowed_tools and, with ``grant``, permission_mode and setting_sources (unless you set other sources: their
    files can allow tools and switch hooks off). Raises ValueError for options that would let a call run without the gate, or
    change a judged call.
    """
    # Not park: a run that resumes can run its parked call before the SDK has registered the hook.
    guard = Guard(gate, facts, on_escalate, wait, log, grant=grant)
    problems = (_grants_in(options) if grant else []) + _blind_spots_in(options)
    if problems:
        raise ValueError("svc-gate cannot guard these options: " + "; ".join(problems))
    before, after = _hooks_of(guard, grant)
    timeout = math.ceil(wait if on_escalate == "wait" else 0) + 120  # seconds, over all time-outs of the client
    hooks = dict(options.hooks or {})
    hooks["PreToolUse"] = [HookMatcher(hooks=[before], timeout=timeout, on_failure="block")]
    for event in ("PostToolUse", "PostToolUseFailure"):
        hooks[event] = [*hooks.get(event, []), HookMatcher(hooks=[after])]
    changes: dict[str, Any] = {"hooks": hooks, "disallowed_tools": [*options.disallowed_tools, *_PROVIDER_TOOLS]}
    if grant:
        changes.update(permission_mode="dontAsk", setting_sources=options.setting_sources or [])
    return dataclasses.replace(options, **changes)


def _hooks_of(guard: Guard, grant: bool) -> tuple[Any, Any]:
    """The callbacks share the judgements of calls that run."""
    running: dict[str, Judgement] = {}

    async def before(found: dict[str, Any], tool_use_id: Optional[str], context: Any) -> dict[str, Any]:
        call = _call_of(found)
        if call is None:
            return _decision("deny", "Svc: the host does not say which MCP server has the tool; the action is blocked.")
        judgement = await guard.judge(call)
        if judgement.runs:
            running[call.tool_use_id] = judgement
            if len(running) > _KEPT_MAX:
                running.pop(next(iter(running)))
        return _answer_to(judgement, grant)

    async def after(found: dict[str, Any], tool_use_id: Optional[str], context: Any) -> dict[str, Any]:
        judgement = running.pop(found["tool_use_id"], None)
        if judgement is not None:  # after an error, the tool may have started
            guard.report(judgement, "done" if found["hook_event_name"] == "PostToolUse" else "unknown")
        return {}

    return before, after


def _answer_to(judgement: Judgement, grant: bool) -> dict[str, Any]:
    """Without ``grant``, and without an enforced ALLOW, the adapter has no decision: the host's own permissions decide."""
    if not judgement.runs:
        return _decision("deny", judgement.reason)
    return _decision("allow", judgement.reason) if grant and judgement.grants else {}


def _decision(decision: str, reason: str) -> dict[str, Any]:
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": output}


def _call_of(found: dict[str, Any]) -> Optional[GuardedCall]:
    name = _name_of(found["tool_name"], found.get("mcp_server"))
    if name is None:
        return None
    more = {"host_name": found["tool_name"], "agent_id": found.get("agent_id"), "tool_use_id": found["tool_use_id"]}
    return GuardedCall(name, found["tool_input"], **more)


def _name_of(name: str, server: Any) -> Optional[str]:
    """A built-in tool keeps its name, a tool of an MCP server is ``server.tool``: adapters/README.md has the rules."""
    is_bare = not name.startswith("mcp__")  # also a tool of an MCP server, with CLAUDE_AGENT_SDK_MCP_NO_PREFIX
    if is_bare and server is None:
        return gate_name(name)
    owner = server.get("name") if isinstance(server, dict) else None
    if not isinstance(owner, str):
        return None
    prefix = "" if is_bare else "mcp__%s__" % re.sub("[^a-zA-Z0-9_-]", "_", owner)  # as the host writes it
    if not name.startswith(prefix):
        return None
    full = gate_name(name[len(prefix):], owner)
    return full if full is None or server.get("source") in _OWN_SOURCES else "project:" + full


def _grants_in(options: ClaudeAgentOptions) -> list[str]:
    """Settings that would let a call run without a grant."""
    settings = _settings_in(options)
    own = settings or {}
    permissions, sandboxes = own.get("permissions") or {}, [options.sandbox, own.get("sandbox")]
    asks = options.can_use_tool is not None or options.permission_prompt_tool_name is not None
    modes = [agent.permissionMode for agent in (options.agents or {}).values()]
    found = [
        (options.permission_mode not in _MODES, "permission_mode must be dontAsk or absent"),
        (options.allowed_tools, "allowed_tools must be empty, because only the gate allows"),
        (options.skills, "skills must be absent, because the SDK allows the tool Skill for them"),
        (asks, "can_use_tool and permission_prompt_tool_name must be absent"),
        (options.settings and settings is None, "settings must be JSON, because a file may allow tools"),
        (permissions.get("allow"), "settings.permissions.allow must be empty"),
        (own.get("hooks") or own.get("disableAllHooks"), "settings must have no hooks and no disableAllHooks"),
        (any(mode not in _MODES for mode in modes), "an agent's permissionMode must be dontAsk"),
        (any((each or {}).get("autoAllowBashIfSandboxed") for each in sandboxes), "the sandbox must not allow Bash"),
        ((options.hooks or {}).get("PermissionRequest"), "a PermissionRequest hook may allow what the gate did not"),
    ]
    return [sentence for is_wrong, sentence in found if is_wrong]


def _settings_in(options: ClaudeAgentOptions) -> Optional[dict[str, Any]]:
    """The settings if they are given as JSON; None for the path of a file."""
    try:
        found = json.loads(options.settings or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _blind_spots_in(options: ClaudeAgentOptions) -> list[str]:
    """Settings with which the gate would not judge what runs."""
    named = [options.tools, options.allowed_tools, *(agent.tools for agent in (options.agents or {}).values())]
    provided = [tool for tools in named if isinstance(tools, list) for tool in tools]
    found = [
        ((options.hooks or {}).get("PreToolUse"), "another PreToolUse hook may replace the input that the gate judged"),
        (getattr(options, "plugins", None), "plugins must be empty, because their hooks may change a call"),
        (
            any(flag not in _FLAGS for flag in options.extra_args),
            "extra_args may only have %s, because others may switch the hook off" % ", ".join(_FLAGS),
        ),
        (
            any(tool.partition("(")[0] in _PROVIDER_TOOLS for tool in provided),
            "the provider runs %s, so the gate cannot judge it" % ", ".join(_PROVIDER_TOOLS),
        ),
    ]
    return [sentence for is_wrong, sentence in found if is_wrong]
