import { constants } from "node:fs";
import { join, resolve } from "node:path";
import { canAccess } from "../can-access.ts";

/** Each file lets its reader act as the gate's operator, or sign for the gate. */
const files = ["operator.json", "signing.key", "first-key", "ledger.db"];

/**
 * Tries to read the files of a gate on this machine, as an agent of this user could.
 *
 * @returns a warning for each folder of a gate that this user can read; none if the gate is on another machine
 */
export function approverFiles(url: string): readonly string[] {
  if (!["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname)) return [];
  const folders = [process.env["SVC_DATA_DIR"], "data", "/var/lib/svc-gate", "/data"].filter(
    (name) => name !== undefined,
  );
  const found = [...new Set(folders.map((folder) => resolve(folder)))].flatMap((folder) =>
    files
      .map((file) => join(folder, file))
      .filter((file) => canAccess(file, constants.R_OK))
      .slice(0, 1),
  );
  return found.map(
    (file) =>
      `the agent can approve itself here: this user can read ${file}. Run the gate as another user, or elsewhere`,
  );
}
