import { spawn } from "node:child_process";
import { once } from "node:events";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";

/** Bytes of a list of tools. A server's list has at most 4,000,000 characters before it is indented. */
const bytesMax = 32_000_000;

/**
 * Runs a command of the package for agents' machines, and returns what it prints. Its notes and questions go to the
 * same terminal. A process of its own, because the commands of that package also run without this one.
 *
 * @param words the command's name and its words
 */
export async function runAgentCommand(words: readonly string[]): Promise<Result<string, string>> {
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...words], {
    stdio: ["inherit", "pipe", "inherit"],
  });
  const pieces: Buffer[] = [];
  let length = 0;
  child.stdout.on("data", (piece: Buffer) => {
    length += piece.length;
    if (length > bytesMax) child.kill("SIGTERM");
    else pieces.push(piece);
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (length > bytesMax) return bad("its list of tools is too long");
  // The command has said why.
  return code === 0 ? good(Buffer.concat(pieces).toString("utf8")) : bad("no tools were imported");
}
