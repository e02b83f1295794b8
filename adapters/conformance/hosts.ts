import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folders of the kit in which hosts are installed, each with its own lock. */
export const folders = [
  "hosts",
  "libraries/javascript",
  "libraries/python",
  "libraries/python-openai-2",
  "libraries/crewai",
  "libraries/langchain",
] as const;

/** Returns such a folder: that of the lock file, or the same one below the folder that SVC_TEST_HOSTS names. */
export function installed(folder: (typeof folders)[number]): string {
  return join(process.env["SVC_TEST_HOSTS"] ?? fileURLToPath(new URL(".", import.meta.url)), folder);
}
