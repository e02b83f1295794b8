/** Drives LangChain, and a graph of LangGraph with its ToolNode, in JavaScript and Python. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver } from "../case.ts";
import { installed } from "../hosts.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const folder = installed("libraries/javascript");
const inVenv = "libraries/langchain";
const packageOf = { LangChain: "langchain", LangGraph: "@langchain/langgraph" } as const;

const inJavaScript: readonly Driver[] = (["LangChain", "LangGraph"] as const).map((kind) => {
  const manifest = join(folder, "node_modules", packageOf[kind], "package.json");
  return {
    name: `${kind}.js`,
    page: "langchain.md",
    version: () => JSON.parse(readFileSync(manifest, "utf8")).version,
    hasPermissions: false,
    tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
    missing: () => (existsSync(manifest) ? undefined : "the framework is not installed: run npm run hosts"),
    excuse: excuseOf,
    open: (place) => openWorker([process.execPath, program("langchain.mjs"), kind, folder], place),
  };
});

const python = { LangChain: pythonIn(inVenv, "langchain"), LangGraph: pythonIn(inVenv, "langgraph") } as const;

const inPython: readonly Driver[] = (["LangChain", "LangGraph"] as const).map((kind) => ({
  name: `${kind}, Python`,
  page: "langchain.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
  version: python[kind].version,
  missing: python[kind].missing,
  excuse: excuseOf,
  open: (place) => openWorker([python[kind].path, "-B", program("langchain_run.py"), kind], place),
}));

export const langchain: readonly Driver[] = [...inJavaScript, ...inPython];
