import { readFile } from "node:fs/promises";
import { whyNot } from "../server/errors.ts";

/** The output of a command, and how it ends. */
export interface Outcome {
  readonly exitCode: number;
  /** Empty if the command has already written its output. */
  readonly text: string;
  /** A program reads it: it goes to standard output, whatever the exit code. */
  readonly forPrograms?: boolean;
}

/** Reads a file that the caller of a command names. @throws {BadInput} if it cannot be read */
export async function readText(file: string): Promise<string> {
  return readFile(file, "utf8").catch((error: unknown) => {
    throw new BadInput(`${file} cannot be read: ${whyNot(error)}`);
  });
}

/** The error for a file that cannot be written. */
export function notWritten(file: string, error: unknown): BadInput {
  const isNowhere = (error as NodeJS.ErrnoException).code === "ENOENT";
  return new BadInput(`${file} cannot be written: ${isNowhere ? "its folder does not exist" : whyNot(error)}`);
}

/** An error that the caller of a command can fix, in one sentence: exit code 2. */
export class BadInput extends Error {}
