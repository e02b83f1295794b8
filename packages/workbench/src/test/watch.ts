import { watch as watchFolder, type FSWatcher } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { NoSuchFile } from "../../../gate/src/server/errors.ts";
import { io, BadInput, type Outcome } from "../../../gate/src/cli/mod.ts";

/** The result of one run, and the folders whose files affect it. */
export interface TestRunResult {
  readonly outcome: Outcome;
  readonly folders: readonly string[];
}

/** Editors write a file in several steps: the run follows the last of them. */
const quietMs = 100;
const clearScreen = "\u001b[2J\u001b[3J\u001b[H";

/** Runs, and runs again whenever a YAML file changes, until Ctrl-C or SIGTERM; the outcome is that of the last run. */
export async function watch(run: () => Promise<TestRunResult>): Promise<Outcome> {
  const watchers = new Map<string, FSWatcher>();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<"stop">();
  let changed = Promise.withResolvers<void>();
  const onChange = (_event: string, name: string | null): void => {
    if (name === null || /\.ya?ml$/.test(name)) changed.resolve();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) io().once(signal, () => stop("stop"));
  let last: Outcome;
  do {
    changed = Promise.withResolvers();
    const { outcome, folders } = watchers.size === 0 ? await run() : await runAnyway(run);
    for (const folder of folders) if (!watchers.has(folder)) watchers.set(folder, watchFolder(folder, onChange));
    last = outcome;
    const clear = io().stdout.isTTY ? clearScreen : "";
    io().stdout.write(`${clear}${outcome.text}\n\nwaiting for a change; Ctrl-C ends it\n`);
  } while ((await Promise.race([stopped, changed.promise.then(() => setTimeout(quietMs))])) !== "stop");
  for (const watcher of watchers.values()) watcher.close();
  return { ...last, text: "stopped", forPrograms: true };
}

/** A file that is missing for a moment does not end the watch. */
async function runAnyway(run: () => Promise<TestRunResult>): Promise<TestRunResult> {
  try {
    return await run();
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === "ENOENT";
    if (!(error instanceof BadInput || error instanceof NoSuchFile || isGone)) throw error;
    return { outcome: { exitCode: 2, text: (error as Error).message }, folders: [] };
  }
}
