/** Drives LangChain.js, and a graph of LangGraph.js with its ToolNode. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver } from "../case.ts";
import { installed } from "../hosts.ts";
import { excuseOf, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const folder = installed("libraries/javascript");
const packageOf = { LangChain: "langchain", LangGraph: "@langchain/langgraph" } as const;

export const langchain: readonly Driver[] = (["LangChain", "LangGraph"] as const).map((kind) => {
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
