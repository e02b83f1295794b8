/** Drives Mastra. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver } from "../case.ts";
import { installed } from "../hosts.ts";
import { excuseOf, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const folder = installed("libraries/javascript");
const manifest = join(folder, "node_modules", "@mastra", "core", "package.json");

export const mastra: Driver = {
  name: "Mastra",
  page: "mastra.md",
  version: () => JSON.parse(readFileSync(manifest, "utf8")).version,
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "kit_pay" }),
  missing: () => (existsSync(manifest) ? undefined : "the framework is not installed: run npm run hosts"),
  excuse: excuseOf,
  open: (place) => openWorker([process.execPath, program("mastra.mjs"), folder], place),
};
