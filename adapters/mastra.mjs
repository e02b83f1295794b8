/**
 * svc-gate for Mastra (@mastra/core): the gate decides each call of the tools.
 *
 *     const gate = new SvcGate("https://gate.example", { apiKey, sessionId: runId });
 *     const agent = new Agent({ name, instructions, model, tools: guarded({ pay }, { gate, facts }) });
 *
 * The gate is asked where the tool runs, after Mastra has validated the input and its hooks have run. Give the tools of
 * sub-agents to `guarded` as well.
 *
 * Types and promises: mastra.d.mts. The rules for all adapters: README.md.
 */
import { gateName, guardOf, nameProblem } from "./guard.mjs";

const notFinal = "Svc: the tool's schema would change the arguments after the gate's verdict; the action is blocked.";

export function guarded(tools, { server, ...settings }) {
  const guard = guardOf(settings, { ways: ["refuse", "wait", "park"] });
  const named = Object.entries(tools).map(([key, tool]) => ({ key, tool, name: nameOf(key, server) }));
  const problems = named.flatMap((each) => problemsOf(each, server));
  if (problems.length > 0) throw new TypeError(`svc-gate cannot guard these tools: ${problems.join("; ")}`);
  return Object.fromEntries(named.map(({ key, tool, name }) => [key, guardedTool(tool, name, guard)]));
}

/** Mastra's MCP client writes `server_tool`. */
function nameOf(key, server) {
  if (server === undefined) return gateName(key);
  const prefix = `${server}_`;
  return key.startsWith(prefix) ? gateName(key.slice(prefix.length), server) : undefined;
}

function problemsOf({ key, tool, name }, server) {
  if (name === undefined)
    return [server === undefined ? nameProblem(key) : `${key} is not a name of a tool of the server ${server}`];
  if (typeof tool.execute === "function") return [];
  return [`${key} has no execute function, so the provider or another program runs it`];
}

function guardedTool(tool, name, guard) {
  const execute = async (input, context) => {
    if (!(await isFinal(tool, input))) return notFinal;
    const judgement = await guard.judge({ name, input, context }, { signal: context?.abortSignal ?? undefined });
    return guard.runJudged(
      judgement,
      () => tool.execute(input, context),
      () => parkedOrRefused(judgement, context),
    );
  };
  // Mastra checks the class of a tool.
  return Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, { execute });
}

/** A tool of Mastra validates its input again inside `execute`. Then the schema must not change the input. */
async function isFinal({ inputSchema }, input) {
  const standard = inputSchema?.["~standard"];
  if (standard === undefined) return true;
  const text = JSON.stringify(input); // as text, because the schema may change the object
  const { issues, value } = await standard.validate(input);
  return issues === undefined && JSON.stringify(value) === text;
}

/** A parked tool is called again when the run is resumed, and then the gate is asked again. */
async function parkedOrRefused({ parks, reason, approval }, context) {
  const suspend = context?.agent?.suspend ?? context?.suspend;
  if (!parks || suspend === undefined) return reason;
  await suspend({ reason, approval });
  return undefined;
}
