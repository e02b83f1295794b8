/** Drives the Vercel AI SDK 5, 6 and 7. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver } from "../case.ts";
import { installed } from "../hosts.ts";
import { excuseOf, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const folder = installed("libraries/javascript");
const packageIn = { 5: "ai-5", 6: "ai-6", 7: "ai" } as const;

export const aiSdk: readonly Driver[] = ([7, 6, 5] as const).map((major) => {
  const manifest = join(folder, "node_modules", packageIn[major], "package.json");
  return {
    name: `Vercel AI SDK ${major}`,
    page: "ai-sdk.md",
    version: () => JSON.parse(readFileSync(manifest, "utf8")).version,
    hasPermissions: false,
    tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
    missing: () => (existsSync(manifest) ? undefined : "the SDK is not installed: run npm run hosts"),
    excuse: (one) => (major === 5 && one.onEscalate === "park" ? "the SDK 5 cannot park a call" : excuseOf(one)),
    open: (place) => openWorker([process.execPath, program("ai-sdk.mjs"), String(major), folder], place),
  };
});
