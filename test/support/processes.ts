import { readFileSync } from "node:fs";

/** On SIGINT and SIGTERM, kills all processes that this one has started, and then aborts the signal that it returns. */
export function killOnInterrupt(): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      descendantsOf(process.pid).forEach(killProcess);
      interrupted.abort();
    });
  }
  return interrupted.signal;
}

/** Returns the processes that a process has started, and theirs, parents first. Only Linux lists them. */
export function descendantsOf(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

export function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}
