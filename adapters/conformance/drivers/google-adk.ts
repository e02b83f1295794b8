/** Drives Google's Agent Development Kit for Python. */
import type { Driver } from "../case.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/python", "google-adk");

/** An agent as a tool has one argument. */
function inputOf(tool: string, input: string): string {
  return tool === "agent" ? JSON.stringify({ request: JSON.parse(input).prompt }) : input;
}

export const googleAdk: readonly Driver[] = [
  {
    name: "Google ADK, Python",
    page: "google-adk.md",
    hasPermissions: false,
    tools: toolsOf({ agent: "worker", web: "google_search", mcp: "kit_pay" }),
    inputOf,
    version: python.version,
    missing: python.missing,
    excuse: (one) => (one.variant === "other-protocol" ? "the framework speaks one protocol" : excuseOf(one)),
    open: (place) => openWorker([python.path, "-B", program("google_adk_run.py")], place),
  },
];
