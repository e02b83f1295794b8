import { chmod, lstat, readdir, stat } from "node:fs/promises";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { ownFiles } from "./data-folder.ts";

/** Only for the owner, whatever the folder's mode and the umask are. */
const ownerOnly = 0o600;

/** Makes an empty file, unless it exists. It never opens an existing file: closing that would drop this process's locks on it. */
export function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "wx", ownerOnly));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * Sets the mode 0600 on the gate's files in a data folder. It does not change the mode of the folder or of the signing
 * key: a start is refused while others can read that key, because they may have copied it.
 *
 * @returns warnings for the operator, each as a sentence
 */
export async function keepPrivate(folder: string): Promise<readonly string[]> {
  if (process.platform === "win32") return [];
  const mode = (await stat(folder)).mode & 0o777;
  const open =
    (mode & 0o007) === 0
      ? []
      : [
          `other users of this machine can look into the data folder ${folder} (mode ${octal(mode)}): run ` +
            `\`chmod o-rwx ${folder}\`; only their owner can read the gate's files in it (mode 600)`,
        ];
  return [...open, ...(await narrow(folder))];
}

async function narrow(folder: string): Promise<readonly string[]> {
  const narrowed: string[] = [];
  const left: string[] = [];
  for (const name of (await listFolderNames(folder)).filter((each) => ownFiles.has(each)).toSorted()) {
    const found = await lstat(join(folder, name)).catch(unlessGone);
    if (found === undefined || !found.isFile() || (found.mode & 0o077) === 0) continue;
    const shown = `${name} (${octal(found.mode & 0o777)})`;
    try {
      await chmod(join(folder, name), ownerOnly);
      narrowed.push(shown);
    } catch (error) {
      left.push(`${shown}, ${(error as NodeJS.ErrnoException).code}`);
    }
  }
  const sentences: string[] = [];
  if (narrowed.length > 0)
    sentences.push(
      `others could read files in ${folder}: ${narrowed.join(", ")}; the gate has set their mode to 600. ` +
        "If others may have read them, rotate the keys in `first-key` and `operator.json`",
    );
  if (left.length > 0)
    sentences.push(
      `others can read files in ${folder}, and this user lacks the permission to change that: ` +
        `${left.join("; ")}. Run \`chmod 600\` on them`,
    );
  return sentences;
}

/** Returns the names in a folder; none if the folder does not exist. */
async function listFolderNames(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(unlessGone)) ?? [];
}

/** Ignores a missing file, because SQLite may remove a file at the same moment. */
function unlessGone(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, "0");
}
