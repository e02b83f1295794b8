/**
 * Goal: `svc-gate doctor` says the truth about the released Codex, Gemini CLI and Copilot CLI. Method: it drives each with
 * the settings that `hook install` writes, or that its page has. Positive control: with settings without the gate's hook,
 * a BLOCK runs and the doctor says so.
 */
import { join } from "node:path";
import { modules, testDoctor, type DoctoredHost } from "../../support/doctor-suite.ts";

const hosts: Readonly<Record<string, DoctoredHost>> = {
  codex: {
    program: join(modules, ".bin", "codex"),
    shell: "Bash",
    file: ".codex/hooks.json",
    open: ["no-hook", "project-off", "option-off"],
    without: {},
    closedWithout: ["allow"],
  },
  "gemini-cli": {
    program: join(modules, ".bin", "gemini"),
    shell: "run_shell_command",
    file: ".gemini/settings.json",
    open: ["no-hook", "project-off", "project-names"],
    without: {},
    closedWithout: ["allow"],
  },
  "copilot-cli": {
    program: join(modules, `@github/copilot-${process.platform}-${process.arch}`, "copilot"),
    shell: "bash",
    file: ".copilot/hooks/svc-gate.json",
    open: ["project-allows"],
    without: { version: 1, hooks: {} },
    // The host is started without allowed tools, so nothing runs, not even an ALLOW.
    closedWithout: ["block", "block-write", "closed", "broken", "empty", "no-hook", "project-off"],
  },
};

for (const [agent, host] of Object.entries(hosts)) testDoctor(agent, host);
