/** What a command prints, and how it ends. */
export interface Outcome {
  readonly exitCode: number;
  /** Empty where the command has written what it had to write. */
  readonly text: string;
  /** A program reads it: it goes to standard output, whatever the exit code. */
  readonly forPrograms?: boolean;
}

/** What the caller of a command can mend, in one sentence: exit code 2. */
export class BadInput extends Error {}
