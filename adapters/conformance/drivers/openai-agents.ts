/** Drives the OpenAI Agents SDK, in JavaScript and in Python. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver } from "../case.ts";
import { installed } from "../hosts.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const page = "openai-agents.md";
const tools = toolsOf({ agent: "worker", web: "web_search", mcp: "mcp_kit__pay" });
/** An agent as a tool has one argument. */
const inputOf: Driver["inputOf"] = (tool, input) =>
  tool === "agent" ? JSON.stringify({ input: JSON.parse(input).prompt }) : input;

const javascriptFolder = installed("libraries/javascript");
const manifest = join(javascriptFolder, "node_modules", "@openai", "agents", "package.json");

const python = pythonIn("libraries/python", "openai-agents");

export const openaiAgents: readonly Driver[] = [
  {
    name: "OpenAI Agents SDK, JavaScript",
    page,
    version: () => JSON.parse(readFileSync(manifest, "utf8")).version,
    hasPermissions: false,
    tools,
    inputOf,
    missing: () => (existsSync(manifest) ? undefined : "the SDK is not installed: run npm run hosts"),
    excuse: (one) => (one.variant === "handoff" ? undefined : excuseOf(one)),
    open: (place) => openWorker([process.execPath, program("openai-agents.mjs"), javascriptFolder], place),
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
