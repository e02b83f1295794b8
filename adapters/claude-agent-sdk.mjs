/**
 * svc-gate for the Claude Agent SDK (@anthropic-ai/claude-agent-sdk): the gate decides each tool call of an agent.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     for await (const message of query({ prompt, options: guarded(options, { gate, facts }) })) ...
 *
 * Grant mode: the host starts with nothing allowed, and only the gate's ALLOW lets a call run. So a hook that is missing or
 * fails denies the call, by the host's own rules. One gate client is one run: sub-agents of the run use it too, so they
 * count in the same session. The module imports guard.mjs alone.
 *
 * Types and promises of each function: claude-agent-sdk.d.mts. Names of tools and rules for every adapter: README.md.
 */

import { gateName, guardOf } from "./guard.mjs";

const keptMax = 1000; // verdicts of calls that have not ended yet: more than a host runs at once

export function guarded(options, { grant = true, ...settings }) {
  // Not `park`: a run that resumes can run its parked call before the SDK has registered the hook.
  const guard = guardOf(settings, { grant });
  const problems = [...(grant ? grantsIn(options) : []), ...blindSpotsIn(options)];
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard these options: ${problems.join("; ")}`);
  const [before, after] = hooksOf(guard, grant);
  const { onEscalate, waitMs = 900_000 } = settings;
  const timeout = Math.ceil((onEscalate === "wait" ? waitMs : 0) / 1000) + 120; // seconds, over all time-outs of the client
  return {
    ...options,
    ...(grant ? { permissionMode: "dontAsk", settingSources: options.settingSources ?? [] } : {}),
    disallowedTools: [...(options.disallowedTools ?? []), ...providerTools],
    hooks: {
      ...options.hooks,
      PreToolUse: [{ hooks: [before], timeout, onFailure: "block" }],
      PostToolUse: [...(options.hooks?.PostToolUse ?? []), { hooks: [after] }],
      PostToolUseFailure: [...(options.hooks?.PostToolUseFailure ?? []), { hooks: [after] }],
    },
  };
}

/** Returns the callbacks before and after a call. They share the judgements of calls that run. */
function hooksOf(guard, grant) {
  const running = new Map();
  const before = async (input, _, { signal } = {}) => {
    const call = callOf(input);
    if (call === undefined)
      return decision("deny", "Svc: the host does not say which MCP server has the tool; the action is blocked.");
    const judgement = await guard.judge(call, { signal });
    if (judgement.runs) {
      running.set(input.tool_use_id, judgement);
      if (running.size > keptMax) running.delete(running.keys().next().value);
    }
    return answerTo(judgement, grant);
  };
  const after = async (input) => {
    const judgement = running.get(input.tool_use_id);
    running.delete(input.tool_use_id);
    // After an error, the tool may have started.
    if (judgement) guard.report(judgement, input.hook_event_name === "PostToolUse" ? "done" : "unknown");
    return {};
  };
  return [before, after];
}

/** Without `grant`, and without an enforced ALLOW, the adapter has no decision: the host's own permissions decide. */
function answerTo({ runs, grants, reason }, grant) {
  if (!runs) return decision("deny", reason);
  return grant && grants ? decision("allow", reason) : {};
}

function decision(permissionDecision, permissionDecisionReason) {
  return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason } };
}

function callOf({ tool_name, tool_input, mcp_server, agent_id, tool_use_id }) {
  const name = nameOf(tool_name, mcp_server);
  if (name === undefined) return undefined;
  return { name, input: tool_input, hostName: tool_name, agentId: agent_id ?? null, toolUseId: tool_use_id };
}

/** A built-in tool keeps its name, a tool of an MCP server is `server.tool`: README.md has the rules. */
function nameOf(name, server) {
  const isBare = !name.startsWith("mcp__"); // also a tool of an MCP server, with CLAUDE_AGENT_SDK_MCP_NO_PREFIX
  if (isBare && server === undefined) return gateName(name);
  if (typeof server?.name !== "string") return undefined;
  const prefix = isBare ? "" : `mcp__${server.name.replaceAll(/[^a-zA-Z0-9_-]/g, "_")}__`; // as the host writes it
  if (!name.startsWith(prefix)) return undefined;
  const scope = ownSources.includes(server.source) ? "" : "project:";
  const full = gateName(name.slice(prefix.length), server.name);
  return full && scope + full;
}

/** Where only the user, the machine's administrator or this program names servers. A project's file cannot. */
const ownSources = ["claudeai", "dynamic", "enterprise", "local", "managed", "sdk", "user"];

/** Tools that the model's provider runs, wholly or in part: the gate would not see what they do. */
const providerTools = ["WebSearch"];

/** Options of the host's command line that change nothing about tools. */
const harmlessFlags = ["debug", "debug-to-stderr", "replay-user-messages", "verbose"];

/** Settings that would let a call run without a grant. */
function grantsIn(options) {
  const { permissionMode, settings, managedSettings, mcpServers, agents, sandbox } = options;
  const policies = Object.values(mcpServers ?? {}).flatMap(({ tools }) => (Array.isArray(tools) ? tools : []));
  const modes = Object.values(agents ?? {}).map((agent) => agent.permissionMode);
  return [
    [![undefined, "dontAsk"].includes(permissionMode), "permissionMode must be dontAsk or absent"],
    [options.allowDangerouslySkipPermissions, "allowDangerouslySkipPermissions must not be set"],
    [options.allowedTools?.length > 0, "allowedTools must be empty, because only the gate allows"],
    [options.skills, "skills must be absent, because the SDK allows the tool Skill for them"],
    [options.canUseTool || options.permissionPromptToolName, "canUseTool and permissionPromptToolName must be absent"],
    [typeof settings === "string", "settings must be an object, because a file may allow tools"],
    [
      [settings, managedSettings].some((each) => each?.permissions?.allow?.length > 0),
      "settings.permissions.allow and managedSettings.permissions.allow must be empty",
    ],
    [
      [settings, managedSettings].some((each) => each?.hooks || each?.disableAllHooks),
      "settings and managedSettings must have no hooks and no disableAllHooks",
    ],
    [options.hooks?.PermissionRequest?.length > 0, "a PermissionRequest hook may allow what the gate did not"],
    [policies.some((tool) => tool.permission_policy === "always_allow"), "an MCP tool must not have always_allow"],
    [modes.some((mode) => ![undefined, "dontAsk"].includes(mode)), "an agent's permissionMode must be dontAsk"],
    [[sandbox, settings?.sandbox].some((each) => each?.autoAllowBashIfSandboxed), "the sandbox must not allow Bash"],
  ].flatMap(([isWrong, sentence]) => (isWrong ? [sentence] : []));
}

/** Settings with which the gate would not judge what runs. */
function blindSpotsIn(options) {
  const named = [options.tools, options.allowedTools, ...Object.values(options.agents ?? {}).map(({ tools }) => tools)];
  const provided = named.filter(Array.isArray).flat();
  return [
    [options.hooks?.PreToolUse?.length > 0, "another PreToolUse hook may replace the input that the gate judged"],
    [options.plugins?.length > 0, "plugins must be empty, because their hooks may change a call"],
    [
      Object.keys(options.extraArgs ?? {}).some((flag) => !harmlessFlags.includes(flag)),
      `extraArgs may only have ${harmlessFlags.join(", ")}, because others may switch the hook off`,
    ],
    [options.toolAliases, "toolAliases run another tool than the one that the gate judged"],
    [
      provided.some((tool) => providerTools.includes(String(tool).replace(/\(.*$/, ""))),
      `the provider runs ${providerTools.join(", ")}, so the gate cannot judge it`,
    ],
  ].flatMap(([isWrong, sentence]) => (isWrong ? [sentence] : []));
}
