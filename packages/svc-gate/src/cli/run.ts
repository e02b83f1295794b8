import { KeyFileDamaged, NoSuchFile, StartRefused, whyNot } from "../gate/mod.ts";
import { LedgerRefused } from "../ledger/mod.ts";
import { BadInput, type Outcome } from "./outcome.ts";

/**
 * Runs a command. An error that the operator can fix is one sentence and an exit code; any other is a fault with its
 * stack.
 */
export async function run(command: () => Promise<Outcome>): Promise<void> {
  try {
    const { exitCode, text, forPrograms = false } = await command();
    const stream = exitCode === 0 || forPrograms ? process.stdout : process.stderr;
    if (text !== "") await new Promise<void>((resolve) => stream.write(`${text}\n`, () => resolve()));
    // Resources that a library leaves open (a solver's threads) must not keep a finished command running.
    process.exit(exitCode);
  } catch (error) {
    process.stderr.write(`svc-gate: ${sentence(error)}\n`);
    process.exit(exitCodeOf(error));
  }
}

/** 2 if the caller can fix the input, 1 if a start is refused or something is broken. */
function exitCodeOf(error: unknown): number {
  if (error instanceof StartRefused) return error.exitCode;
  if (error instanceof NoSuchFile || error instanceof BadInput) return 2;
  return !isServing() && (error instanceof LedgerRefused || isOfFile(error)) ? 2 : 1;
}

const isServing = (): boolean => process.argv[2] === "serve";

/** A given path, or a file below it, cannot be read or written. */
function isOfFile(error: unknown): error is NodeJS.ErrnoException & { readonly path: string } {
  const { code = "", path } = error as NodeJS.ErrnoException;
  return path !== undefined && ["ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "EACCES", "EPERM", "EROFS"].includes(code);
}

function sentence(error: unknown): string {
  const mendable = [LedgerRefused, StartRefused, NoSuchFile, KeyFileDamaged, BadInput];
  if (mendable.some((kind) => error instanceof kind)) return (error as Error).message;
  if (!isServing() && isOfFile(error)) return `${error.path} cannot be used: ${whyNot(error)}`;
  return `a fault; the gate stops. ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
