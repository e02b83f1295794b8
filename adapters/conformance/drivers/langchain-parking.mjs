// Prints what parks in graphs of LangGraph.js, and what runs. argv: the folders of the packages and of the adapters.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, , packages, adapters] = process.argv;
const { resolve } = createRequire(join(packages, "package.json"));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { Command, END, interrupt, MemorySaver, MessagesAnnotation, Send, START, StateGraph } =
  await load("@langchain/langgraph");
const { ToolNode } = await load("@langchain/langgraph/prebuilt");
const { AIMessage, tool } = await load("langchain");
const { z } = await load("zod");
const { guarded } = await import(pathToFileURL(join(adapters, "langchain.mjs")).href);

const schema = z.object({ amount: z.number() });
const config = { configurable: { thread_id: "1" } };

/** Payments above 50 need a person. */
function worldOf() {
  const world = { ran: [], isApproved: false };
  const check = async (_name, { amount }) => {
    const allowed = !(amount > 50) || world.isApproved;
    const verdict = allowed ? "ALLOW" : "ESCALATE";
    return { verdict, allowed, escalated: !allowed, unreached: false, mode: "enforce", reason: verdict, receipt: null };
  };
  const guard = (tools) => guarded(tools, { gate: { check }, onEscalate: "park", interrupt });
  const pay = tool(({ amount }) => `paid ${world.ran.push(amount)}`, { name: "pay", description: "Pays.", schema });
  const ask = tool(() => `heard ${interrupt("sure?")}`, { name: "ask", description: "Asks and pays.", schema });
  return Object.assign(world, { guard, pay, ask });
}

/** Runs the calls in one task, or sends each to a task of its own. */
function graphOf(tools, calls, isSent) {
  const sends = calls.map((call) => new Send("tools", { messages: [], lg_tool_call: call }));
  return new StateGraph(MessagesAnnotation)
    .addNode("tools", new ToolNode(tools))
    .addConditionalEdges(START, () => (isSent ? sends : "tools"), ["tools"])
    .addEdge("tools", END);
}

const callsOf = (...all) => all.map(([name, amount], index) => ({ name, args: { amount }, id: `call-${index}` }));
const input = (calls) => ({ messages: [new AIMessage({ content: "", tool_calls: calls })] });

/** Goes on with each interrupt: the adapter's gets its own value, and a tool's gets a yes. */
async function answered(graph) {
  const found = (await graph.getState(config)).tasks.flatMap(({ interrupts }) => interrupts);
  const resume = Object.fromEntries(found.map(({ id, value }) => [id, value.svcGate ? value : "yes"]));
  if (found.length > 0) await graph.invoke(new Command({ resume }), config);
  return found.map(({ value }) => (value.svcGate ? value.tool : value));
}

async function batch(isSent) {
  const world = worldOf();
  const calls = callsOf(["pay", 5], ["pay", 60], ["pay", 6], ["pay", 7]);
  const graph = graphOf(world.guard([world.pay]), calls, isSent).compile({ checkpointer: new MemorySaver() });
  await graph.invoke(input(calls), config);
  world.isApproved = true;
  return { parked: await answered(graph), ran: world.ran.toSorted((a, b) => a - b) };
}

async function question() {
  const world = worldOf();
  const calls = callsOf(["ask", 60]);
  const graph = graphOf(world.guard([world.ask]), calls, true).compile({ checkpointer: new MemorySaver() });
  await graph.invoke(input(calls), config);
  world.isApproved = true;
  const parked = [...(await answered(graph)), ...(await answered(graph))];
  return { parked, heard: (await graph.getState(config)).values.messages.at(-1).text };
}

async function subAgent(isSent) {
  const world = worldOf();
  const inner = callsOf(["pay", 60]);
  const worker = graphOf(world.guard([world.pay]), inner, true).compile();
  const work = tool(() => worker.invoke(input(inner)).then(() => "worked"), {
    name: "work",
    description: "Works.",
    schema,
  });
  const calls = callsOf(["work", 1], ["pay", 5]);
  const graph = graphOf(world.guard([work, world.pay]), calls, isSent).compile({ checkpointer: new MemorySaver() });
  await graph.invoke(input(calls), config);
  world.isApproved = true;
  return { parked: await answered(graph), ran: world.ran.toSorted((a, b) => a - b) };
}

const found = {
  sent: await batch(true),
  together: await batch(false),
  question: await question(),
  subAgent: await subAgent(true),
  subAgentBesideOthers: await subAgent(false),
};
process.stdout.write(JSON.stringify(found));
