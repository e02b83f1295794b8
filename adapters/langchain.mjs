/**
 * svc-gate for LangChain and LangGraph: the gate decides each call of the tools.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     const agent = createAgent({ model, tools: guarded([pay, refund], { gate, facts }) });
 *
 * The gate is asked where the tool runs, about the arguments that the tool gets. Middleware would ask earlier, and other
 * middleware could change the call after it. Give the tools of middleware and of sub-agents to `guarded` as well.
 *
 * Types and promises: langchain.d.mts. The rules for all adapters: README.md.
 */
import { gateName, guardOf, nameProblem } from "./guard.mjs";

/** The method of a tool that gets the parsed arguments, and LangGraph's internal state of the running task. */
const [method, notes, saver] = ["_call", "__pregel_scratchpad", "__pregel_checkpointer"];

export function guarded(tools, { server, interrupt, ...settings }) {
  const guard = guardOf(settings, { ways: ["refuse", "wait", "park"] });
  if (settings.onEscalate === "park" && typeof interrupt !== "function")
    throw new TypeError("onEscalate park needs the setting interrupt: the function of @langchain/langgraph");
  const named = tools.map((tool) => ({ tool, name: gateName(tool.name, server) }));
  const problems = named.flatMap((each) => problemsOf(each, server));
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard these tools: ${problems.join("; ")}`);
  return named.map(({ tool, name }) => guardedTool({ tool, name, guard, interrupt }));
}

function problemsOf({ tool, name }, server) {
  const shown = tool.name ?? tool.type;
  if (typeof tool[method] !== "function")
    return [`${shown} is not a tool of LangChain: the provider or a graph runs it`];
  if (ownersOf(tool, "invoke") > 1)
    return [`${shown} has an invoke of its own, which could act before the gate is asked`];
  return name === undefined ? [nameProblem(tool.name, server)] : [];
}

/** Counts the classes of the tool that define this member. In the framework only StructuredTool defines `invoke`. */
function ownersOf(tool, member) {
  if (tool === null) return 0;
  return Number(Object.hasOwn(tool, member)) + ownersOf(Object.getPrototypeOf(tool), member);
}

function guardedTool(place) {
  const run = (input, manager, config) => decided(place, { input, manager, config });
  // LangChain checks the class of a tool.
  return Object.assign(Object.create(Object.getPrototypeOf(place.tool)), place.tool, { [method]: run });
}

async function decided({ tool, name, guard, interrupt }, { input, manager, config }) {
  takeAnswers(interrupt, config);
  const call = { name, input: typeof input === "object" ? input : { input }, context: config };
  const judgement = await guard.judge(call, { signal: config?.signal });
  if (judgement.parks && canPark(config)) interrupt(parkedCall(name, judgement, config));
  if (!judgement.runs)
    return tool.responseFormat === "content_and_artifact" ? [judgement.reason, null] : judgement.reason;
  return ran(guard, judgement, () => tool[method](input, manager, within(config)));
}

/** An error, and an interrupt by the tool itself, are reported as unknown: the tool may have started. */
async function ran(guard, judgement, work) {
  let result;
  try {
    result = await work();
  } catch (error) {
    guard.report(judgement, "unknown");
    throw error;
  }
  if (typeof result?.[Symbol.asyncIterator] === "function") return inSteps(guard, judgement, result);
  guard.report(judgement, "done");
  return result;
}

async function* inSteps(guard, judgement, steps) {
  let status = "unknown";
  try {
    const last = yield* steps;
    status = "done";
    return last;
  } finally {
    guard.report(judgement, status);
  }
}

function parkedCall(tool, { reason, approval }, config) {
  return { svcGate: config.toolCall.id, tool, reason, approval };
}

/**
 * A resumed call runs again from its start, and LangGraph returns the answers to interrupts in order. So this adapter takes
 * its own answers first: the tool's own interrupts must not get them.
 */
function takeAnswers(interrupt, config) {
  const id = config?.toolCall?.id;
  const pad = padOf(config);
  if (interrupt === undefined || id === undefined || pad === undefined) return;
  while (nextAnswer(pad)?.svcGate === id) interrupt();
}

function nextAnswer({ resume, nullResume, interruptCounter }) {
  return interruptCounter + 1 < resume.length ? resume[interruptCounter + 1] : nullResume;
}

/** A resumed task runs again, with all its calls. So the run is parked only if each task around this call has one call. */
function canPark(config) {
  const { toolCall, configurable } = config ?? {};
  if (padOf(config) === undefined || !configurable[saver] || configurable.svcGateShared) return false;
  return toolCall?.id !== undefined && isAlone(config);
}

function isAlone(config) {
  const input = padOf(config)?.currentTaskInput;
  const messages = Array.isArray(input) ? input : (input?.messages ?? []);
  const calls = input?.lg_tool_call ? [input.lg_tool_call] : messages.findLast((each) => each.tool_calls)?.tool_calls;
  return calls?.length === 1 && calls[0].id === config.toolCall?.id;
}

/** Tells the tools of a sub-agent that other calls run in its task. */
function within(config) {
  if (padOf(config) === undefined || isAlone(config)) return config;
  return { ...config, configurable: { ...config.configurable, svcGateShared: true } };
}

/** Undefined outside of a graph. */
function padOf(config) {
  return config?.configurable?.[notes];
}
