import type { Driver } from "../case.ts";
import { agentFramework } from "./agent-framework.ts";
import { agentSdk } from "./agent-sdk.ts";
import { aiSdk } from "./ai-sdk.ts";
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { copilotCli } from "./copilot-cli.ts";
import { crewai } from "./crewai.ts";
import { geminiCli } from "./gemini-cli.ts";
import { googleAdk } from "./google-adk.ts";
import { langchain } from "./langchain.ts";
import { llamaIndex } from "./llama-index.ts";
import { mastra } from "./mastra.ts";
import { openaiAgents } from "./openai-agents.ts";
import { opencode } from "./opencode.ts";
import { pydanticAi } from "./pydantic-ai.ts";
import { smolagents } from "./smolagents.ts";

/** Hosts that run as programs of their own. */
export const programs: readonly Driver[] = [...claudeCode, codex, geminiCli, copilotCli, opencode];

/** Hosts that are libraries of a program. */
export const libraries: readonly Driver[] = [
  ...agentSdk,
  ...aiSdk,
  crewai,
  ...googleAdk,
  ...langchain,
  llamaIndex,
  mastra,
  agentFramework,
  ...openaiAgents,
  pydanticAi,
  ...smolagents,
];

/** Every host of the kit. */
export const drivers: readonly Driver[] = [...programs, ...libraries];
