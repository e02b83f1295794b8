import type { Driver } from "../case.ts";
import { agentSdk } from "./agent-sdk.ts";
import { aiSdk } from "./ai-sdk.ts";
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { copilotCli } from "./copilot-cli.ts";
import { geminiCli } from "./gemini-cli.ts";
import { mastra } from "./mastra.ts";
import { opencode } from "./opencode.ts";

/** Every host of the kit. */
export const drivers: readonly Driver[] = [
  ...claudeCode,
  codex,
  geminiCli,
  copilotCli,
  opencode,
  ...agentSdk,
  ...aiSdk,
  mastra,
];
