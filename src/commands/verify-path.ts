import { statSync } from "node:fs";
import { BadInput, type Outcome } from "./outcome.ts";
import type { TrustedKeys } from "./trusted-keys.ts";
import type { VerifyOptions } from "./verify.ts";

/** `svc-gate verify`: what lies at the path says how it is verified. */
export async function verifyPathCommand(path: string, options: VerifyOptions & TrustedKeys): Promise<Outcome> {
  if (path.endsWith(".tlog-proof"))
    return (await import("./verify-proof.ts")).verifyProofCommand(path, options, options.json);
  if (options.database === undefined && statSync(path, { throwIfNoEntry: false })?.isFile() === true)
    throw new BadInput(
      `${path} is a file: name a data folder, the folder of an export, or a file that ends with .tlog-proof`,
    );
  const { isExport, verifyExportCommand } = await import("./verify-export.ts");
  if (options.database === undefined && isExport(path)) return verifyExportCommand(path, options);
  return (await import("./verify.ts")).verifyCommand(path, options);
}
