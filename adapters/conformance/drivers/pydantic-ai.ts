/** Drives Pydantic AI. */
import type { Driver } from "../case.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/python", "pydantic-ai-slim");

export const pydanticAi: Driver = {
  name: "Pydantic AI",
  page: "pydantic-ai.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "kit_pay" }),
  version: python.version,
  missing: python.missing,
  excuse: excuseOf,
  open: (place) => openWorker([python.path, "-B", program("pydantic_ai_run.py")], place),
};
