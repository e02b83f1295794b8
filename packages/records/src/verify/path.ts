import { statSync } from "node:fs";
import { io, BadInput, type Outcome } from "../../../gate/src/cli/mod.ts";
import type { TrustedKeys } from "../trusted-keys.ts";
import type { VerifyOptions } from "./command.ts";

type AllOptions = VerifyOptions & TrustedKeys & { readonly dataDir: string };

/**
 * `svc-gate verify`: the type of file at the path decides how it is verified.
 *
 * @param path the data folder of the options by default
 */
export async function verifyPathCommand(path: string | undefined, options: AllOptions): Promise<Outcome> {
  const at = path ?? options.dataDir;
  const kind = await classifyVerifyTarget(path, at, options);
  refuseOthers(kind, at, options);
  if (options.chain && options.deep)
    throw new BadInput("--chain checks only the chain, and --deep checks everything: choose one");
  if (kind === "proof") return (await import("./proof.ts")).verifyProofCommand(at, options, options.json);
  if (kind === "export") return (await import("./export.ts")).verifyExportCommand(at, options);
  const pin = options.pin ?? (io().env["SVC_PIN"] || undefined);
  return (await import("./command.ts")).verifyCommand(at, { ...options, pin });
}

const kinds = {
  folder: "a data folder",
  database: "a ledger in SVC_DATABASE_URL",
  export: "an export",
  proof: "a proof",
} as const;

type VerifyTarget = keyof typeof kinds;

async function classifyVerifyTarget(
  path: string | undefined,
  at: string,
  { database }: AllOptions,
): Promise<VerifyTarget> {
  if (database !== undefined) {
    if (path === undefined) return "database";
    throw new BadInput(`--database names ${kinds.database}, instead of ${path}: omit one of them`);
  }
  if (at.endsWith(".tlog-proof")) return "proof";
  if (statSync(at, { throwIfNoEntry: false })?.isFile() === true)
    throw new BadInput(
      `${at} is a file: name a data folder, the folder of an export, or a file that ends with .tlog-proof`,
    );
  return (await import("./export.ts")).isExport(at) ? "export" : "folder";
}

/**
 * Refuses an option that does not apply: otherwise its user would believe that it was checked. `--json` always applies.
 */
function refuseOthers(kind: VerifyTarget, at: string, { chain, deep, key, pin, seen = [], witness }: AllOptions): void {
  const options: readonly { readonly name: string; readonly isGiven: boolean; readonly of: readonly VerifyTarget[] }[] =
    [
      { name: "--key", isGiven: key.length > 0, of: ["export", "proof"] },
      { name: "--witness", isGiven: witness.length > 0, of: ["export", "proof"] },
      { name: "--chain", isGiven: chain, of: ["folder", "export"] },
      { name: "--deep", isGiven: deep, of: ["folder", "database", "export"] },
      { name: "--seen", isGiven: seen.length > 0, of: ["folder", "database"] },
      { name: "--pin", isGiven: pin !== undefined, of: ["folder"] },
    ];
  const other = options.find(({ isGiven, of }) => isGiven && !of.includes(kind));
  if (other === undefined) return;
  const owners = other.of.map((owner) => kinds[owner]).join(" or ");
  throw new BadInput(`${other.name} only applies to ${owners}, but ${whatIs(kind, at)}`);
}

function whatIs(kind: VerifyTarget, at: string): string {
  if (kind === "database") return `this is ${kinds[kind]}`;
  if (kind === "folder") return `${at} is neither: a data folder is verified with the key on its own record`;
  return `${at} is ${kinds[kind]}`;
}
