/** Drives the Vercel AI SDK 5, 6 and 7. */
import type { Driver } from "../case.ts";
import { excuseOf, frameworkNode, javascriptIn, toolsOf } from "./library.ts";
import { openWorker, program } from "./worker.ts";

const packageIn = { 5: "ai-5", 6: "ai-6", 7: "ai" } as const;

export const aiSdk: readonly Driver[] = ([7, 6, 5] as const).map((major) => {
  const { folder, version, missing } = javascriptIn(packageIn[major]);
  return {
    name: `Vercel AI SDK ${major}`,
    page: "ai-sdk.md",
    version,
    hasPermissions: false,
    tools: toolsOf({ agent: "worker", web: "web_search", mcp: "pay" }),
    missing,
    excuse: (one) => (major === 5 && one.onEscalate === "park" ? "the SDK 5 cannot park a call" : excuseOf(one)),
    open: (place) => openWorker([frameworkNode, program("ai-sdk.mjs"), String(major), folder], place),
  };
});
