import { AsyncLocalStorage } from "node:async_hooks";
import type { Readable, Writable } from "node:stream";

/** What a call of the command line has around it. `process` is one, and a test brings its own. */
export interface Io {
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  exitCode?: number | string | null | undefined;
  on(signal: Signal, listener: () => void): unknown;
  once(signal: Signal, listener: () => void): unknown;
}

type Signal = "SIGHUP" | "SIGINT" | "SIGTERM";
type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

const calls = new AsyncLocalStorage<Io>();

/** The surroundings of the call that is running; those of the process if a function is called without `main`. */
export function io(): Io {
  return calls.getStore() ?? process;
}

export function runWith<T>(given: Io, call: () => Promise<T>): Promise<T> {
  return calls.run(given, call);
}
