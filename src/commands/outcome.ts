/** What a command prints, and how it ends. */
export interface Outcome {
  readonly exitCode: number;
  readonly text: string;
  /** A program reads it: it goes to standard output, whatever the exit code. */
  readonly forPrograms?: boolean;
}
