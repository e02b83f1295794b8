import { posix } from "node:path";

/** A folder with a `tsconfig.json`. Its name is its path without `packages/` and `src/`. */
interface Module {
  /** The modules that it may import. */
  readonly mayImport: readonly string[];
  /** The files by which others enter, beside `mod.ts`. */
  readonly doors?: readonly string[];
  /** Those of which it may import every file. */
  readonly knows?: readonly string[];
}

const core = ["core/wire", "core/approvals", "core/contract", "core/record"];
const gate = ["gate/ledger", "gate/server", "gate/cli"];

/** The modules from the ground. The compiler forbids every other import, and so does test/repository/tidy.test.ts. */
export const modules: ReadonlyMap<string, Module> = new Map<string, Module>([
  ["core/wire", { mayImport: [] }],
  ["core/approvals", { mayImport: ["core/wire"] }],
  ["core/contract", { mayImport: ["core/wire"], doors: ["decide.ts", "function.ts", "ir.ts"] }],
  ["core/record", { mayImport: ["core/wire", "core/approvals"], doors: ["entry/mod.ts", "tree/mod.ts"] }],
  [
    "readers",
    { mayImport: ["core/wire", "core/contract"], doors: ["compile.ts", "contract.ts", "ir.ts", "tables.ts"] },
  ],
  ["console/browser", { mayImport: ["core/wire", "core/approvals"] }],
  ["console/server", { mayImport: ["core/wire"], doors: ["oidc/mod.ts"] }],
  [
    "gate/ledger",
    {
      mayImport: ["core/wire", "core/approvals", "core/record"],
      doors: ["backup.ts", "engine.ts", "errors.ts", "in-database.ts", "restore.ts", "signing/mod.ts"],
      knows: ["core/record"],
    },
  ],
  [
    "gate/server",
    {
      mayImport: [...core, "readers", "console/server", "gate/ledger"],
      doors: ["errors.ts", "policy/mod.ts", "start/mod.ts", "version.ts"],
    },
  ],
  [
    "gate/cli",
    {
      mayImport: [...core, "readers", "gate/ledger", "gate/server"],
      doors: ["check.ts", "ledger-source.ts", "others.ts", "progress.ts", "source-location.ts"],
    },
  ],
  ["records", { mayImport: [...core, "readers", ...gate], knows: ["core/record"] }],
  ["workbench/test", { mayImport: [...core, "readers", ...gate, "records"] }],
  [
    "svc-gate",
    {
      mayImport: ["gate/server", "gate/cli", "records", "workbench/test"],
      doors: ["contract-files.ts"],
      knows: ["gate/cli", "records", "workbench/test"],
    },
  ],
  ["workbench/analysis", { mayImport: ["core/wire", "readers"] }],
  ["workbench/commands", { mayImport: ["core/wire", "readers", "gate/cli", "svc-gate", "workbench/analysis"] }],
  ["agent", { mayImport: [] }],
]);

/** The folder of a module, such as `packages/core/src/wire`. */
export function folderOf(module: string): string {
  const [owner, ...rest] = module.split("/");
  return posix.join("packages", owner ?? "", "src", ...rest);
}

/** The name of the module that has a path; undefined outside the packages' sources. */
export function moduleOf(path: string): string | undefined {
  const name = short(path);
  return modules.keys().find((module) => name === module || name.startsWith(`${module}/`));
}

/** A path in the packages without `packages/` and `src/`: `core/contract/text/yaml.ts`. */
export function short(path: string): string {
  return path.replace(/^packages\/([^/]+)\/src/, "$1");
}

/** Whether a module may import the file of another one: a door, or any file of a module that it knows. */
export function mayEnter(from: string, to: string, path: string): boolean {
  const { doors = [] } = modules.get(to) ?? {};
  const isDoor = ["mod.ts", ...doors].some((door) => path === `${folderOf(to)}/${door}`);
  return isDoor || (modules.get(from)?.knows ?? []).includes(to);
}
