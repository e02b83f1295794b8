/** Drives smolagents: its agent that calls tools, and its agent that writes code. */
import type { Driver } from "../case.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/crewai", "smolagents");

export const smolagents: readonly Driver[] = ["ToolCallingAgent", "CodeAgent"].map((agent) => ({
  name: `smolagents, ${agent}`,
  page: "smolagents.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
  /** A managed agent has one argument. */
  inputOf: (tool, input) => (tool === "agent" ? JSON.stringify({ task: JSON.parse(input).prompt }) : input),
  version: python.version,
  missing: python.missing,
  excuse: (one) =>
    excuseOf(one) ??
    (one.onEscalate === "park" ? "the framework cannot park a run" : undefined) ??
    (one.variant === "other-protocol" ? "the framework has one protocol to this model" : undefined),
  open: (place) => openWorker([python.path, "-B", program("smolagents_run.py"), agent], place),
}));
