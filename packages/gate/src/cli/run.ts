import { KeyFileDamaged, NoSuchFile, StartRefused, whyNot } from "../server/errors.ts";
import { LedgerRefused } from "../ledger/errors.ts";
import { io } from "./io.ts";
import { BadInput, type Outcome } from "./outcome.ts";

/**
 * Runs a command. An error that the operator can fix is one sentence and an exit code; any other is a fault with its
 * stack.
 *
 * @param isServing a gate that cannot use its files has failed, and a command has been given the wrong ones
 */
export async function run(command: () => Promise<Outcome>, isServing = false): Promise<void> {
  const call = io();
  try {
    const { exitCode, text, forPrograms = false } = await command();
    const stream = exitCode === 0 || forPrograms ? call.stdout : call.stderr;
    if (text !== "") await new Promise<void>((resolve) => stream.write(`${text}\n`, () => resolve()));
    call.exitCode = exitCode;
  } catch (error) {
    call.stderr.write(`svc-gate: ${sentence(error, isServing)}\n`);
    call.exitCode = exitCodeOf(error, isServing);
  }
}

/** The action of a command of the command line. Its code is loaded when it is called. */
export function calls<Words extends readonly unknown[]>(
  load: () => Promise<(...words: Words) => Promise<Outcome>>,
): (...words: Words) => Promise<void> {
  return (...words) => run(async () => (await load())(...words));
}

/** 2 if the caller can fix the input, 1 if a start is refused or something is broken. */
function exitCodeOf(error: unknown, isServing: boolean): number {
  if (error instanceof StartRefused) return error.exitCode;
  if (error instanceof NoSuchFile || error instanceof BadInput) return 2;
  return !isServing && (error instanceof LedgerRefused || isOfFile(error)) ? 2 : 1;
}

/** A given path, or a file below it, cannot be read or written. */
function isOfFile(error: unknown): error is NodeJS.ErrnoException & { readonly path: string } {
  const { code = "", path } = error as NodeJS.ErrnoException;
  return path !== undefined && ["ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "EACCES", "EPERM", "EROFS"].includes(code);
}

function sentence(error: unknown, isServing: boolean): string {
  const mendable = [LedgerRefused, StartRefused, NoSuchFile, KeyFileDamaged, BadInput];
  if (mendable.some((kind) => error instanceof kind)) return (error as Error).message;
  if (!isServing && isOfFile(error)) return `${error.path} cannot be used: ${whyNot(error)}`;
  return `a fault; the gate stops. ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
