import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Term } from "./term.ts";

/**
 * The solver's answer to a question: no model exists, a model exists (the values of the constants), or it does not
 * know.
 */
export type SolverAnswer = { readonly kind: "no" | "unknown" } | { readonly kind: "yes"; readonly model: string };

/** An SMT solver. It has threads: the code that opens it must close it. */
export interface Solver {
  /**
   * @param text declarations and assertions in SMT-LIB 2.6
   * @param constants the constants whose values a "yes" includes
   */
  readonly ask: (text: string, constants: readonly Term[], timeMs: number) => Promise<SolverAnswer>;
  /** Starts the solver, so that its start does not count towards the time of a question. */
  readonly ready: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Finds `z3-solver`, which is loaded with the first question; undefined if it is not installed. */
export async function openSolver(): Promise<Solver | undefined> {
  try {
    import.meta.resolve("z3-solver");
    return new Z3Solver();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** The extra time for a question before its thread is terminated. */
const graceMs = 1000;

/**
 * The solver in a separate thread. If it does not finish, its thread is terminated, and the next question starts a new
 * one.
 */
class Z3Solver implements Solver {
  #thread: Worker | undefined;

  ready = async (): Promise<void> => {
    await this.#startThread();
  };

  async #startThread(): Promise<Worker> {
    if (this.#thread !== undefined) return this.#thread;
    const thread = new Worker(new URL("solver-thread.ts", import.meta.url));
    this.#thread = thread;
    await once(thread, "message");
    return thread;
  }

  ask = async (text: string, constants: readonly Term[], timeMs: number): Promise<SolverAnswer> => {
    const thread = await this.#startThread();
    const values = constants.length === 0 ? "" : `(get-value (${constants.join(" ")}))`;
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    const timer = setTimeout(() => resolve(undefined), timeMs + graceMs);
    thread.once("message", resolve);
    thread.once("error", reject);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    thread.postMessage(`(set-option :timeout ${Math.ceil(timeMs)})\n${text}\n(check-sat)\n${values}`);
    try {
      const answer = await promise;
      if (answer === undefined) await this.close();
      return read(answer ?? "unknown");
    } finally {
      clearTimeout(timer);
      thread.off("message", resolve);
      thread.off("error", reject);
    }
  };

  close = async (): Promise<void> => {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  };
}

function read(answer: string): SolverAnswer {
  if (/^unsat\b/.test(answer)) return { kind: "no" };
  // An error instead of the values: the solver gave up between its answer and the values.
  const hasModel = answer.startsWith("sat\n") && !answer.startsWith("sat\n(error");
  return hasModel ? { kind: "yes", model: answer.slice(4) } : { kind: "unknown" };
}
