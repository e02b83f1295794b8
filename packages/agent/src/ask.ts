import { createInterface } from "node:readline/promises";

/**
 * Asks the person at the terminal, and returns whether they say yes.
 *
 * @throws the given error if nobody can answer
 */
export async function saysYes(question: string, nobody: Error): Promise<boolean> {
  if (!process.stdin.isTTY) throw nobody;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return /^y(?:es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
