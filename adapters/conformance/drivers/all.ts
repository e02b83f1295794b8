import type { Driver } from "../case.ts";
import { agentSdk } from "./agent-sdk.ts";
import { aiSdk } from "./ai-sdk.ts";
import { claudeCode } from "./claude-code.ts";
import { mastra } from "./mastra.ts";

/** Every host of the kit. */
export const drivers: readonly Driver[] = [...claudeCode, ...agentSdk, ...aiSdk, mastra];
