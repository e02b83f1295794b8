/**
 * svc-gate for the OpenAI Agents SDK (@openai/agents): the gate decides each call of an agent and of its sub-agents.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     const agent = guarded(new Agent({ name, tools: [pay], handoffs: [clerk] }), { gate, facts });
 *     const result = await run(agent, prompt);
 *
 * The gate is asked where the tool runs, after the SDK's guardrails and approvals. A guardrail would be wrong: the SDK
 * runs the tool if a guardrail answers with a word that it does not know.
 *
 * Types and promises: openai-agents.d.mts. The rules for all adapters: README.md.
 */
import { gateName, guardOf, nameProblem, SvcGateRefusal } from "./guard.mjs";

/** Agents and tools that are guarded already. */
const known = new WeakSet();

export function guarded(agent, settings) {
  const guard = guardOf(settings, { ways: ["refuse", "wait", "park"] });
  if (known.has(agent)) throw new TypeError(`svc-gate guards the agent ${agent.name} already`);
  const problems = problemsOf(agent, new Set());
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard this agent: ${problems.join("; ")}`);
  return guardedAgent(agent, { guard, parks: settings.onEscalate === "park", copies: new Map() });
}

/** Names everything that the adapter cannot guard, in the agent and in those that it hands over to. */
function problemsOf(agent, seen) {
  if (known.has(agent) || seen.has(agent)) return [];
  seen.add(agent);
  if (typeof agent?.getAllTools !== "function") return ["a handoff does not show its agent"];
  const { name, tools, mcpServers, handoffs, modelSettings } = agent;
  const own = [
    ...(isOfSubclass(agent) ? ["its class may give it tools of its own"] : []),
    ...(hasTools(modelSettings.providerData) ? ["its model's settings have tools of the provider"] : []),
    ...tools.flatMap(problemsOfTool),
    ...mcpServers.flatMap((server) => (server.name ? [] : ["a server has no name"])),
  ];
  return [
    ...own.map((problem) => `in ${name}, ${problem}`),
    ...handoffs.flatMap((entry) => problemsOf(isHandoff(entry) ? entry.agent : entry, seen)),
  ];
}

/** The SDK writes all these members into the request. */
function hasTools(more) {
  return [more, more?.extra_body, more?.extraBody].some((each) => each != null && "tools" in Object(each));
}

/** Agents of a sandbox and for realtime are: they run tools in other ways. */
function isOfSubclass(agent) {
  const own = Object.getPrototypeOf(agent);
  return !Object.hasOwn(own, "getAllTools") || "getAllTools" in Object.getPrototypeOf(own);
}

function problemsOfTool(tool) {
  const { type, name } = tool;
  if (known.has(tool)) return [];
  if (type !== "function")
    return [`${name} is a tool of type ${type}, which does not run as a function of this program`];
  if (typeof tool.on === "function") return [`${name} hides its agent: call asTool on a guarded agent`];
  const symbols = Object.getOwnPropertySymbols(tool).map(({ description }) => description);
  if (symbols.includes("functionToolNamespace")) return [`${name} is in a namespace`];
  return gateName(name) === undefined ? [nameProblem(name)] : [];
}

function guardedAgent(agent, place) {
  if (known.has(agent)) return agent;
  const { guard, copies } = place;
  const made = copies.get(agent);
  if (made !== undefined) return made; // two agents may hand over to each other
  const copy = agent.clone({
    tools: agent.tools.map((tool) => guardedTool(tool, place)),
    mcpServers: agent.mcpServers.map((server) => guardedServer(server, guard)),
    handoffs: [],
  });
  copies.set(agent, copy);
  copy.handoffs = agent.handoffs.map((entry) => leadingToCopy(entry, place));
  const { asTool, getEnabledHandoffs } = copy;
  // The SDK knows the agent behind a tool by this object, and needs that to resume a parked run.
  copy.asTool = (options) => inPlace(asTool.call(copy, options), place);
  copy.getEnabledHandoffs = async (runContext) =>
    (await getEnabledHandoffs.call(copy, runContext)).map((handoff) => judgedHandoff(handoff, guard));
  known.add(copy);
  return copy;
}

function guardedTool(tool, place) {
  return known.has(tool) ? tool : inPlace({ ...tool }, place);
}

function inPlace(tool, { guard, parks }) {
  const { name, invoke, needsApproval } = tool;
  /** Judgements that `needsApproval` made, until the tool runs: by run and by call. */
  const place = { name: gateName(name), invoke, needsApproval, guard, kept: new WeakMap() };
  tool.invoke = (runContext, text, details) => invoked(place, { runContext, text, details });
  if (parks) tool.needsApproval = (runContext, input, id) => asksPerson(place, { runContext, input, id });
  known.add(tool);
  return tool;
}

async function invoked(place, { runContext, text, details }) {
  const input = parsed(text);
  const judgement = taken(place, { runContext, input, id: details?.toolCall?.callId });
  return place.guard.runJudged(
    judgement ?? (await judge(place, { runContext, input, signal: details?.signal })),
    () => {
      details?.signal?.throwIfAborted(); // the SDK may have given the call up while the gate was asked
      return place.invoke(runContext, JSON.stringify(input), details);
    },
    ({ reason }) => reason,
  );
}

async function asksPerson(place, { runContext, input, id }) {
  if (await place.needsApproval?.(runContext, input, id)) return true; // after the answer the gate is asked
  const judgement = await judge(place, { runContext, input });
  if (judgement.parks) return true;
  const calls = place.kept.get(runContext) ?? new Map();
  place.kept.set(runContext, calls.set(id, { judgement, text: JSON.stringify(input) }));
  return false;
}

/** A kept judgement is good for one run of exactly the same call. */
function taken({ kept }, { runContext, input, id }) {
  const found = kept.get(runContext)?.get(id);
  kept.get(runContext)?.delete(id);
  return found !== undefined && found.text === JSON.stringify(input) ? found.judgement : undefined;
}

function judge({ guard, name }, { runContext, input, signal }) {
  return guard.judge({ name, input, context: runContext }, { signal });
}

/** The same server, whose tools ask the gate. Its tools can also be called outside of a run. */
function guardedServer(server, guard) {
  const contexts = new WeakMap();
  const call =
    (method) =>
    (tool, given, ...more) => {
      const input = given ?? {};
      return guard.run(
        { name: gateName(tool, server.name), input, context: contexts.get(input) },
        () => server[method](tool, input, ...more),
        ({ reason }) => refusedBy(method, reason),
      );
    };
  // The SDK asks for a call's metadata with the run and the same arguments, just before the call.
  const toolMetaResolver = (asked) => {
    contexts.set(asked.arguments, asked.runContext);
    return server.toolMetaResolver?.(asked);
  };
  const replaced = { callTool: call("callTool"), callToolResult: call("callToolResult"), toolMetaResolver };
  return new Proxy(server, {
    get: (target, member) => {
      const value = Reflect.get(target, member, target);
      if (member === "toolMetaResolver") return toolMetaResolver;
      if (typeof value !== "function") return value;
      return Object.hasOwn(replaced, member) ? replaced[member] : value.bind(target);
    },
  });
}

function refusedBy(method, text) {
  const content = [{ type: "text", text }];
  return method === "callTool" ? content : { content, isError: true };
}

const isHandoff = (entry) => typeof entry.onInvokeHandoff === "function";

function leadingToCopy(entry, place) {
  if (!isHandoff(entry)) return guardedAgent(entry, place);
  const agent = guardedAgent(entry.agent, place);
  const onInvokeHandoff = async (runContext, text) => {
    const given = await entry.onInvokeHandoff(runContext, text);
    if (given !== entry.agent) throw new TypeError(`${entry.toolName} hands over to another agent than it shows`);
    return agent;
  };
  return entry.clone({ agent, onInvokeHandoff });
}

function judgedHandoff(handoff, guard) {
  const onInvokeHandoff = (context, text) => {
    const input = text ? parsed(text) : {};
    return guard.run(
      { name: gateName(handoff.toolName), input, context },
      () => handoff.onInvokeHandoff(context, text && JSON.stringify(input)),
      (judgement) => {
        throw new SvcGateRefusal(judgement);
      },
    );
  };
  return handoff.clone({ onInvokeHandoff });
}

/** Undefined for a text that is not JSON. The gate cannot judge it, so the call is refused. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
