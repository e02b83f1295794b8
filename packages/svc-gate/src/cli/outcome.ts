import { whyNot } from "../gate/mod.ts";

/** What a command prints, and how it ends. */
export interface Outcome {
  readonly exitCode: number;
  /** Empty where the command has written what it had to write. */
  readonly text: string;
  /** A program reads it: it goes to standard output, whatever the exit code. */
  readonly forPrograms?: boolean;
}

/** A file that was to be written, and cannot be. */
export function notWritten(file: string, error: unknown): BadInput {
  const isNowhere = (error as NodeJS.ErrnoException).code === "ENOENT";
  return new BadInput(`${file} cannot be written: ${isNowhere ? "there is no such folder" : whyNot(error)}`);
}

/** What the caller of a command can mend, in one sentence: exit code 2. */
export class BadInput extends Error {}
