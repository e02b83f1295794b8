/** Drives Google's Agent Development Kit for Python and for JavaScript. */
import type { Driver, HostCase } from "../case.ts";
import { excuseOf, frameworkNode, javascriptIn, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/python", "google-adk");
const javascript = javascriptIn("@google/adk");

const notParked =
  "the adapter does not park runs, because ADK then drops the results of the other calls of the batch " +
  "([minimal example](../../adapters/conformance/repros/adk-confirmation-drops-results.mjs))";

const both: Pick<Driver, "page" | "hasPermissions" | "tools" | "inputOf" | "excuse"> = {
  page: "google-adk.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "google_search", mcp: "kit_pay" }),
  inputOf,
  excuse,
};

export const googleAdk: readonly Driver[] = [
  {
    ...both,
    name: "Google ADK, JavaScript",
    excuse: (one) => (one.onEscalate === "park" ? notParked : excuse(one)),
    version: javascript.version,
    missing: javascript.missing,
    open: (place) => openWorker([frameworkNode, program("google-adk.mjs"), javascript.folder], place),
  },
  {
    ...both,
    name: "Google ADK, Python",
    version: python.version,
    missing: python.missing,
    open: (place) => openWorker([python.path, "-B", program("google_adk_run.py")], place),
  },
];

function excuse(one: HostCase): string | undefined {
  return one.variant === "other-protocol" ? "the framework speaks one protocol" : excuseOf(one);
}

/** An agent as a tool has one argument. The protocol has arguments as an object of the answer, so they cannot be cut. */
function inputOf(tool: string, input: string): string {
  if (tool === "agent") return JSON.stringify({ request: JSON.parse(input).prompt });
  return input.endsWith("}") ? input : "{}";
}
