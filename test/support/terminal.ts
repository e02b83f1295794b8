/** A person's terminal: an interactive `sh`, into which a test pastes and types. It needs `script`, as Linux has it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { hasProgram } from "./page-commands.ts";

export const noTerminal: string | false =
  process.platform === "linux" && hasProgram("script") ? false : "this needs the command `script` of Linux";

/** What a person types after a paste, and the question that it answers; without a question it is typed at once. */
export interface Typed {
  readonly after?: RegExp;
  readonly text: string;
}

const waitMs = 30_000;

/** Pastes a text, types the rest, and leaves the shell. @returns all that the terminal shows, and the last exit code */
export async function paste(
  text: string,
  typed: readonly Typed[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<{ readonly shown: string; readonly code: number }> {
  const env = { ...options.env, PS1: "$ ", TERM: "dumb" };
  const child = spawn("script", ["-qfec", "sh -i", "/dev/null"], { ...options, env, stdio: "pipe", detached: true });
  const closed = once(child, "close");
  let shown = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (shown += String(piece)));
  child.stdin.on("error", () => undefined);
  const until = async (pattern: RegExp): Promise<void> => {
    const end = Date.now() + waitMs;
    while (!pattern.test(shown)) {
      if (Date.now() > end || child.exitCode !== null) throw new Error(`${pattern} was not shown:\n${shown}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  try {
    await until(/^\$ $/);
    child.stdin.write(text);
    for (const { after, text: answer } of typed) {
      if (after !== undefined) await until(after);
      child.stdin.write(answer);
      if (after !== undefined) await until(/\n\$ $/); // a program that has asked may read more than its answer
    }
    child.stdin.write('echo "code $?."\n');
    await until(/code \d+\./);
    child.stdin.end("exit\n");
    await closed;
  } finally {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  }
  return { shown: shown.replaceAll("\r", ""), code: Number(/code (\d+)\./.exec(shown)?.[1]) };
}
