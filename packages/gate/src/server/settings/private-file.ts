import { open } from "node:fs/promises";
import { bad, good, WrongMember, type Members, type Result } from "../../../../core/src/wire/mod.ts";

const fileBytesMax = 1_000_000;

/**
 * Reads a file of JSON that has secrets, so only its owner may read it.
 *
 * @param variable the setting that names the file
 * @param read reads its members, or throws `WrongMember`
 * @returns its value, or a sentence without anything from the file
 */
export async function readPrivateJson<Value>(
  variable: string,
  file: string,
  read: (members: Members) => Value,
): Promise<Result<Value, string>> {
  const text = await readPrivate(variable, file);
  if (!text.ok) return text;
  try {
    return good(read(Object(JSON.parse(text.value)) as Members));
  } catch (error) {
    if (error instanceof SyntaxError) return bad(`${variable}: the file ${file} is not JSON`);
    if (error instanceof WrongMember) return bad(`${variable}: in the file ${file}, ${error.message}`);
    throw error;
  }
}

async function readPrivate(variable: string, file: string): Promise<Result<string, string>> {
  const opened = await open(file, "r").catch((error: unknown) => error as NodeJS.ErrnoException);
  if (opened instanceof Error) return bad(`${variable} names ${file}, which cannot be read (${opened.code})`);
  try {
    const { mode, size } = await opened.stat();
    // Group and others: a group that may read it could act in this gate's name.
    if (process.platform !== "win32" && (mode & 0o077) !== 0)
      return bad(`${variable}: others can read the file ${file}, which has secrets: run \`chmod 600 ${file}\``);
    if (size > fileBytesMax) return bad(`${variable}: the file ${file} is larger than ${fileBytesMax} bytes`);
    return good(await opened.readFile("utf8"));
  } finally {
    await opened.close();
  }
}
