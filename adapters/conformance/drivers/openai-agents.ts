/** Drives the OpenAI Agents SDK, in JavaScript and in Python. */
import type { Driver } from "../case.ts";
import { excuseOf, frameworkNode, javascriptIn, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const page = "openai-agents.md";
const tools = toolsOf({ agent: "worker", web: "web_search", mcp: "mcp_kit__pay" });
/** An agent as a tool has one argument. */
const inputOf: Driver["inputOf"] = (tool, input) =>
  tool === "agent" ? JSON.stringify({ input: JSON.parse(input).prompt }) : input;

const javascript = javascriptIn("@openai/agents");
const python = pythonIn("libraries/python", "openai-agents");

export const openaiAgents: readonly Driver[] = [
  {
    name: "OpenAI Agents SDK, JavaScript",
    page,
    version: javascript.version,
    hasPermissions: false,
    tools,
    inputOf,
    missing: javascript.missing,
    excuse: (one) => (one.variant === "handoff" ? undefined : excuseOf(one)),
    open: (place) => openWorker([frameworkNode, program("openai-agents.mjs"), javascript.folder], place),
  },
  {
    name: "OpenAI Agents SDK, Python",
    page,
    version: python.version,
    hasPermissions: false,
    tools,
    inputOf,
    missing: python.missing,
    excuse: (one) => (one.variant === "handoff" ? undefined : excuseOf(one)),
    open: (place) => openWorker([python.path, "-B", program("openai_agents_run.py")], place),
  },
];
