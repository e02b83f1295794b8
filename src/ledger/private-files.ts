import { chmod, lstat, readdir, stat } from "node:fs/promises";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** For their owner alone, whatever the folder's mode and the umask are. */
const ownerOnly = 0o600;

/**
 * What a gate keeps in a data folder. Others' files may lie beside them: a data folder may be the folder that it is started
 * in. `signing.key` is not here: a start is refused while others can read it, because they may have copied it.
 */
const ours = new Set(
  (
    "ledger.db ledger.db-wal ledger.db-shm ledger.db-journal owner.lock owner.lock-journal head.pin checkpoint " +
    "checkpoint.cosigned checkpoint.seen key-uses.json keys.json operator.json first-key"
  )
    .split(" ")
    .flatMap((name) => [name, `${name}.new`]),
);

/** Makes an empty file, unless there is one. It opens none that is there: closing that would drop this process's locks on it. */
export function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, "wx", ownerOnly));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * Takes the files of a data folder from everybody but their owner. The folder's own mode is its operator's.
 *
 * @returns what the operator should know, each as a sentence
 */
export async function keepPrivate(folder: string): Promise<readonly string[]> {
  if (process.platform === "win32") return [];
  const mode = (await stat(folder)).mode & 0o777;
  const open =
    (mode & 0o007) === 0
      ? []
      : [
          `other users of this machine can look into the data folder ${folder} (mode ${octal(mode)}): run ` +
            `\`chmod o-rwx ${folder}\`; the gate's files in it are for their owner alone (mode 600)`,
        ];
  return [...open, ...(await narrow(folder))];
}

async function narrow(folder: string): Promise<readonly string[]> {
  const narrowed: string[] = [];
  const left: string[] = [];
  for (const name of (await namesIn(folder)).filter((each) => ours.has(each)).toSorted()) {
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
      `others could read files in ${folder} until now: ${narrowed.join(", ")}; they have mode 600 now. ` +
        "If others may have read them, rotate the keys that `first-key` or `operator.json` held",
    );
  if (left.length > 0)
    sentences.push(
      `others can read files in ${folder}, and this user may not change that: ${left.join("; ")}. Run \`chmod 600\` on them`,
    );
  return sentences;
}

/** None in a folder that is not there. */
async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(unlessGone)) ?? [];
}

/** A file of SQLite may go while it is looked for. */
function unlessGone(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, "0");
}
