/** Drives CrewAI. Its reports to the vendor are off, by the variables of its documentation. */
import type { Driver } from "../case.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/crewai", "crewai");
const quiet = { CREWAI_DISABLE_TELEMETRY: "true", CREWAI_TRACING_ENABLED: "false", OTEL_SDK_DISABLED: "true" };

export const crewai: Driver = {
  name: "CrewAI",
  page: "crewai.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "delegate_work_to_coworker", web: "web_search", mcp: "pay" }),
  inputOf: (tool, input) =>
    tool === "agent" ? JSON.stringify({ task: JSON.parse(input).prompt, context: "none", coworker: "worker" }) : input,
  version: python.version,
  missing: python.missing,
  excuse: (one) => excuseOf(one) ?? (one.onEscalate === "park" ? "the framework cannot park a run" : undefined),
  open: (place) =>
    openWorker([python.path, "-B", program("crewai_run.py")], { ...place, env: { ...place.env, ...quiet } }),
};
