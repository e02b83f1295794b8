/** The hosts that `hook install` can set up. */
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { copilotCli } from "./copilot-cli.ts";
import { geminiCli } from "./gemini-cli.ts";
import type { Host } from "./host.ts";

export const hosts: Readonly<Record<string, Host>> = {
  "claude-code": claudeCode,
  codex,
  "gemini-cli": geminiCli,
  "copilot-cli": copilotCli,
};
