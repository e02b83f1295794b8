import { KeyFileDamaged, NoSuchFile, StartRefused } from "../gate/mod.ts";
import { LedgerRefused } from "../ledger/mod.ts";
import { BadInput, type Outcome } from "./outcome.ts";

/** Runs a command; what the operator can mend is one sentence and an exit code, anything else is a fault with its stack. */
export async function run(command: () => Promise<Outcome>): Promise<void> {
  try {
    const { exitCode, text, forPrograms = false } = await command();
    const stream = exitCode === 0 || forPrograms ? process.stdout : process.stderr;
    if (text !== "") await new Promise<void>((resolve) => stream.write(`${text}\n`, () => resolve()));
    // What a library leaves behind (a solver's threads) must not keep a finished command from ending.
    process.exit(exitCode);
  } catch (error) {
    process.stderr.write(`svc-gate: ${sentence(error)}\n`);
    process.exit(exitCodeOf(error));
  }
}

/** 2 where somebody can mend what was given, 1 where a start is refused or something is broken. */
function exitCodeOf(error: unknown): number {
  if (error instanceof StartRefused) return error.exitCode;
  const isServing = process.argv[2] === "serve";
  return error instanceof NoSuchFile || error instanceof BadInput || (error instanceof LedgerRefused && !isServing)
    ? 2
    : 1;
}

function sentence(error: unknown): string {
  const mendable = [LedgerRefused, StartRefused, NoSuchFile, KeyFileDamaged, BadInput];
  if (mendable.some((kind) => error instanceof kind)) return (error as Error).message;
  return `a fault; nothing more is answered. ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
