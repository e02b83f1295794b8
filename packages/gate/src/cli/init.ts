import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolders } from "../ledger/mod.ts";
import type { Outcome } from "./outcome.ts";
import { fileKinds, schemaText } from "./file-schemas.ts";
import { starterContract, starterMandate } from "./starter.ts";

/** `svc-gate init`: writes a mandate and a starter contract into a folder that has none. Overwrites nothing. */
export async function initCommand(folder: string): Promise<Outcome> {
  const files = [
    [join(folder, "mandate.yaml"), starterMandate],
    [join(folder, "contracts", "starter.yaml"), starterContract],
  ] as const;
  const there = files.find(([file]) => existsSync(file));
  if (there !== undefined) return { exitCode: 2, text: `${there[0]} is already there: nothing was overwritten` };
  try {
    await makeFolders(join(folder, "contracts"));
    for (const [file, text] of files) await writeFile(file, text, { flag: "wx" });
    await writeSchemas(join(folder, schemaFolder));
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    return {
      exitCode: 2,
      text: `${path ?? folder} cannot be written (${code}): name a folder that this user may write`,
    };
  }
  return {
    exitCode: 0,
    text: [
      ...files.map(([file]) => `wrote ${file}`),
      `wrote ${join(folder, schemaFolder)}: the schemas with which editors complete`,
      "",
      `next: svc-gate check ${files[0][0]}, then svc-gate serve --mandate ${files[0][0]}`,
    ].join("\n"),
  };
}

/** The first line of each file refers to it. Its files belong to this version, and older ones are replaced. */
const schemaFolder = ".svc-gate";

async function writeSchemas(folder: string): Promise<void> {
  await makeFolders(folder);
  for (const kind of fileKinds) await writeFile(join(folder, `${kind}.schema.json`), await schemaText(kind));
}
