import type { Driver } from "../case.ts";
import { agentFramework } from "./agent-framework.ts";
import { agentSdk } from "./agent-sdk.ts";
import { aiSdk } from "./ai-sdk.ts";
import { claudeCode } from "./claude-code.ts";
import { crewai } from "./crewai.ts";
import { googleAdk } from "./google-adk.ts";
import { llamaIndex } from "./llama-index.ts";
import { mastra } from "./mastra.ts";
import { pydanticAi } from "./pydantic-ai.ts";
import { smolagents } from "./smolagents.ts";

/** Every host of the kit. */
export const drivers: readonly Driver[] = [...claudeCode, ...agentSdk, ...aiSdk, crewai, ...googleAdk, llamaIndex, mastra, agentFramework, pydanticAi, ...smolagents];
