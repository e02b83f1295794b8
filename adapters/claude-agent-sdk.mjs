/**
 * svc-gate for the Claude Agent SDK (@anthropic-ai/claude-agent-sdk): the gate decides each tool call of an agent.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     for await (const message of query({ prompt, options: guarded(options, { gate, facts }) })) ...
 *
 * Grant mode: the host starts with nothing allowed, and only the gate's ALLOW lets a call run. So a hook that is missing or
 * fails denies the call, by the host's own rules. One gate client is one run: sub-agents of the run use it too, so they
 * count in the same session. The module imports nothing.
 *
 * Types and promises of each function: claude-agent-sdk.d.mts. Names of tools and rules for every adapter: README.md.
 */

/** Not `defer`: a run that resumes can run its parked call before the SDK has registered the hook. */
const waits = ["refuse", "wait"];
const keptMax = 1000; // verdicts of calls that have not ended yet: more than a host runs at once
const factsFailed = "Svc: the facts about this call could not be read; the action is blocked.";
const notReached = "Svc: the gate gave no verdict; the action is blocked.";

export function guarded(options, settings) {
  const { grant = true, onEscalate = "refuse", waitMs = 900_000 } = settings;
  if (!waits.includes(onEscalate)) throw new TypeError(`onEscalate must be one of ${waits.join(", ")}`);
  const problems = [...(grant ? grantsIn(options) : []), ...blindSpotsIn(options)];
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard these options: ${problems.join("; ")}`);
  const [before, after] = hooksOf(settings);
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

/** Returns the callbacks before and after a call. They share the verdicts of calls that run. */
function hooksOf(settings) {
  const { gate, log = console.error } = settings;
  const running = new Map();
  const before = async (input, _, { signal } = {}) => {
    const verdict = await judged(callOf(input), settings, signal);
    if (typeof verdict === "string") return decision("deny", verdict);
    if (verdict.unreached) log(verdict.reason);
    if (verdict.allowed && verdict.receipt) {
      running.set(input.tool_use_id, verdict);
      if (running.size > keptMax) running.delete(running.keys().next().value);
    }
    return answerTo(verdict, settings);
  };
  const after = async (input) => {
    const verdict = running.get(input.tool_use_id);
    running.delete(input.tool_use_id);
    // After an error nobody knows how far the tool came. The result does not wait for the report.
    const status = input.hook_event_name === "PostToolUse" ? "done" : "unknown";
    if (verdict) gate.outcome(verdict, status).then((problem) => problem && log(problem), log);
    return {};
  };
  return [before, after];
}

/** Returns the gate's verdict after the wait for a person, if any, or a sentence if the call cannot be asked. */
async function judged(call, { gate, facts = async () => undefined, onEscalate, waitMs = 900_000 }, signal) {
  if (typeof call === "string") return call;
  const { name, input } = call;
  let snapshot;
  try {
    snapshot = await facts(call);
  } catch {
    return factsFailed;
  }
  const verdict = await gate.check(name, input, snapshot);
  if (!verdict.escalated) return verdict;
  if (onEscalate === "wait") return gate.settle(verdict, name, input, () => facts(call), { timeoutMs: waitMs, signal });
  // A person may have approved the call since it was refused: then it is checked again, with the approval.
  return verdict.approval?.next === "check" ? gate.check(name, input, snapshot, verdict.approval.id) : verdict;
}

function answerTo({ allowed, escalated, unreached, mode, reason }, { grant = true }) {
  if (unreached && !(allowed && !grant)) return decision("deny", notReached);
  if (allowed) return grant && (mode === "enforce" || mode === "assist") ? decision("allow", reason) : {};
  if (!escalated) return decision("deny", reason);
  return decision("deny", `${reason}; a person decides: ask again after the decision`);
}

function decision(permissionDecision, permissionDecisionReason) {
  return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason } };
}

function callOf({ tool_name, tool_input, mcp_server, agent_id, tool_use_id }) {
  const name = gateName(tool_name, mcp_server);
  if (name === undefined) return "Svc: the host does not say which MCP server has the tool; the action is blocked.";
  return { name, input: tool_input, hostName: tool_name, agentId: agent_id ?? null, toolUseId: tool_use_id };
}

/** A built-in tool keeps its name, a tool of an MCP server is `server.tool`: README.md has the rules. */
function gateName(name, server) {
  if (!name.startsWith("mcp__")) return name.includes(".") ? undefined : name;
  if (typeof server?.name !== "string") return undefined;
  const prefix = `mcp__${server.name.replaceAll(/[^a-zA-Z0-9_-]/g, "_")}__`; // as the host writes it
  if (!name.startsWith(prefix)) return undefined;
  const scope = ownSources.includes(server.source) ? "" : "project:";
  return `${scope}${escaped(server.name)}.${escaped(name.slice(prefix.length))}`;
}

/** Where only the user, the machine's administrator or this program names servers. A project's file cannot. */
const ownSources = ["claudeai", "dynamic", "enterprise", "local", "managed", "sdk", "user"];

function escaped(part) {
  const percent = (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return part.replaceAll(/__+|[^A-Za-z0-9_-]/gu, (text) =>
    Array.from(new TextEncoder().encode(text), percent).join(""),
  );
}

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
