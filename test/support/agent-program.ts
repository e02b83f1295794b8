/**
 * The agent's package as its users have it: built, on the oldest Node that it promises (npm brings it; on another platform
 * than Linux on x64 it is the present Node). With a planted defect, the sources run on the present Node.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeOf } from "../../clients/conformance/runtimes.ts";
import { compiled, root } from "./gate.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { mutatedEnvironment, preload } from "./mutation/sources.ts";

/** The Node that runs the package. */
export const agentNode: string = nodeOf(20) ?? process.execPath;

let built: string | undefined;

/** The built package's entry. */
export function agentBin(): string {
  if (built === undefined) {
    const folder = mkdtempSync(join(tmpdir(), "svc-gate-agent-"));
    chmodSync(folder, 0o755); // A test may start the program as another user.
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    const build = ["--disable-warning=ExperimentalWarning", join(root, "tools", "build.ts"), "--to", folder, "agent"];
    execFileSync(process.execPath, build, { stdio: "ignore" });
    built = join(folder, "agent", "bin", "svc-gate.mjs");
  }
  return built;
}

export interface AgentProgram {
  /** A program and its first arguments; the words of the command follow. */
  readonly command: readonly [program: string, ...first: string[]];
  readonly env: Readonly<Record<string, string>>;
}

export function agentProgram(defects: readonly Mutation[] = []): AgentProgram {
  const env = { ...compiled, ...mutatedEnvironment(defects) };
  if (defects.length === 0) return { command: [agentNode, agentBin()], env };
  const source = join(root, "packages", "agent", "bin", "svc-gate.mjs");
  return { command: [process.execPath, "--import", preload, source], env };
}
