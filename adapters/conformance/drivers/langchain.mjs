// Runs of LangChain.js or LangGraph.js under the adapter. argv[2] says which, argv[3] is the folder with the packages.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { adapter, endOf, serve, settingsOf, toolsOf } from "./harness.mjs";

const [, , kind, packages] = process.argv;
const { resolve } = createRequire(join(packages, "package.json"));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const names = [
  "langchain",
  "@langchain/langgraph",
  "@langchain/langgraph/prebuilt",
  "@langchain/openai",
  "@langchain/mcp-adapters",
];
const [langchain, langgraph, prebuilt, { ChatOpenAI }, { MultiServerMCPClient }] = await Promise.all(names.map(load));
const { z } = await load("zod");
const { guarded } = await adapter("langchain.mjs");

/** Checkpoints by session. MemorySaver keeps them as bytes. */
const savers = new Map();

serve(async (plan) => {
  if (!savers.has(plan.session)) savers.set(plan.session, new langgraph.MemorySaver());
  const client = plan.case.id === "D2" ? mcpClient(plan) : undefined;
  const agent = await agentOf(plan, savers.get(plan.session), client);
  const config = { configurable: { thread_id: plan.session }, recursionLimit: 50 };
  const run = (input) => (plan.case.isStreamed ? streamed(agent, input, config) : agent.invoke(input, config));
  const lastOf = async () => (await agent.graph.getState(config)).values.messages.at(-1);
  await run(plan.prompt === "" ? await answerOf(agent, config) : { messages: [user(plan.prompt)] });
  // LangChain ends a run at a call that it cannot read, so the program lets it go on.
  while ((await lastOf()).invalid_tool_calls?.length > 0) await run({ messages: unread });
  await client?.close();
  const parked = await parkedIn(agent, config);
  return parked.length > 0 ? ["parked", JSON.stringify(parked)] : endOf((await lastOf()).text);
});

const user = (content) => ({ role: "user", content });
const unread = [{ role: "assistant", content: "The call was cut." }, user("Go on.")];

async function streamed(agent, input, config) {
  for await (const _ of await agent.stream(input, { ...config, streamMode: "messages" }));
}

/** Each interrupt is answered with its own value, and with a yes: that must not be enough. */
async function answerOf(agent, config) {
  const answers = (await parkedIn(agent, config)).map(({ id, value }) => [id, { ...value, approved: true }]);
  return new langgraph.Command({ resume: Object.fromEntries(answers) });
}

async function parkedIn(agent, config) {
  return (await agent.graph.getState(config)).tasks.flatMap(({ interrupts }) => interrupts);
}

async function agentOf(plan, checkpointer, client) {
  const { variant, hook, onEscalate } = plan.case;
  const settings = { ...settingsOf(plan), ...(onEscalate === "park" && { interrupt: langgraph.interrupt }) };
  const guard = (tools, more) => (hook === "absent" ? tools : guarded(tools, { ...settings, ...more }));
  const model = new ChatOpenAI({
    model: "m",
    apiKey: "not-a-key",
    configuration: { baseURL: `${plan.model}/v1` },
    maxRetries: 0,
    useResponsesApi: variant !== "other-protocol",
    streaming: plan.case.isStreamed ?? false,
  });
  const inner = langchain.createAgent({ model, tools: guard(ownTools(plan)) });
  const provided = variant === "provider-tool" ? [{ type: "web_search" }] : [];
  const tools = guard([...ownTools(plan), workerTool(inner), ...provided]);
  if (client !== undefined) tools.splice(0, 1, ...guard(await client.getTools("kit"), { server: "kit" }));
  if (kind === "LangGraph") return graphOf(plan, { model, tools, checkpointer });
  const middleware = variant === "second-hook" ? [rewriting()] : [];
  return langchain.createAgent({ model, tools, middleware, checkpointer });
}

/** A graph as its users write it. Each call is sent to the tools in a task of its own. */
function graphOf({ case: { variant } }, { model, tools, checkpointer }) {
  const { StateGraph, MessagesAnnotation, Send, END } = langgraph;
  const bound = model.bindTools(tools);
  const changed = (call) => (variant === "second-hook" ? { ...call, args: { amount: 900 } } : call);
  const next = ({ messages }) => {
    const calls = messages.at(-1).tool_calls ?? [];
    return calls.length === 0 ? END : calls.map((call) => new Send("tools", { messages, lg_tool_call: changed(call) }));
  };
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }) => ({ messages: [await bound.invoke(messages)] }))
    .addNode("tools", new prebuilt.ToolNode(tools))
    .addEdge("__start__", "model")
    .addConditionalEdges("model", next, ["tools", END])
    .addEdge("tools", "model")
    .compile({ checkpointer });
  return Object.assign(graph, { graph });
}

function rewriting() {
  return langchain.createMiddleware({
    name: "rewriting",
    wrapToolCall: (request, handler) =>
      handler({ ...request, toolCall: { ...request.toolCall, args: { amount: 900 } } }),
  });
}

function ownTools(plan) {
  const { pay, shell } = toolsOf(plan);
  const command = z.object({ command: z.string(), description: z.string().optional() });
  return [
    langchain.tool(pay, { name: "pay", description: "Pays.", schema: z.object({ amount: z.number() }).strict() }),
    langchain.tool(shell, { name: "shell", description: "Runs a command.", schema: command }),
  ];
}

function workerTool(inner) {
  const work = async ({ prompt }) =>
    (await inner.invoke({ messages: [{ role: "user", content: prompt }] })).messages.at(-1).text;
  return langchain.tool(work, { name: "worker", description: "Works.", schema: z.object({ prompt: z.string() }) });
}

function mcpClient({ payServer: [command, ...args] }) {
  return new MultiServerMCPClient({ mcpServers: { kit: { command, args, transport: "stdio" } } });
}
