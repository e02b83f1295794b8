/** Drives Microsoft Agent Framework for Python. */
import type { Driver } from "../case.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/python-openai-2", "agent-framework-core");

export const agentFramework: Driver = {
  name: "Microsoft Agent Framework",
  page: "agent-framework.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "kit_pay" }),
  /** An agent as a tool has one argument. */
  inputOf: (tool, input) => (tool === "agent" ? JSON.stringify({ prompt: JSON.parse(input).prompt }) : input),
  version: python.version,
  missing: python.missing,
  excuse: excuseOf,
  open: (place) => openWorker([python.path, "-B", program("agent_framework_run.py")], place),
};
