/**
 * svc-gate for Google's Agent Development Kit (@google/adk): the gate decides each call of the tools.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     const agent = new LlmAgent({ name, model, instruction, tools: guarded([pay, refund], { gate, facts }) });
 *
 * The gate is asked where the tool runs, after all callbacks and plugins. It is not a plugin, because an AgentTool runs its
 * agent without the plugins of the runner. An agent with one guarded tool must have only guarded tools. Calls are not parked,
 * because ADK drops the results of the other calls of the batch.
 *
 * Types and promises: google-adk.d.mts. The rules for all adapters: README.md.
 */
import { gateName, guardOf, nameProblem } from "./guard.mjs";

const brand = (name) => Symbol.for(`google.adk.${name}`);
const known = new WeakSet();

export function guarded(tools, settings) {
  const guard = guardOf(settings);
  stopAt(tools.flatMap(problemsOf));
  return tools.map((tool) => (isToolset(tool) ? guardedToolset(tool, guard) : guardedTool(tool, guard)));
}

const isToolset = (tool) => tool?.[brand("baseToolset")] === true;

function problemsOf(tool) {
  if (tool?.[brand("baseTool")] !== true && !isToolset(tool)) return [`${tool?.name} is a node of a workflow`];
  const isNamed = isToolset(tool) || tool.mcpTool !== undefined || gateName(tool.name) !== undefined;
  const problems = isNamed ? [] : [nameProblem(tool.name)];
  return tool[brand("agentTool")] === true ? [...problems, ...unguardedIn(tool.agent)] : problems;
}

function guardedToolset(toolset, guard) {
  const getTools = async (context) => {
    const tools = await toolset.getTools(context);
    stopAt(tools.flatMap(problemsOf));
    return tools.map((tool) => guardedTool(tool, guard));
  };
  return keep(Object.assign(Object.create(toolset), { getTools }));
}

function guardedTool(tool, guard) {
  const place = { guard, name: nameOf(tool) };
  // Not a copy, because the framework checks the tool's class, and uses `this` of `processLlmRequest` as the tool.
  const changed = Object.create(tool);
  if (parsesItself(tool))
    changed.execute = (input, context) => run(place, input, context, () => tool.execute(input, context));
  else changed.runAsync = (request) => run(place, request.args, request.toolContext, () => tool.runAsync(request));
  changed.processLlmRequest = async (request) => {
    await tool.processLlmRequest.call(changed, request);
    stopAt([...unguardedIn(request.toolContext.invocationContext.agent), ...providedIn(request.llmRequest)]);
  };
  return keep(changed);
}

/**
 * Whether the tool is a FunctionTool, which parses the input in `runAsync` and then calls `execute`. There the gate judges
 * the parsed input. If a subclass has a `runAsync` of its own, the gate is asked there.
 */
function parsesItself(tool) {
  let place = tool;
  while (!Object.hasOwn(place, "runAsync")) place = Object.getPrototypeOf(place);
  return tool[brand("functionTool")] === true && Object.hasOwn(place, "validateArgs");
}

async function run({ guard, name }, input, context, work) {
  if (name === undefined) return { error: "Svc: the toolset needs a prefix, the name of its MCP server." };
  const judgement = await guard.judge({ name, input, context }, { signal: context?.abortSignal ?? undefined });
  return guard.runJudged(judgement, work, ({ reason }) => ({ error: reason }));
}

/** An own tool keeps its name. A tool of an MCP server is `server.tool`, and the server is the prefix of its toolset. */
function nameOf({ name, mcpTool, originalName }) {
  if (mcpTool === undefined) return gateName(name);
  const end = `_${originalName}`;
  return name.endsWith(end) ? gateName(originalName, name.slice(0, -end.length)) : undefined;
}

/** What the agent and its sub-agents could run without the gate. */
function unguardedIn({ name, codeExecutor, tools = [], subAgents = [] }) {
  const own = tools
    .filter((tool) => !known.has(tool))
    .map((tool) => `${tool.name ?? "a toolset"} of ${name} is not guarded`);
  const code = codeExecutor === undefined ? [] : [`the codeExecutor of ${name} runs code that is not a tool call`];
  return [...own, ...code, ...subAgents.flatMap(unguardedIn)];
}

/** What the provider runs from a request to the model: everything except the declarations of functions. */
function providedIn({ config }) {
  const kinds = (config?.tools ?? []).flatMap((tool) => Object.keys(tool));
  return kinds.filter((kind) => kind !== "functionDeclarations").map((kind) => `the provider runs ${kind}`);
}

function keep(tool) {
  known.add(tool);
  return tool;
}

function stopAt(problems) {
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard these tools: ${problems.join("; ")}`);
}
