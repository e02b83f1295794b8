import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { renderDiagnostic, type Diagnostic, type SourceFile } from "../../../../readers/src/contract.ts";
import { BadInput, counted, io, NoSuchFile, whyNot, type Outcome } from "../../../../gate/src/cli/mod.ts";
import { layOut } from "./layout.ts";

/**
 * `svc-gate fmt`: formats contracts, mandates, packs and test files, or with `check` names those that are not formatted. A
 * file that is not valid YAML of the contract language is reported and left unchanged.
 */
export async function fmtCommand(names: readonly string[], { check }: { readonly check: boolean }): Promise<Outcome> {
  if (names.includes("-")) return fmtInput(check);
  const files = (await Promise.all(names.map(filesOf))).flat();
  if (files.length === 0)
    throw new BadInput(`no contract, mandate, pack or test file was found in ${names.join(", ")}`);
  const changed: string[] = [];
  const problems: Diagnostic[] = [];
  for (const name of files) {
    const source = await read(name);
    const laidOut = layOut(source);
    if (!laidOut.ok) problems.push(...laidOut.problem);
    else if (laidOut.value !== source.text) {
      changed.push(name);
      if (!check) await writeFile(name, laidOut.value);
    }
  }
  const count = `${counted(files.length, "file")}, ${changed.length} ${check ? "would change" : "changed"}`;
  const lines = changed.map((name) => `${check ? "would change" : "wrote"} ${name}`);
  return {
    exitCode: problems.length > 0 ? 2 : check && changed.length > 0 ? 1 : 0,
    text: [...problems.map((problem) => `${renderDiagnostic(problem)}\n`), ...lines, count].join("\n"),
  };
}

/** Standard input to standard output, for editors. */
async function fmtInput(check: boolean): Promise<Outcome> {
  const source = { name: "-", text: await textOf(io().stdin) };
  const laidOut = layOut(source);
  if (!laidOut.ok) return { exitCode: 2, text: laidOut.problem.map(renderDiagnostic).join("\n\n") };
  if (check) return { exitCode: laidOut.value === source.text ? 0 : 1, text: laidOut.value === source.text ? "" : "-" };
  // The printer adds the line end.
  return { exitCode: 0, text: laidOut.value.slice(0, -1) };
}

async function read(name: string): Promise<SourceFile> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(name));
    return { name, text };
  } catch (error) {
    throw new NoSuchFile(`${name} cannot be read: ${whyNot(error)}`);
  }
}

/** A file, or the contracts, mandates, packs and test files in a folder, at any depth. */
async function filesOf(name: string): Promise<readonly string[]> {
  const found = await stat(name).catch(() => undefined);
  if (found?.isDirectory() !== true) return [name];
  const entries = await readdir(name, { withFileTypes: true });
  const inside = entries
    .filter((entry) => !entry.name.startsWith(".") && entry.name !== "node_modules")
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const lists = await Promise.all(
    inside.map(async (entry) => {
      const path = join(name, entry.name);
      if (entry.isDirectory()) return filesOf(path);
      return entry.isFile() && /\.ya?ml$/.test(entry.name) && isOurs((await read(path)).text) ? [path] : [];
    }),
  );
  return lists.flat();
}

function isOurs(text: string): boolean {
  return /^(?:contract|mandate|pack|cases)\s*:/m.test(text);
}
