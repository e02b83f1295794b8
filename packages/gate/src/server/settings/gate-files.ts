/**
 * Which files of a gate let a reader act as its operator: with the key in the operator's file one can make the key of a
 * person who approves calls, and with the signing key one can sign another history. It imports only Node's own modules,
 * so that a small program on an agent's machine can have the same check.
 */
import { accessSync, constants, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where a gate keeps its files. */
export interface GateFiles {
  readonly dataDir: string;
  /** The file of the signing key, if it is not in the folder; or the key itself, as text. */
  readonly signingKey?: string | undefined;
}

const names = ["operator.json", "ledger.db"];
const keyName = "signing.key";

function pathsOf({ dataDir, signingKey }: GateFiles): readonly string[] {
  const isText = signingKey?.includes("-----BEGIN ") === true;
  const key = isText ? [] : [signingKey ?? join(dataDir, keyName)];
  return [...names.map((name) => join(dataDir, name)), ...key];
}

/**
 * Returns the files that this process can read. An agent that runs as the same user can read them too, and so approve
 * its own calls.
 */
export function filesReadableHere(files: GateFiles): readonly string[] {
  return pathsOf(files).filter((path) => {
    try {
      accessSync(path, constants.R_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Says what other users of the machine may do with these files, as far as the modes show it. Some file systems keep no
 * modes, so a file can stay open although the gate has closed it.
 *
 * @returns one sentence for the operator; undefined if only the owner can use the files
 */
export function openFilesWarning(files: GateFiles): string | undefined {
  if (process.platform === "win32") return undefined;
  const isReachable = (path: string): boolean => openAs(dirname(path), 0o011).length > 0;
  const readable = pathsOf(files)
    .filter(isReachable)
    .flatMap((path) => openAs(path, 0o044));
  const writable = openAs(files.dataDir, 0o002);
  if (readable.length + writable.length === 0) return undefined;
  const what = [
    ...(readable.length === 0 ? [] : [`other users of this machine can read ${readable.join(", ")}`]),
    ...(writable.length === 0 ? [] : [`other users of this machine can replace files in ${writable.join(", ")}`]),
  ];
  return (
    `the agent can approve itself here: ${what.join(", and ")}. Run \`chmod go-rwx\` on each. If the mode stays, ` +
    "move the data folder to a file system that keeps modes"
  );
}

function openAs(path: string, bits: number): readonly string[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  return (mode & bits) === 0 ? [] : [`${path} (mode ${(mode & 0o777).toString(8).padStart(3, "0")})`];
}
