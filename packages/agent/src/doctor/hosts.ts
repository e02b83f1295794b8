/** The hosts that the doctor can start. Each has a file with all that differs. */
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { copilotCli } from "./copilot-cli.ts";
import { geminiCli } from "./gemini-cli.ts";
import type { DoctorHost } from "./host.ts";
import { opencode } from "./opencode.ts";

export const hosts: Readonly<Record<string, DoctorHost>> = {
  "claude-code": claudeCode,
  codex,
  "gemini-cli": geminiCli,
  "copilot-cli": copilotCli,
  opencode,
};
