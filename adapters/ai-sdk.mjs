/**
 * svc-gate for the Vercel AI SDK 5, 6 and 7: the gate decides each call of the tools.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     const tools = guarded({ pay, refund }, { gate, facts });
 *     await generateText({ model, tools, prompt, stopWhen });
 *
 * The gate is asked where the tool runs, so nothing can change the input after the check. Give the tools of sub-agents to
 * `guarded` as well: the SDK does not tell a sub-agent's tools from other code.
 *
 * Types and promises: ai-sdk.d.mts. The rules for all adapters: README.md.
 */
import { gateName, guardOf, nameProblem, SvcGateRefusal } from "./guard.mjs";

export function guarded(tools, { server, ...settings }) {
  const guard = guardOf(settings, { ways: ["refuse", "wait", "park"] });
  const parks = settings.onEscalate === "park";
  const named = Object.entries(tools).map(([key, tool]) => ({ key, tool, name: gateName(key, server) }));
  const problems = named.flatMap((each) => problemsOf(each, server));
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard these tools: ${problems.join("; ")}`);
  return Object.fromEntries(named.map(({ key, tool, name }) => [key, guardedTool(tool, { name, guard, parks })]));
}

function problemsOf({ key, tool, name }, server) {
  if (name === undefined) return [nameProblem(key, server)];
  if (typeof tool.execute === "function") return [];
  return [`${key} has no execute function, so the provider or another program runs it`];
}

function guardedTool(tool, { name, guard, parks }) {
  /** Judgements that `needsApproval` made, until the tool runs. The SDK passes the same input object to both. */
  const known = new WeakMap();
  const place = { tool, name, guard, known };
  const execute = async (input, options) =>
    guard.runJudged(await judged(place, input, options), () => lastOf(tool.execute(input, options)), refuse);
  const executeInSteps = (input, options) => inSteps(place, input, options);
  const needsApproval = (input, options) => asksPerson(place, input, options);
  const yields = tool.execute.constructor.name === "AsyncGeneratorFunction";
  return { ...tool, execute: yields ? executeInSteps : execute, ...(parks && { needsApproval }) };
}

async function asksPerson(place, input, options) {
  const { needsApproval: own } = place.tool;
  if (typeof own === "function" ? await own(input, options) : own) return true;
  if (isParked(options)) return true; // the request was answered, and `execute` asks the gate
  const judgement = await judge(place, input, options);
  place.known.set(input, { judgement, text: JSON.stringify(input) });
  return judgement.parks;
}

async function judged(place, input, options) {
  const found = place.known.get(input);
  place.known.delete(input);
  const isSame = found !== undefined && found.text === JSON.stringify(input);
  return isSame ? found.judgement : judge(place, input, options);
}

function judge({ guard, name }, input, context) {
  return guard.judge({ name, input, context }, { signal: context?.abortSignal ?? undefined });
}

/** For a streaming tool: keeps its intermediate outputs. */
async function* inSteps(place, input, options) {
  const judgement = await judged(place, input, options);
  if (!judgement.runs) refuse(judgement);
  let status = "unknown";
  try {
    yield* place.tool.execute(input, options);
    status = "done";
  } finally {
    place.guard.report(judgement, status);
  }
}

/** Whether the conversation has an approval request for this call already. */
function isParked({ toolCallId, messages }) {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts.some((part) => part.type === "tool-approval-request" && part.toolCallId === toolCallId);
}

function refuse(judgement) {
  throw new SvcGateRefusal(judgement);
}

/** Returns the result, or the last output of a streaming tool. */
async function lastOf(result) {
  const found = await result;
  if (typeof found?.[Symbol.asyncIterator] !== "function") return found;
  let last;
  for await (const output of found) last = output;
  return last;
}
