/** Drives LlamaIndex. */
import type { Driver } from "../case.ts";
import { excuseOf, pythonIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const python = pythonIn("libraries/python-openai-2", "llama-index-core");

export const llamaIndex: Driver = {
  name: "LlamaIndex",
  page: "llama-index.md",
  hasPermissions: false,
  tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
  version: python.version,
  missing: python.missing,
  excuse: (one) =>
    one.variant === "handoff"
      ? "the tool of a handoff has arguments of its own: another test covers it"
      : excuseOf(one),
  open: (place) => openWorker([python.path, "-B", program("llama_index_run.py")], place),
};
