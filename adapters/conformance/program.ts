import { spawn } from "node:child_process";

export interface ProgramOptions {
  readonly cwd: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** The text for its input; without it the input is empty. */
  readonly input?: string;
}

const secondsMax = 60;

/** Runs a program to its end. A program that hangs is killed with its children, and what it printed is returned. */
export async function runProgram(
  [command = "", ...words]: readonly string[],
  { cwd, env, input = "" }: ProgramOptions,
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const child = spawn(command, words, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (piece) => (stdout += String(piece)));
  child.stderr.on("data", (piece) => (stderr += String(piece)));
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const kill = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // The group has ended.
    }
  };
  const timer = setTimeout(kill, secondsMax * 1000);
  await new Promise<void>((resolve) => {
    child.on("error", (error) => {
      stderr += String(error);
      resolve();
    });
    child.on("close", () => resolve());
  });
  clearTimeout(timer);
  kill(); // commands in the background
  return { stdout, stderr };
}
