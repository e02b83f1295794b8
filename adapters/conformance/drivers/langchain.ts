/** Drives LangChain, and a graph of LangGraph with its ToolNode, in JavaScript and Python. */
import type { Driver } from "../case.ts";
import { excuseOf, frameworkNode, javascriptIn, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const inVenv = "libraries/langchain";
const packageOf = { LangChain: "langchain", LangGraph: "@langchain/langgraph" } as const;

const inJavaScript: readonly Driver[] = (["LangChain", "LangGraph"] as const).map((kind) => {
  const { folder, version, missing } = javascriptIn(packageOf[kind]);
  return {
    name: `${kind}.js`,
    page: "langchain.md",
    version,
    hasPermissions: false,
    tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
    missing,
    excuse: excuseOf,
    open: (place) => openWorker([frameworkNode, program("langchain.mjs"), kind, folder], place),
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
