/**
 * Goal: `svc-gate doctor` says the truth about the released opencode. Method: it drives it with the settings that `hook
 * install` writes, or that its page has. Positive control: with settings without the gate's hook, a BLOCK runs and the
 * doctor says so.
 */
import { join } from "node:path";
import { modules, testDoctor } from "../../support/doctor-suite.ts";

testDoctor("opencode", {
  program: join(modules, `opencode-${process.platform}-${process.arch}`, "bin", "opencode"),
  shell: "bash",
  file: ".config/opencode/opencode.json",
  open: ["project-allows-pure"],
  without: { permission: "allow" },
  closedWithout: ["allow"],
});
