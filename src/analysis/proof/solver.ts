import type { Z3HighLevel, Z3LowLevel } from "z3-solver";
import type { Term } from "./term.ts";

/** What the solver says of a question: nothing fulfils it, something does (the values of the constants), or it does not know. */
export type SolverAnswer = { readonly kind: "no" | "unknown" } | { readonly kind: "yes"; readonly model: string };

/** An SMT solver. It holds threads: whoever opens it closes it. */
export interface Solver {
  /**
   * @param text declarations and assertions in SMT-LIB 2.6
   * @param constants those whose values a "yes" gives
   */
  readonly ask: (text: string, constants: readonly Term[], timeMs: number) => Promise<SolverAnswer>;
  readonly close: () => Promise<void>;
}

/** Loads `z3-solver`; undefined where it is not installed. */
export async function openSolver(): Promise<Solver | undefined> {
  let library: typeof import("z3-solver");
  try {
    library = await import("z3-solver");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
  return new Z3Solver(library);
}

/** What a question may take beyond its time before its threads are ended. */
const graceMs = 1000;

type Running = Z3HighLevel & Z3LowLevel;

class Z3Solver implements Solver {
  readonly #library: typeof import("z3-solver");
  #running: Running | undefined;

  constructor(library: typeof import("z3-solver")) {
    this.#library = library;
  }

  ask = async (text: string, constants: readonly Term[], timeMs: number): Promise<SolverAnswer> => {
    const { Z3 } = (this.#running ??= await this.#library.init());
    const values = constants.length === 0 ? "" : `(get-value (${constants.join(" ")}))`;
    const question = `(set-option :timeout ${Math.ceil(timeMs)})\n${text}\n(check-sat)\n${values}`;
    // A context of its own: what one question leaves behind makes the answers to others hang on their order.
    const context = Z3.mk_context(Z3.mk_config());
    const answer = await within(Z3.eval_smtlib2_string(context, question), timeMs + graceMs);
    if (answer === undefined) await this.close();
    else Z3.del_context(context);
    return read(answer ?? "unknown");
  };

  close = async (): Promise<void> => {
    const running = this.#running;
    this.#running = undefined;
    if (running !== undefined) await this.#library.killThreads(running.em);
  };
}

function read(answer: string): SolverAnswer {
  if (/^unsat\b/m.test(answer) && !/^\(error (?!.*model is not available)/m.test(answer)) return { kind: "no" };
  const at = answer.indexOf("sat\n");
  return at === 0 ? { kind: "yes", model: answer.slice(4) } : { kind: "unknown" };
}

/** What a promise gives, or undefined when it takes too long. */
async function within<Result>(promise: Promise<Result>, timeMs: number): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
