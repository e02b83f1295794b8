/** Drives Mastra. */
import type { Driver } from "../case.ts";
import { excuseOf, frameworkNode, javascriptIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const { folder, version, missing } = javascriptIn("@mastra/core");

export const mastra: Driver = {
  name: "Mastra",
  page: "mastra.md",
  version,
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "kit_pay" }),
  missing,
  excuse: excuseOf,
  open: (place) => openWorker([frameworkNode, program("mastra.mjs"), folder], place),
};
