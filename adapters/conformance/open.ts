/**
 * Cases that a released host fails, whatever the adapter does. Each has evidence: the vendor's thread, or how to see it.
 * A listed case that the host passes fails the test, so the list does not become stale.
 */

export interface OpenCase {
  /** What can happen, in a few words. */
  readonly words: string;
  /** Why, with evidence, and what closes it. */
  readonly why: string;
}

const reads: OpenCase = {
  words: "`Read`, `cat`, `ls` and `grep` run if the hook is absent",
  why:
    "Claude Code needs no permission to read: without the hook, `Read`, `cat`, `ls` and `grep` still run. Add deny rules for " +
    "secret files.",
};
const rewrites: OpenCase = {
  words: "a project's hook can rewrite the judged input, unless settings are managed",
  why:
    "a second hook, here one in the project's `.claude/settings.json`, replaces the input after the gate's ALLOW (`updatedInput`). " +
    "Closed by managed settings with `allowManagedHooksOnly` (D4m).",
};
const allows: OpenCase = {
  words: "a trusted project can switch the hook off and allow every tool, unless settings are managed",
  why:
    "in a project that the user trusts, `disableAllHooks` and `permissions.allow` in `.claude/settings.json` switch the hook off and " +
    "grant every tool. Closed by managed settings with `allowManagedHooksOnly` and `allowManagedPermissionRulesOnly` (D5m).",
};
const another: OpenCase = {
  words: "an `allow` for another request counts",
  why:
    "an http hook cannot compare the answer with its request, so the host accepts an `allow` for another request. Use TLS, or the " +
    "command hook, which compares the digest.",
};

const inTheProgram: OpenCase = {
  words: "a tool that the adapter was not given runs unasked",
  why:
    "the framework has no permissions of its own, so a tool that the adapter was not given runs without a check. Give the adapter " +
    "all tools, also those of sub-agents.",
};
const unknownTool: OpenCase = {
  words: "a call of an unknown tool ends the run",
  why:
    "nothing runs, but ADK 2.0.0 for JavaScript ends the run if the model calls a tool that does not exist " +
    "([thread](https://github.com/google/adk-js/issues/789)).",
};

const cutJson: OpenCase = {
  words: "JSON that ends too early is repaired before it is judged",
  why:
    "if the model's JSON ends too early, LlamaIndex repairs it ([thread](https://github.com/run-llama/llama_index/pull/22580)). The gate " +
    "judges the repaired arguments, and the tool gets these.",
};
const lostStream: OpenCase = {
  words: "the calls of a streamed answer of the Responses API are lost",
  why:
    "nothing runs, but CrewAI 1.15 loses the calls of a streamed answer of OpenAI's Responses API, and the run ends " +
    "([thread](https://github.com/crewAIInc/crewAI/issues/7497)). It does not lose calls in other answers.",
};
const onlyDenies: OpenCase = {
  words: "calls run if the hook is not loaded, unless the machine requires it",
  why:
    "a hook of this host can only deny, so calls run if the hook is not loaded ([thread](https://github.com/openai/codex/issues/41979)). " +
    "Closed by the machine's `requirements.toml`, which needs no trust.",
};
const codexProject: OpenCase = {
  words: "a trusted project can switch the hook off, unless the machine requires it",
  why:
    "in a project that the user trusts, `hooks = false` in `.codex/config.toml` switches the hook off. Closed by the machine's " +
    "`requirements.toml` (D5m).",
};
const codexRewrites: OpenCase = {
  words: "another trusted hook can rewrite the judged input, unless only managed hooks are allowed",
  why:
    "a second hook that the user trusts returns `updatedInput`, and the answer that comes last replaces the call. Closed by " +
    "`allow_managed_hooks_only` (D4m).",
};
const geminiOnlyDenies: OpenCase = {
  words: "calls run if the hook is not loaded",
  why: "a hook of this host can only deny, and no setting requires the hook. So calls run if it is not loaded, as this case shows.",
};
const geminiProject: OpenCase = {
  words: "a trusted project can switch the hook off, unless the machine's settings protect it",
  why:
    "in a project that the user trusts, `hooksConfig.enabled: false` in `.gemini/settings.json` switches the hook off. Closed by the " +
    "machine's settings and the hook's random name (D5m).",
};
const geminiRewrites: OpenCase = {
  words: "a trusted project's hook can rewrite the judged input",
  why:
    "a second hook, here one of a trusted project, replaces the arguments " +
    "([documented](https://geminicli.com/docs/hooks/reference)). To see it, let the project's `BeforeTool` hook print " +
    '`{"hookSpecificOutput":{"tool_input":{"amount":900}}}`. The machine\'s settings cannot exclude it.',
};
const copilotReads: OpenCase = {
  words: "`cat` and `ls` run if the hook is absent",
  why: "Copilot needs no permission for commands that only read: without the hook, `cat` and `ls` still run, as this case shows.",
};
const copilotSessions: OpenCase = {
  words: "a sub-agent is a session of its own",
  why: "a sub-agent has its own session, and the hook's input does not name the parent's session. Count per key.",
};
const copilotRewrites: OpenCase = {
  words: "a trusted project's hook can rewrite the judged input",
  why:
    "a second hook, here one of a trusted project, replaces the arguments with `modifiedArgs` " +
    "([documented](https://docs.github.com/en/copilot/reference/hooks-reference)). To see it, let the project's `preToolUse` hook print " +
    '`{"permissionDecision":"allow","modifiedArgs":{"amount":900}}`. A policy hook cannot exclude it.',
};

const silent: OpenCase = {
  words: "a plugin of yours that denies without an error lets the call run",
  why:
    "opencode ignores the value that a plugin's hook returns: only an error refuses a call. So a plugin that returns a denial, or " +
    "nothing, lets the call run ([documented](https://opencode.ai/docs/plugins)). The adapter throws unless the gate allowed the call.",
};

export const open: Readonly<Record<string, Readonly<Record<string, OpenCase>>>> = {
  "Claude Code, http hook": { A7r: reads, B6a: another, D4: rewrites, D5a: allows },
  "Claude Code, command hook": { A7r: reads, D4: rewrites, D5a: allows },
  "Codex CLI": {
    A7: onlyDenies,
    A7m: onlyDenies,
    A7r: onlyDenies,
    D4: codexRewrites,
    D5: codexProject,
    D5a: codexProject,
  },
  "Gemini CLI": {
    A7: geminiOnlyDenies,
    A7m: geminiOnlyDenies,
    A7r: geminiOnlyDenies,
    D4: geminiRewrites,
    D4m: geminiRewrites,
    D5: geminiProject,
    D5a: geminiProject,
  },
  "GitHub Copilot CLI": { A7r: copilotReads, D1: copilotSessions, D4: copilotRewrites, D4m: copilotRewrites },
  "Claude Agent SDK, TypeScript": { A7r: reads },
  "Claude Agent SDK, Python": { A7r: reads },
  CrewAI: { A5p: lostStream, A7: inTheProgram },
  "Google ADK, JavaScript": { A6: unknownTool, A7: inTheProgram },
  "Google ADK, Python": { A7: inTheProgram },
  "LangChain.js": { A7: inTheProgram },
  "LangGraph.js": { A7: inTheProgram },
  "LangChain, Python": { A7: inTheProgram },
  "LangGraph, Python": { A7: inTheProgram },
  LlamaIndex: { A6: cutJson, A7: inTheProgram },
  Mastra: { A7: inTheProgram },
  "Microsoft Agent Framework": { A7: inTheProgram },
  "OpenAI Agents SDK, JavaScript": { A7: inTheProgram },
  "OpenAI Agents SDK, Python": { A7: inTheProgram },
  "Pydantic AI": { A7: inTheProgram },
  "smolagents, ToolCallingAgent": { A7: inTheProgram },
  "smolagents, CodeAgent": { A7: inTheProgram },
  "Vercel AI SDK 7": { A7: inTheProgram },
  "Vercel AI SDK 6": { A7: inTheProgram },
  "Vercel AI SDK 5": { A7: inTheProgram },
  opencode: { C6: silent, C7: silent, C8: silent },
};
